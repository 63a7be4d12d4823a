# SPDX-License-Identifier: MIT
# PTX is parsed and printed again, one statement per line; --raw prints what is stored.

$ cat > $T/a.ptx <<'END'
> // a comment
> .version 8.5 .target sm_80, debug
> .address_size 64
> .file 1 "a.cu"
> .global .align 4 .b32 table[2] = { 1, /* two */ 2 };
> .visible .entry scale( .param .u64 a, .param .f32 by ) .maxntid 128, 1, 1
> { .reg .b64 %rd<2>; .reg .f32 %f<3>; .reg .pred p;
>   ld .param .u64 %rd1, [a]; ld.param.f32 %f1, [by];
>   .loc 1 7 3
> again: ld.global.f32 %f2, [%rd1+(4*2)]; mul.f32 %f2, %f2, %f1;
>   st.global.f32 [ %rd1 ], %f2;
>   { .reg .f32 %f1; @!p bra again; }
>   frobnicate.x2 {%f1, %f2}, [%rd1];
>   ret; }
> END
$ moat ptx print $T/a.ptx
.version 8.5
.target sm_80, debug
.address_size 64
.file 1 "a.cu"
.global .align 4 .b32 table[2] = { 1, /* two */ 2 };
.visible .entry scale(
	.param .u64 a,
	.param .f32 by
)
.maxntid 128, 1, 1
{
	.reg .b64 %rd<2>;
	.reg .f32 %f<3>;
	.reg .pred p;
	ld.param.u64 %rd1, [a];
	ld.param.f32 %f1, [by];
	.loc 1 7 3
again:
	ld.global.f32 %f2, [%rd1+8];
	mul.f32 %f2, %f2, %f1;
	st.global.f32 [%rd1], %f2;
	{
	.reg .f32 %f1;
	@!p bra again;
	}
	frobnicate.x2 {%f1, %f2}, [%rd1];
	ret;
}
$ moat ptx print $T/a.ptx > $T/b.ptx && moat ptx print $T/b.ptx | diff $T/b.ptx -
$ moat ptx print --raw $T/a.ptx | diff $T/a.ptx -
$ moat ptx print --module=1 $T/a.ptx | diff $T/b.ptx -

# Texts as other systems and fatbins have them.
$ sed 's/$/\r/' $T/a.ptx > $T/dos.ptx; moat ptx print $T/dos.ptx | tr -d '\r' | diff $T/b.ptx -
$ { cat $T/a.ptx; printf '\0\0\0'; } > $T/nul.ptx; moat ptx print $T/nul.ptx | diff $T/b.ptx -

# Several modules, each under its heading.
$ moat ptx print test/fuzz/corpus/image/two-archs.fatbin | grep '^//\|^.version\|^.target'
// module 2: ptx sm_90a
.version 9.0
.target sm_90a
// module 4: ptx sm_100f
.version 9.0
.target sm_100f
$ moat ptx print --module=2 test/fuzz/corpus/image/two-archs.fatbin | grep '^//\|^.version\|^.target'
.version 9.0
.target sm_90a
$ moat ptx print --module=2 --raw test/fuzz/corpus/image/two-archs.fatbin | grep '^.version\|^.target'
.version 9.0
.target sm_90a
$ moat ptx print --module=1 test/fuzz/corpus/image/two-archs.fatbin
2> moat: error: test/fuzz/corpus/image/two-archs.fatbin: module 1 is no PTX (kind: cubin)
[status 2]

