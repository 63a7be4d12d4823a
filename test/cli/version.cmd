# SPDX-License-Identifier: MIT
$ moat --version | sed 's/[0-9][0-9.]*/N/'
moat N
$ moat -V | diff - <(moat --version)
$ moat version | diff - <(moat --version)
$ moat -h | diff - <(moat help)
$ moat -h ptx print | diff - <(moat help ptx print)
$ moat --device=cpu --log-file=$T/absent/log echo not run
2> moat: error: the log file "$T/absent/log" cannot be written: No such file or directory
[status 2]
$ bash -c 'source <(moat completion bash); COMP_LINE="moat --mode=ca"; COMP_POINT=14; COMP_WORDS=(moat --mode = ca); COMP_CWORD=3; _moat; echo "${COMPREPLY[@]}"'
canary
$ bash -c 'source <(moat completion bash); COMP_LINE="moat lin"; COMP_POINT=8; COMP_WORDS=(moat lin); COMP_CWORD=1; _moat; echo "${COMPREPLY[@]}"'
link-flags
$ moat completion zsh | head -n 1
\#compdef moat
$ moat completion fish
2> moat: error: `moat completion` needs the name of a shell: bash or zsh
[status 2]
$ moat --version=no ptx
2> moat: error: `moat ptx` alone is no command; see `moat help ptx`
[status 2]
$ MOAT_OPTIONS=bogus=1 moat --version | wc -l
1
