# SPDX-License-Identifier: MIT

$ cat > $T/a.ptx <<'END'
> .version 8.5
> .target sm_90
> .address_size 64
> .extern .func helper();
> .func callee() { ret; }
> .visible .entry k(.param .u64 a)
> {
>   .reg .b64 %rd<3>;
>   .reg .b32 %r<5>;
>   .shared .b32 s[4];
>   ld.param.u64 %rd1, [a];
>   ld.global.v2.u32 {%r1, %r2}, [%rd1];
>   st.global.u32 [%rd1], %r1;
>   ld.u32 %r1, [%rd1];
>   st.shared.u32 [s], %r1;
>   bar.sync 0;
>   atom.shared.add.u32 %r1, [s], 1;
>   red.global.add.u32 [%rd1], 1;
>   frobnicate %r1;
>   call callee;
>   bra End;
> End:
>   ret;
> }
> END
$ moat ptx stats $T/a.ptx
module 1: sm_90, PTX 8.5
  kernels 1, functions 1, declarations 1
  instructions 13: branches 1, calls 1, barriers 1, not known 1
  space                loads      stores     atomics
  generic                  1           0           0
  global                   1           1           1
  param                    1           0           0
  shared                   0           1           1
  addresses of kernels
           6  not understood
$ moat ptx stats --format=json $T/a.ptx
{
	"file":	"$T/a.ptx",
	"modules":	[{
			"module":	1,
			"kind":	"ptx",
			"arch":	"sm_90",
			"version":	"8.5",
			"kernels":	1,
			"functions":	1,
			"declarations":	1,
			"instructions":	13,
			"branches":	1,
			"calls":	1,
			"barriers":	1,
			"not_known":	1,
			"spaces":	{
				"generic":	{
					"loads":	1,
					"stores":	0,
					"atomics":	0
				},
				"global":	{
					"loads":	1,
					"stores":	1,
					"atomics":	1
				},
				"param":	{
					"loads":	1,
					"stores":	0,
					"atomics":	0
				},
				"shared":	{
					"loads":	0,
					"stores":	1,
					"atomics":	1
				}
			},
			"addresses":	{
				"affine":	0,
				"loop":	0,
				"mixed":	0,
				"index_unknown":	0,
				"pointer_unknown":	0,
				"not_understood":	6
			},
			"operators_not_understood":	{
			}
		}],
	"total":	{
		"kernels":	1,
		"functions":	1,
		"declarations":	1,
		"instructions":	13,
		"branches":	1,
		"calls":	1,
		"barriers":	1,
		"not_known":	1,
		"spaces":	{
			"generic":	{
				"loads":	1,
				"stores":	0,
				"atomics":	0
			},
			"global":	{
				"loads":	1,
				"stores":	1,
				"atomics":	1
			},
			"param":	{
				"loads":	1,
				"stores":	0,
				"atomics":	0
			},
			"shared":	{
				"loads":	0,
				"stores":	1,
				"atomics":	1
			}
		},
		"addresses":	{
			"affine":	0,
			"loop":	0,
			"mixed":	0,
			"index_unknown":	0,
			"pointer_unknown":	0,
			"not_understood":	6
		},
		"operators_not_understood":	{
		}
	}
}
$ printf '.version 7.0\n' > $T/none.ptx; moat ptx stats $T/none.ptx
module 1: -, PTX 7.0
  kernels 0, functions 0, declarations 0
  instructions 0: branches 0, calls 0, barriers 0, not known 0
  space                loads      stores     atomics
$ moat ptx stats test/fuzz/corpus/image/two-archs.fatbin
module 2: sm_90a, PTX 9.0
  kernels 1, functions 1, declarations 0
  instructions 15: branches 0, calls 1, barriers 0, not known 0
  space                loads      stores     atomics
  global                   1           1           0
  param                    3           2           0
  addresses of kernels
           2  affine
module 4: sm_100f, PTX 9.0
  kernels 1, functions 1, declarations 0
  instructions 15: branches 0, calls 1, barriers 0, not known 0
  space                loads      stores     atomics
  global                   1           1           0
  param                    3           2           0
  addresses of kernels
           2  affine
total of 2 modules
  kernels 2, functions 2, declarations 0
  instructions 30: branches 0, calls 2, barriers 0, not known 0
  space                loads      stores     atomics
  global                   2           2           0
  param                    6           4           0
  addresses of kernels
           4  affine
$ moat ptx stats --module=2 --format=json test/fuzz/corpus/image/two-archs.fatbin
{
	"file":	"test/fuzz/corpus/image/two-archs.fatbin",
	"modules":	[{
			"module":	2,
			"kind":	"ptx",
			"arch":	"sm_90a",
			"version":	"9.0",
			"kernels":	1,
			"functions":	1,
			"declarations":	0,
			"instructions":	15,
			"branches":	0,
			"calls":	1,
			"barriers":	0,
			"not_known":	0,
			"spaces":	{
				"global":	{
					"loads":	1,
					"stores":	1,
					"atomics":	0
				},
				"param":	{
					"loads":	3,
					"stores":	2,
					"atomics":	0
				}
			},
			"addresses":	{
				"affine":	2,
				"loop":	0,
				"mixed":	0,
				"index_unknown":	0,
				"pointer_unknown":	0,
				"not_understood":	0
			},
			"operators_not_understood":	{
			}
		}],
	"total":	{
		"kernels":	1,
		"functions":	1,
		"declarations":	0,
		"instructions":	15,
		"branches":	0,
		"calls":	1,
		"barriers":	0,
		"not_known":	0,
		"spaces":	{
			"global":	{
				"loads":	1,
				"stores":	1,
				"atomics":	0
			},
			"param":	{
				"loads":	3,
				"stores":	2,
				"atomics":	0
			}
		},
		"addresses":	{
			"affine":	2,
			"loop":	0,
			"mixed":	0,
			"index_unknown":	0,
			"pointer_unknown":	0,
			"not_understood":	0
		},
		"operators_not_understood":	{
		}
	}
}

# Errors
$ printf '.version 7.0\n.entry k() {' > $T/cut.ptx; moat ptx stats $T/cut.ptx
2> $T/cut.ptx:2:1: error: this function has no end: '}' is missing
2>   .entry k() {
2>   ^
[status 2]
$ moat ptx stats --format=json $T/cut.ptx
{
	"file":	"$T/cut.ptx",
	"modules":	[],
	"total":	{
		"kernels":	0,
		"functions":	0,
		"declarations":	0,
		"instructions":	0,
		"branches":	0,
		"calls":	0,
		"barriers":	0,
		"not_known":	0,
		"spaces":	{
		},
		"addresses":	{
			"affine":	0,
			"loop":	0,
			"mixed":	0,
			"index_unknown":	0,
			"pointer_unknown":	0,
			"not_understood":	0
		},
		"operators_not_understood":	{
		}
	}
}
2> $T/cut.ptx:2:1: error: this function has no end: '}' is missing
2>   .entry k() {
2>   ^
[status 2]
$ moat ptx stats --format=xml $T/a.ptx
2> moat: error: this command prints text or json; sarif and xml are for reports
[status 2]
$ moat ptx stats --raw $T/a.ptx
2> --raw: error: not an option of `moat ptx stats`, but of: ptx print
[status 2]
$ moat ptx stats $T/absent.ptx
2> $T/absent.ptx: error: No such file or directory
[status 2]