# Errors show the line.
$ printf '.version 8.5\n.target sm_80\n.entry k()\n{\n\tmov.u32 %%r1, 5;\n' > $T/cut.ptx; moat ptx print $T/cut.ptx
2> $T/cut.ptx:3:1: error: this function has no end: '}' is missing
2>   .entry k()
2>   ^
[status 2]
$ printf '.version 8.5\n.target sm_80\n.entry k()\n{\n\tmov.u32 %%r1, 5;\n}\n' > $T/undeclared.ptx; moat ptx print $T/undeclared.ptx
2> $T/undeclared.ptx:5:10: error: '%r1' is not declared
2>    mov.u32 %r1, 5;
2>            ^~~
[status 2]
$ printf '.version 8.5\n.entry k()\n{\n\tret\n}\n' > $T/semicolon.ptx; moat ptx print $T/semicolon.ptx
2> $T/semicolon.ptx:5:1: error: ';' is missing behind the instruction
2>   }
2>   ^
[status 2]
$ printf '.version 8.5\n.entry k()\n{\n\tbra $L_%s;\n}\n' $(printf 'x%.0s' {1..300}) > $T/long.ptx; moat ptx print $T/long.ptx
2> $T/long.ptx:4:6: error: '$L_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' is not declared
2>    bra $L_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
2>        ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
[status 2]
$ printf '.version 8.5\n.entry k() { /* and so on' > $T/comment.ptx; moat ptx print $T/comment.ptx
2> $T/comment.ptx:2:14: error: comment without an end
2>   .entry k() { /* and so on
2>                ^~~~~~~~~~~~
[status 2]
$ printf '.version 8.5\n.global .b8 x\377;' > $T/byte.ptx; moat ptx print $T/byte.ptx
2> $T/byte.ptx:2:14: error: unexpected byte
2>   .global .b8 x?;
2>                ^
[status 2]
$ moat ptx print --module=2 $T/a.ptx
2> moat: error: $T/a.ptx has 1 module, there is no module 2
[status 2]
$ moat ptx print --module=x $T/a.ptx
2> --module: error: "x" is not a whole number
[status 2]
$ moat ptx print --module=0 $T/a.ptx
2> --module: error: 0 is not within 1 to 2147483647
[status 2]
$ moat ptx print $T/absent.ptx
2> $T/absent.ptx: error: No such file or directory
[status 2]
$ moat ptx print $T
2> $T: error: Is a directory
[status 2]
$ : > $T/empty.ptx; moat ptx print $T/empty.ptx
2> $T/empty.ptx: offset 0x0: error: empty file
[status 2]
$ printf x > $T/x.ptx; moat ptx print $T/x.ptx
2> $T/x.ptx: offset 0x0: error: not an ELF file, archive, fatbin or PTX
[status 2]
$ moat ptx print
2> moat: error: `moat ptx print` takes one file, but 0 were given
[status 2]
$ moat ptx print $T/a.ptx $T/b.ptx
2> moat: error: `moat ptx print` takes one file, but 2 were given
[status 2]
$ moat ptx print $T/a.ptx > /dev/full
2> moat: error: cannot write the output: No space left on device
[status 2]

# Hostile texts end quickly.
$ { printf '.version 8.5\n.target sm_80\n.entry k() {\n'; head -c 5000000 /dev/zero | tr '\0' '{'; } > $T/deep.ptx; moat ptx print $T/deep.ptx 2>&1 | cut -c 1-99
$T/deep.ptx:4:64: error: blocks are nested more than 64 deep
  {{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{
                                                                 ^
$ { printf '.version 8.5\n.target sm_80\n.entry k() {\nmov.u32 a, '; head -c 5000000 /dev/zero | tr '\0' '('; } > $T/deep.ptx; moat ptx print $T/deep.ptx 2>&1 | cut -c 1-99
$T/deep.ptx:4:76: error: this constant expression is nested too deep
  mov.u32 a, ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((
                                                                             ^
$ { printf '.version 8.5\n.target sm_80\n.entry k() {\n'; yes 'L:' | head -n 1000000; } > $T/labels.ptx; moat ptx print $T/labels.ptx
2> $T/labels.ptx:5:1: error: 'L' is declared twice
2>   L:
2>   ^
[status 2]
$ printf '.version 8.5\n.target sm_80\n.entry k() {\n.reg .b32 %%r<16000000>, %%s<16000000>;\nmov.b32 %%r1, %%s2;\n}\n' > $T/many.ptx; moat ptx print $T/many.ptx
2> $T/many.ptx:4:25: error: there are more than 16777216 registers
2>   .reg .b32 %r<16000000>, %s<16000000>;
2>                           ^
[status 2]
