# SPDX-License-Identifier: MIT
# Output that cannot be written is noticed, whichever command writes it.

$ moat options > /dev/full
2> moat: error: cannot write the output: No space left on device
[status 2]
$ moat help > /dev/full
2> moat: error: cannot write the output: No space left on device
[status 2]
$ moat --version > /dev/full
2> moat: error: cannot write the output: No space left on device
[status 2]
$ moat info > /dev/full
2> moat: error: cannot write the output: No space left on device
[status 2]
$ moat options >&-
2> moat: error: cannot write the output: Bad file descriptor
[status 2]
$ moat --version >&- 2>&-
[status 2]
$ moat options | head -n 1
--api-errors
