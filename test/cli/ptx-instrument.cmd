# SPDX-License-Identifier: MIT
# PTX as a pass leaves it. What passes do, test/pass and src/pass/*_test.c look at.

$ cat > $T/a.ptx <<'END'
> .version 9.0 .target sm_75 .address_size 64
> .visible .entry get(.param .u64 a)
> { .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred p;
>   ld.param.u64 %rd1, [a];
>   @p ld.global.b32 %r1, [%rd1];
>   ret; }
> END
$ moat ptx instrument $T/a.ptx
.version 9.0
.target sm_75
.address_size 64
.weak .global .align 128 .u64 __moat_count_83a13a0eb5e324b1[160];
.visible .entry get(.param .u64 a)
{
	.reg .u32 %__moat_0_;
	.reg .pred %__moat_1_;
	.reg .u32 %__moat_2_;
	.reg .u64 %__moat_3_;
	.reg .u64 %__moat_4_;
	.reg .u64 %__moat_5_;
	.reg .b64 %rd<2>;
	.reg .b32 %r<2>;
	.reg .pred p;
	mov.u64 %__moat_5_, 0;
	mov.u32 %__moat_2_, %tid.x;
	mov.u32 %__moat_0_, %tid.y;
	or.b32 %__moat_2_, %__moat_2_, %__moat_0_;
	mov.u32 %__moat_0_, %tid.z;
	or.b32 %__moat_2_, %__moat_2_, %__moat_0_;
	mov.u32 %__moat_0_, %ctaid.x;
	or.b32 %__moat_2_, %__moat_2_, %__moat_0_;
	mov.u32 %__moat_0_, %ctaid.y;
	or.b32 %__moat_2_, %__moat_2_, %__moat_0_;
	mov.u32 %__moat_0_, %ctaid.z;
	or.b32 %__moat_2_, %__moat_2_, %__moat_0_;
	setp.eq.u32 %__moat_1_, %__moat_2_, 0;
	@%__moat_1_ red.global.add.u64 [__moat_count_83a13a0eb5e324b1+136], 1;
	ld.param.u64 %rd1, [a];
	@p add.u64 %__moat_5_, %__moat_5_, 1;
	@p ld.global.b32 %r1, [%rd1];
	mov.u32 %__moat_2_, %smid;
	and.b32 %__moat_2_, %__moat_2_, 7;
	mov.u64 %__moat_3_, __moat_count_83a13a0eb5e324b1;
	mad.wide.u32 %__moat_3_, %__moat_2_, 160, %__moat_3_;
	red.global.add.u64 [%__moat_3_], 1;
	red.global.add.u64 [%__moat_3_+40], %__moat_5_;
	mul.lo.u64 %__moat_4_, %__moat_5_, 4;
	red.global.add.u64 [%__moat_3_+56], %__moat_4_;
	ret;
}
$ moat ptx instrument --pass=count $T/a.ptx > $T/b.ptx && moat ptx verify $T/b.ptx
errors: 0, wrong accesses: 0, in modules: 1, functions: 1, instructions: 26

# A fatbin with PTX for several architectures.
$ moat ptx instrument test/fuzz/corpus/image/two-archs.fatbin | grep '^//\|^.target'
// module 2
.target sm_90a
// module 4
.target sm_100f

# What cannot be rewritten.
$ moat ptx instrument $T/b.ptx
2> moat: error: $T/b.ptx cannot be rewritten: it contains moat's names: it was rewritten before
[status 2]
$ sed 's/size 64/size 32/' $T/a.ptx > $T/c.ptx; moat ptx instrument $T/c.ptx
2> $T/c.ptx:1:1: error: addresses of 32 bits are not rewritten
2>   .version 9.0 .target sm_75 .address_size 32
2>   ^
2> moat: error: $T/c.ptx cannot be rewritten: see above
[status 2]
$ echo nonsense > $T/d.ptx; moat ptx instrument $T/d.ptx
2> $T/d.ptx: offset 0x0: error: not an ELF file, archive, fatbin or PTX
[status 2]
$ moat ptx instrument --pass=cont $T/a.ptx
2> moat: error: --pass: there is no pass "cont"
2>   there are: count, kheap, check, shadow, shadow_alone, shadow_128, shadow_8, shadow_unloaded, shadow_unloaded_128, shadow_unloaded_8, variants, fence, fence_modulo, fence_check, fence_watchdog, fence_modulo_watchdog, fence_check_watchdog
[status 2]
$ moat ptx instrument --module=2 $T/a.ptx
2> moat: error: $T/a.ptx has 1 module, there is no module 2
[status 2]
$ cat > $T/parent.ptx <<'END'
> .version 9.0 .target sm_90 .address_size 64
> .extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);
> .entry parent() { .param .b32 r; .param .b64 a, b; call (r), cudaLaunchDeviceV2, (a, b); ret; }
> END
$ moat ptx instrument $T/parent.ptx
// not rewritten: parent: device-side launch
.version 9.0
.target sm_90
.address_size 64
.weak .global .align 128 .u64 __moat_count_09cbf9761d4505a7[160];
.extern .func (.param .b32 r) cudaLaunchDeviceV2(
	.param .b64 a,
	.param .b64 b
);
.entry parent()
{
	.param .b32 r;
	.param .b64 a;
	.param .b64 b;
	call (r), cudaLaunchDeviceV2, (a, b);
	ret;
}
