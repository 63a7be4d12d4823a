# SPDX-License-Identifier: MIT

$ moat options
--config=FILE
    read options from FILE, lines of the form key = value
    default: not set
    now: not set (default)
--cpu-capability=N
    compute capability of the CPU device, 75 for 7.5
    for: info,run
    default: 90
    now: 90 (default)
--cpu-lanes=auto|plain|avx2|avx512
    vector instructions that the CPU device runs a warp's lanes on; auto: the best there are
    for: info,run
    default: auto
    now: auto (default)
--cpu-memory=SIZE
    memory of the CPU device; not set: half of what the machine has
    for: info,run
    default: not set
    now: not set (default)
--cpu-threads=N
    threads that the CPU device runs blocks on; not set: one for each core
    for: info,run
    default: not set
    now: not set (default)
--device=auto|gpu|cpu
    what kernels run on; auto: a GPU if there is one, else the CPU device
    for: run
    default: auto
    now: auto (default)
--dump-after=ANALYSIS
    print each function with what ANALYSIS found: cfg, dominators, postdominators, loops, reaching or liveness
    for: ptx print
    default: not set
    now: not set (default)
--format=text|json
    print for people or for programs
    for: ptx list,ptx stats
    default: text
    now: text (default)
--help
    print help on moat or on the command given and exit
    default: no
    now: no (default)
--mode=off
    how to look for errors; off: run the program as it is
    for: run
    default: off
    now: off (default)
--module=N
    look only at the N-th module of the file, counted from 1
    for: ptx list,ptx print,ptx stats,ptx verify
    default: not set
    now: not set (default)
--raw
    print PTX as it is stored, decompressed but not parsed
    for: ptx print
    default: no
    now: no (default)
--shared
    link the shared runtime instead of the static one
    for: link-flags
    default: no
    now: no (default)
--stats
    count what kernels execute on the CPU device and print it at exit
    for: run
    default: no
    now: no (default)
--times
    measure how long kernels take on the CPU device and print it at exit
    for: run
    default: no
    now: no (default)
--version
    print the version and exit
    default: no
    now: no (default)

# Each source, the stronger over the weaker; a value that loses must still be good.
$ printf '# mine\nformat = json\n module=3\nraw = yes\n' > $T/moat.conf
$ moat options --config=$T/moat.conf | grep now: | grep -v '(default)'
    now: $T/moat.conf (command line)
    now: json ($T/moat.conf:2)
    now: 3 ($T/moat.conf:3)
    now: yes ($T/moat.conf:4)
$ MOAT_OPTIONS='module=4:no-raw' moat options --config $T/moat.conf | grep now: | grep -v '(default)'
    now: $T/moat.conf (command line)
    now: json ($T/moat.conf:2)
    now: 4 (MOAT_OPTIONS)
    now: no (MOAT_OPTIONS)
$ MOAT_OPTIONS='module=4:no-raw' moat options --module 5 --config=$T/moat.conf | grep now: | grep -v '(default)'
    now: $T/moat.conf (command line)
    now: json ($T/moat.conf:2)
    now: 5 (command line)
    now: no (MOAT_OPTIONS)
$ MOAT_OPTIONS='dump-after=a\:b\\c' moat options | grep MOAT_OPTIONS
    now: a:b\c (MOAT_OPTIONS)
$ MOAT_OPTIONS='module=x' moat options --module 5
2> MOAT_OPTIONS:1:8: error: "x" is not a whole number
2>   module=x
2>          ^
[status 2]

# Errors say where they are.
$ printf 'format = jsno\n# a comment\n\tmodule\t= none\nversion = 1\nbogus\n' > $T/bad.conf
$ moat options --config=$T/bad.conf
2> $T/bad.conf:1:10: error: unknown word "jsno"; did you mean json?
2>   format = jsno
2>            ^~~~
2> $T/bad.conf:3:11: error: "none" is not a whole number
2>    module = none
2>             ^~~~
2> $T/bad.conf:4:1: error: can be given on the command line only
2>   version = 1
2>   ^~~~~~~
2> $T/bad.conf:5:1: error: unknown option; `moat options` lists them all
2>   bogus
2>   ^~~~~
[status 2]
$ moat options --config=$T/absent.conf
2> $T/absent.conf: error: No such file or directory
[status 2]
$ moat options --config=$T
2> $T: error: Is a directory
[status 2]
$ moat options --config=/dev/zero
2> /dev/zero: error: too large for a configuration file
[status 2]
$ MOAT_OPTIONS='format=json:moduel=3:raw=x' moat options
2> MOAT_OPTIONS:1:13: error: unknown option; did you mean module?
2>   format=json:moduel=3:raw=x
2>               ^~~~~~
2> MOAT_OPTIONS:1:26: error: "x" is neither yes nor no
2>   format=json:moduel=3:raw=x
2>                            ^
[status 2]
$ MOAT_OPTIONS='config=x' moat options
2> MOAT_OPTIONS:1:1: error: can be given on the command line only
2>   config=x
2>   ^~~~~~
[status 2]
