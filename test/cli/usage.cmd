# SPDX-License-Identifier: MIT
# Bad usage: status 2 (98 where the word may have been a program), nothing on stdout, and what may have been meant.

$ moat
2> moat: error: no command and no program given; `moat help` lists them all
[status 2]
$ moat optoins
2> moat: error: cannot run "optoins": No such file or directory; did you mean the command "options"?
[status 98]
$ moat ./program --its-option
2> moat: error: cannot run "./program": No such file or directory
[status 98]
$ moat ptx
2> moat: error: `moat ptx` alone is no command; see `moat help ptx`
[status 2]
$ moat ptx lsit
2> moat: error: unknown command "ptx lsit"; did you mean "ptx list"?
[status 2]
$ moat ptx bogus FILE
2> moat: error: unknown command "ptx bogus"; `moat help` lists them all
[status 2]
$ moat info now
2> moat: error: `moat info` takes no operand, but "now" was given
[status 2]
$ moat options now
2> moat: error: `moat options` takes no operand, but "now" was given
[status 2]
$ moat --bogus
2> --bogus: error: unknown option; `moat options` lists them all
[status 2]
$ moat options --fromat=json
2> --fromat: error: unknown option; did you mean --format?
[status 2]
$ moat info --format=json
2> --format: error: not an option of `moat info`, but of: explain,ptx explain,ptx list,ptx stats,report,run
[status 2]
$ moat -v
2> -v: error: unknown option; they all start with --
[status 2]
$ moat options --module
2> --module: error: needs a value
[status 2]
$ moat options --module=0
2> --module: error: 0 is not within 1 to 2147483647
[status 2]
$ moat options --raw=maybe --format=yaml
2> --raw: error: "maybe" is neither yes nor no
2> --format: error: unknown word "yaml"; did you mean xml?
[status 2]
$ moat $'\e[31mred'
2> moat: error: cannot run "?[31mred": No such file or directory
[status 98]
