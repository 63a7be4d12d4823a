# SPDX-License-Identifier: MIT

$ cat > $T/a.ptx <<'END'
> .version 8.5
> .target sm_90
> .address_size 64
> .visible .entry scale(.param .u64 .ptr .global .align 1 a, .param .f32 f, .param .u32 n)
> {
>   .reg .pred %p<2>;
>   .reg .f32 %f<4>;
>   .reg .b32 %r<6>;
>   .reg .b64 %rd<5>;
>   .loc 1 3 1
>   ld.param.u64 %rd1, [a];
>   ld.param.f32 %f1, [f];
>   ld.param.u32 %r1, [n];
>   mov.u32 %r2, %ctaid.x;
>   mov.u32 %r3, %ntid.x;
>   mov.u32 %r4, %tid.x;
>   mad.lo.s32 %r5, %r2, %r3, %r4;
>   setp.ge.s32 %p1, %r5, %r1;
>   @%p1 bra End;
>   .loc 1 5 9
>   mul.wide.s32 %rd2, %r5, 4;
>   cvta.to.global.u64 %rd3, %rd1;
>   add.s64 %rd4, %rd3, %rd2;
>   ld.global.f32 %f2, [%rd4];
>   mul.f32 %f3, %f2, %f1;
>   st.global.f32 [%rd4], %f3;
> End:
>   ret;
> }
> .visible .entry gather(.param .u64 to, .param .u64 from, .param .u64 index)
> {
>   .reg .f32 %f<2>;
>   .reg .b32 %r<3>;
>   .reg .b64 %rd<10>;
>   .loc 1 11 5
>   ld.param.u64 %rd1, [to];
>   ld.param.u64 %rd2, [from];
>   ld.param.u64 %rd3, [index];
>   mov.u32 %r1, %tid.x;
>   mul.wide.u32 %rd4, %r1, 4;
>   add.s64 %rd5, %rd3, %rd4;
>   ld.global.u32 %r2, [%rd5];
>   mul.wide.s32 %rd6, %r2, 4;
>   add.s64 %rd7, %rd2, %rd6;
>   ld.global.f32 %f1, [%rd7];
>   add.s64 %rd8, %rd1, %rd4;
>   st.global.f32 [%rd8], %f1;
>   ret;
> }
> .file 1 "/src/scale.cu"
> END
$ moat ptx explain $T/a.ptx
scale: 2 accesses: all bounded
  scale.cu:5  bounded  reads 4 bytes at p0 + 4*(blockIdx.x*blockDim.x + threadIdx.x)
                       if blockIdx.x*blockDim.x + threadIdx.x < p2
  scale.cu:5  bounded  writes 4 bytes at p0 + 4*(blockIdx.x*blockDim.x + threadIdx.x)
                       if blockIdx.x*blockDim.x + threadIdx.x < p2

gather: 3 accesses: 1 not bounded, 2 bounded
  scale.cu:11  not bounded  reads 4 bytes of p1: the index is loaded from memory
                            help: compare the index with the size before it is used
  scale.cu:11  bounded      reads 4 bytes at p2 + 4*threadIdx.x
  scale.cu:11  bounded      writes 4 bytes at p0 + 4*threadIdx.x

total: 5 accesses: 1 not bounded, 4 bounded (80 % bounded); every access bounded in 1 of 2 kernels
         1  not bounded: the index is loaded from memory
p0, p1, ... are the parameters of a kernel, in their order
$ moat ptx explain $T/a.ptx --launch 'scale<<<4,256>>>(*4000, 2.0, 1000)'
scale: 2 accesses: all inside
  scale.cu:5  inside  reads p0[0 .. 3,999] of 4,000 bytes
  scale.cu:5  inside  writes p0[0 .. 3,999] of 4,000 bytes
$ moat ptx explain $T/a.ptx --launch 'scale<<<4,256>>>(*4000, 2.0, 1001)'
scale: 2 accesses: all outside
  scale.cu:5  outside  reads p0[0 .. 4,003]: needs 4,004 bytes, the buffer has 4,000
  scale.cu:5  outside  writes p0[0 .. 4,003]: needs 4,004 bytes, the buffer has 4,000
[status 97]
$ moat ptx explain $T/a.ptx --launch 'sca<<<4,256>>>(*, 2.0, 1000)'
scale: 2 accesses: all bounded
  scale.cu:5  bounded  reads p0[0 .. 3,999]
  scale.cu:5  bounded  writes p0[0 .. 3,999]
