# SPDX-License-Identifier: MIT

$ printf '.version 8.5\n.target sm_90a\n.visible .entry first() { ret; }\n.func helper() { ret; }\n.entry second() { ret; }\n' > $T/a.ptx
$ moat ptx list $T/a.ptx
module  kind   arch      isa    comp      stored        full
     1  ptx    sm_90a    8.5    none         110         110
	first
	second
1 module, 2 kernels
$ moat ptx list --format=json $T/a.ptx
{
	"file":	"$T/a.ptx",
	"modules":	[{
			"module":	1,
			"kind":	"ptx",
			"arch":	"sm_90a",
			"version":	"8.5",
			"compression":	"none",
			"stored_bytes":	110,
			"bytes":	110,
			"offset":	0,
			"source":	null,
			"member":	null,
			"damaged":	false,
			"kernels":	["first", "second"]
		}]
}
$ moat ptx list test/fuzz/corpus/image/two-archs.fatbin | cut -c 1-34
module  kind   arch      isa    co
     1  cubin  sm_90a    -      zs
	_Z5scalePf
     2  ptx    sm_90a    9.0    zs
	_Z5scalePf
     3  cubin  sm_100f   -      zs
	_Z5scalePf
     4  ptx    sm_100f   9.0    zs
	_Z5scalePf
4 modules, 4 kernels
$ moat ptx list --module=2 test/fuzz/corpus/image/two-archs.fatbin | cut -c 1-34
module  kind   arch      isa    co
     2  ptx    sm_90a    9.0    zs
	_Z5scalePf
1 module, 1 kernel
$ moat ptx list --format=json --module=1 test/fuzz/corpus/image/two-archs.fatbin | grep -v bytes
{
	"file":	"test/fuzz/corpus/image/two-archs.fatbin",
	"modules":	[{
			"module":	1,
			"kind":	"cubin",
			"arch":	"sm_90a",
			"version":	null,
			"compression":	"zstd",
			"offset":	16,
			"source":	null,
			"member":	null,
			"damaged":	false,
			"kernels":	["_Z5scalePf"]
		}]
}

# Names are printed as they are in text, and as ASCII in JSON.
$ printf '.version 8.5\n.target sm_90\n.visible .entry _Z1f$x() { ret; }\n' > $T/b.ptx; moat ptx list --format=json $T/b.ptx | grep -A 2 kernels
			"kernels":	["_Z1f$x"]
		}]
}

# Errors
$ moat ptx list $T/absent
2> $T/absent: error: No such file or directory
[status 2]
$ moat ptx list $T
2> $T: error: Is a directory
[status 2]
$ : > $T/empty; moat ptx list $T/empty
2> $T/empty: offset 0x0: error: empty file
[status 2]
$ echo 'int main(void) { return 0; }' > $T/main.c; moat ptx list $T/main.c
2> $T/main.c: offset 0x0: error: not an ELF file, archive, fatbin or PTX
[status 2]
$ moat ptx list --module=2 $T/a.ptx
2> moat: error: $T/a.ptx has 1 module, there is no module 2
[status 2]
$ moat ptx list --format=yaml $T/a.ptx
2> --format: error: unknown word "yaml"; did you mean xml?
[status 2]
$ moat ptx list
2> moat: error: `moat ptx list` takes one file, but 0 were given
[status 2]
$ moat ptx
2> moat: error: `moat ptx` alone is no command; see `moat help ptx`
[status 2]
$ moat ptx lists $T/a.ptx
2> moat: error: unknown command "ptx lists"; did you mean "ptx list"?
[status 2]
