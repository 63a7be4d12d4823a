# SPDX-License-Identifier: MIT
$ moat --version | sed 's/[0-9][0-9.]*/N/'
moat N
$ moat --version=no ptx
2> moat: error: `moat ptx` alone is no command; see `moat help ptx`
[status 2]
$ MOAT_OPTIONS=bogus=1 moat --version | wc -l
1