$ moat ptx explain $T/a.ptx --launch 'scale<<<4,256>>>(*4000+16, 2.0, 1000)'
scale: 2 accesses: all outside
  scale.cu:5  outside  reads p0[16 .. 4,015]: needs 4,016 bytes, the buffer has 4,000
  scale.cu:5  outside  writes p0[16 .. 4,015]: needs 4,016 bytes, the buffer has 4,000
[status 97]
$ moat ptx explain $T/a.ptx --launch 'scale<<<4,256>>>(*4000, 2.0, 0)'
scale: 2 accesses: all unreachable
  scale.cu:5  unreachable  reads 4 bytes
  scale.cu:5  unreachable  writes 4 bytes
$ moat ptx explain $T/a.ptx --launch 'gather<<<1,100>>>(*400, *4k, *396)'
gather: 3 accesses: 1 outside, 1 not bounded, 1 inside
  scale.cu:11  outside      reads p2[0 .. 399]: needs 400 bytes, the buffer has 396
  scale.cu:11  not bounded  reads 4 bytes of p1: the index is loaded from memory
                            help: compare the index with the size before it is used
  scale.cu:11  inside       writes p0[0 .. 399] of 400 bytes
[status 97]

# Behind a table of branch targets nothing is certain.
$ cat > $T/brx.ptx <<'END'
> .version 8.5
> .target sm_90
> .address_size 64
> .visible .entry choose(.param .u64 .ptr .global .align 4 a, .param .u64 .ptr .global .align 4 f)
> {
>   .reg .b32 %r<2>;
>   .reg .b64 %rd<3>;
>   ld.param.u64 %rd1, [a];
>   ld.param.u64 %rd2, [f];
>   ld.global.u32 %r1, [%rd2];
>   targets: .branchtargets A, B;
>   brx.idx %r1, targets;
> A:
>   st.global.u32 [%rd1+4000], %r1;
> B:
>   ret;
> }
> END
$ moat ptx explain $T/brx.ptx --launch 'choose<<<1,1>>>(*4000, *4)'
choose: 2 accesses: 1 maybe outside, 1 inside
  PTX:14    maybe outside  writes at most p0[4,000 .. 4,003]: needs 4,004 bytes, the buffer has 4,000
  PTX:10    inside         reads p1[0 .. 3] of 4 bytes

# JSON has all of it.
$ moat ptx explain --format=json $T/a.ptx | jq -c '.total'
{"kernels":2,"functions":0,"bounded_kernels":1,"accesses":5,"counts":{"outside":0,"maybe_outside":0,"not_bounded":1,"bounded":4,"inside":0,"unreachable":0},"not_bounded":[{"why":"the index is loaded from memory","accesses":1}]}
$ moat ptx explain --format=json $T/a.ptx | jq -c '.modules[0].kernels[1] | .name, .counts, .accesses[0]'
"gather"
{"outside":0,"maybe_outside":0,"not_bounded":1,"bounded":2,"inside":0,"unreachable":0}
{"verdict":"not_bounded","file":"/src/scale.cu","line":11,"ptx_line":45,"reads":true,"writes":false,"atomic":false,"space":"global","bytes":4,"root":{"kind":"parameter","name":"from","parameter":1},"address":"p1 + 4*?","why":"the index is loaded from memory","help":"compare the index with the size before it is used"}
$ moat ptx explain --format=json $T/a.ptx --launch 'scale<<<4,256>>>(*4000, 2.0, 1001)' | jq -c '.launch, .modules[0].kernels[0].accesses[0]'
"scale<<<4,256>>>(*4000, 2.0, 1001)"
{"verdict":"outside","file":"/src/scale.cu","line":5,"ptx_line":24,"reads":true,"writes":false,"atomic":false,"space":"global","bytes":4,"root":{"kind":"parameter","name":"a","parameter":0},"lowest":0,"highest":4003,"exact":true,"guarded":true,"buffer":4000,"needs":4004,"address":"p0 + 4*(blockIdx.x*blockDim.x + threadIdx.x)","if":"blockIdx.x*blockDim.x + threadIdx.x < p2"}

