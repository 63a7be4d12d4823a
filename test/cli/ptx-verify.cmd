# SPDX-License-Identifier: MIT
# Is PTX well formed (status 2 if not), and does it stay inside its variables (97 if not)?

$ cat > $T/good.ptx <<'END'
> .version 8.5
> .target sm_80
> .address_size 64
> .shared .align 4 .b32 buffer[32];
> .visible .entry good(.param .u64 a)
> {
>   .reg .b32 %r<3>;
>   ld.shared.u32 %r1, [buffer+124];
>   st.shared.u32 [buffer], %r1;
>   ret;
> }
> END
$ moat ptx verify $T/good.ptx
errors: 0, wrong accesses: 0, in modules: 1, functions: 1, instructions: 3
$ sed 's/good/bad/; s/+124/+128/; s/\[buffer\]/[buffer+2]/' $T/good.ptx > $T/bad.ptx; moat ptx verify $T/bad.ptx
errors: 0, wrong accesses: 2, in modules: 1, functions: 1, instructions: 3
2> $T/bad.ptx:8:3: warning: shared-buffer-overflow: READ of size 4 at byte 128 of 'buffer', which has 128 bytes
2>     ld.shared.u32 %r1, [buffer+128];
2>     ^~~~~~~~~~~~~
2> $T/bad.ptx: note: in 'bad'
2> $T/bad.ptx:9:3: warning: misaligned-address: WRITE of size 4 at byte 2 of 'buffer'
2>     st.shared.u32 [buffer+2], %r1;
2>     ^~~~~~~~~~~~~
2> $T/bad.ptx: note: in 'bad'
[status 97]

# What ptxas would refuse.
$ sed 's/ret;/add.s32 %r1, %rd9, 1;/; s/%r<3>/%r<3>; .reg .b64 %rd<10>/' $T/good.ptx > $T/type.ptx; moat ptx verify $T/type.ptx
errors: 1, wrong accesses: 0, in modules: 1, functions: 1, instructions: 3
2> $T/type.ptx:10:3: error: an operand wants .s32, but %rd9 is .b64
2>     add.s32 %r1, %rd9, 1;
2>     ^~~~~~~
[status 2]
$ sed 's/ld.shared/ld.global/' $T/good.ptx > $T/space.ptx; moat ptx verify $T/space.ptx
errors: 1, wrong accesses: 0, in modules: 1, functions: 1, instructions: 3
2> $T/space.ptx:8:3: error: 'buffer' is in .shared, not in .global
2>     ld.global.u32 %r1, [buffer+124];
2>     ^~~~~~~~~~~~~
[status 2]
$ sed 's/buffer\[32\];/buffer[32] = {1};/' $T/good.ptx > $T/init.ptx; moat ptx verify $T/init.ptx
errors: 1, wrong accesses: 0, in modules: 1, functions: 1, instructions: 3
2> $T/init.ptx:4:23: error: only .global and .const variables can be initialised
2>   .shared .align 4 .b32 buffer[32] = {1};
2>                         ^
[status 2]
$ sed 's/.target sm_80//' $T/good.ptx > $T/target.ptx; moat ptx verify $T/target.ptx
errors: 1, wrong accesses: 0, in modules: 1, functions: 1, instructions: 3
2> $T/target.ptx:1:1: error: there is no .target
2>   .version 8.5
2>   ^
[status 2]
$ sed 's/ret;/call good, (%r1);/' $T/good.ptx > $T/call.ptx; moat ptx verify $T/call.ptx
errors: 1, wrong accesses: 0, in modules: 1, functions: 1, instructions: 3
2> $T/call.ptx:10:3: error: 'good' is not a function that can be called
2>     call good, (%r1);
2>     ^~~~
[status 2]

# What is not known is said and left alone.
$ sed 's/ret;/frobnicate %r1; add.fancy.s32 %r1;/; s/.address_size 64/&\n.frob 1;/' $T/good.ptx > $T/new.ptx; moat ptx verify $T/new.ptx
errors: 0, wrong accesses: 0, in modules: 1, functions: 1, instructions: 4
2> $T/new.ptx:11:3: warning: 'frobnicate' is not known: kept as it is, not checked
2>     frobnicate %r1; add.fancy.s32 %r1;
2>     ^~~~~~~~~~
2> $T/new.ptx:11:19: warning: 'add.fancy.s32' is not known: kept as it is, not checked
2>     frobnicate %r1; add.fancy.s32 %r1;
2>                     ^~~~~~~~~~~~~
2> $T/new.ptx:4:1: warning: this directive is not known: kept as it is, not checked
2>   .frob 1;
2>   ^

# Both at once: not well formed wins. Each kind of message is printed twenty times at most, but counted.
$ sed 's/ret;/ret %r1;/' $T/bad.ptx > $T/both.ptx; moat ptx verify $T/both.ptx
errors: 1, wrong accesses: 2, in modules: 1, functions: 1, instructions: 3
2> $T/both.ptx:8:3: warning: shared-buffer-overflow: READ of size 4 at byte 128 of 'buffer', which has 128 bytes
2>     ld.shared.u32 %r1, [buffer+128];
2>     ^~~~~~~~~~~~~
2> $T/both.ptx: note: in 'bad'
2> $T/both.ptx:9:3: warning: misaligned-address: WRITE of size 4 at byte 2 of 'buffer'
2>     st.shared.u32 [buffer+2], %r1;
2>     ^~~~~~~~~~~~~
2> $T/both.ptx: note: in 'bad'
2> $T/both.ptx:10:3: error: 'ret' has 0 operands, not 1
2>     ret %r1;
2>     ^~~
[status 2]
$ { sed '/ret;/,$d' $T/good.ptx; for i in {1..30}; do echo "ld.shared.u32 %r1, [buffer+$((i * 128))];"; done; echo '}'; } > $T/many.ptx; moat ptx verify $T/many.ptx 2>&1 | grep -c warning; moat ptx verify $T/many.ptx 2> /dev/null
20
errors: 0, wrong accesses: 30, in modules: 1, functions: 1, instructions: 32
[status 97]

# Errors of the text, of the file.
$ head -c 170 $T/good.ptx > $T/cut.ptx; moat ptx verify $T/cut.ptx
2> $T/cut.ptx:5:1: error: this function has no end: '}' is missing
2>   .visible .entry good(.param .u64 a)
2>   ^
[status 2]
$ moat ptx verify $T/absent.ptx
2> $T/absent.ptx: error: No such file or directory
[status 2]
$ moat ptx verify --format=json $T/good.ptx
2> --format: error: not an option of `moat ptx verify`, but of: explain,ptx explain,ptx list,ptx stats,report,run
[status 2]
$ moat ptx verify --module=2 $T/good.ptx
2> moat: error: $T/good.ptx has 1 module, there is no module 2
[status 2]
$ moat ptx verify test/fuzz/corpus/image/two-archs.fatbin
errors: 0, wrong accesses: 0, in modules: 2, functions: 4, instructions: 30
$ moat ptx verify --module=2 test/fuzz/corpus/image/two-archs.fatbin
errors: 0, wrong accesses: 0, in modules: 1, functions: 2, instructions: 15