# What is wrong with a launch is shown with its place.
$ moat ptx explain $T/a.ptx --launch 'scale<<<4,256>>(*4000, 2.0, 1000)'
2> --launch:1:14: error: "," or ">>>" is expected here
2>   scale<<<4,256>>(*4000, 2.0, 1000)
2>                ^
[status 2]
$ moat ptx explain $T/a.ptx --launch 'scale<<<4,256>>>(*4000, 2.0)'
2> --launch:1:17: error: the kernel takes 3 arguments, but 2 are given
2>   scale<<<4,256>>>(*4000, 2.0)
2>                   ^
[status 2]
$ moat ptx explain $T/a.ptx --launch 'scale<<<4,256>>>(*4000, 2.0, *8)'
2> --launch:1:30: error: argument 3 is no pointer: it has 4 bytes
2>   scale<<<4,256>>>(*4000, 2.0, *8)
2>                                ^~
[status 2]
$ moat ptx explain $T/a.ptx --launch 'scale<<<4,2048>>>(*4000, 2.0, 8)'
2> moat: error: $T/a.ptx: scale: no device can launch it in this shape
[status 2]
$ moat ptx explain $T/a.ptx --launch 'scala<<<4,256>>>(*4000, 2.0, 1000)'
2> --launch:1:1: error: no such kernel; the file has: scale, gather
2>   scala<<<4,256>>>(*4000, 2.0, 1000)
2>   ^~~~~
[status 2]
$ moat ptx explain --format=xml $T/a.ptx
2> moat: error: this command prints text or json; sarif and xml are for reports
[status 2]
$ moat ptx explain
2> moat: error: `moat ptx explain` takes one file, but 0 were given
[status 2]

# What is malformed is not analysed.
$ sed 's/mov.u32 %r4, %tid.x/mov.u32 %r4/' $T/a.ptx > $T/malformed.ptx
$ moat ptx explain $T/malformed.ptx
gather: 3 accesses: 1 not bounded, 2 bounded
  scale.cu:11  not bounded  reads 4 bytes of p1: the index is loaded from memory
                            help: compare the index with the size before it is used
  scale.cu:11  bounded      reads 4 bytes at p2 + 4*threadIdx.x
  scale.cu:11  bounded      writes 4 bytes at p0 + 4*threadIdx.x

total: 3 accesses: 1 not bounded, 2 bounded (67 % bounded); every access bounded in 0 of 1 kernel
         1  not bounded: the index is loaded from memory
p0, p1, ... are the parameters of a kernel, in their order
2> moat: error: $T/malformed.ptx: scale: an instruction lacks operands; `moat ptx verify` says which
[status 2]
$ moat ptx print --dump-after=roots $T/malformed.ptx > $T/log
2> moat: error: $T/malformed.ptx: module 1: an instruction lacks operands; `moat ptx verify` says which
[status 2]

# Two buffers that a loop swaps: each must contain what is touched.
$ cat > $T/turns.ptx <<'END'
> .version 8.5
> .target sm_90
> .address_size 64
> .visible .entry turns(.param .u64 a, .param .u64 b, .param .u32 n)
> {
>   .reg .pred %p<2>;
>   .reg .b32 %r<4>;
>   .reg .b64 %rd<9>;
>   ld.param.u64 %rd1, [a];
>   ld.param.u64 %rd2, [b];
>   ld.param.u32 %r1, [n];
>   cvta.to.global.u64 %rd3, %rd1;
>   cvta.to.global.u64 %rd4, %rd2;
>   mov.u32 %r2, %tid.x;
>   mul.wide.u32 %rd5, %r2, 4;
> Turn:
>   add.s64 %rd6, %rd3, %rd5;
>   st.global.u32 [%rd6], %r1;
>   mov.u64 %rd7, %rd3;
>   mov.u64 %rd3, %rd4;
>   mov.u64 %rd4, %rd7;
>   add.s32 %r1, %r1, -1;
>   setp.gt.s32 %p1, %r1, 0;
>   @%p1 bra Turn;
>   ret;
> }
> END
$ moat ptx explain $T/turns.ptx
turns: 1 access: 1 bounded
  PTX:18    bounded  writes 4 bytes at (p0 or p1) + 4*threadIdx.x

total: 1 access: 1 bounded; every access bounded in 1 of 1 kernel
p0, p1, ... are the parameters of a kernel, in their order
$ moat ptx explain $T/turns.ptx --launch 'turns<<<1,64>>>(*256,*256,9)'
turns: 1 access: 1 inside
  PTX:18    inside  writes at most p0 or p1[0 .. 255] of 256 bytes

$ moat ptx explain $T/turns.ptx --launch 'turns<<<1,64>>>(*256,*252,9)'
turns: 1 access: 1 maybe outside
  PTX:18    maybe outside  writes at most p0 or p1[0 .. 255]: needs 256 bytes, the buffer has 252

$ moat ptx explain --format=json $T/turns.ptx | grep -A2 '"root"' | tr -d '\t'
"root":{
"kind":"choice",
"parameters":[0, 1]
