#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# --mode=check: each program of test/guard/check_errors.cu must be reported as what it is, with kernel, line,
# thread, buffer and launch; its twin runs silently and checked. The context is not in error afterwards.
set -u
. test/guard/check.bash
compile 75 check_errors

lacks() {  # lacks NAME: prints what a report should show and does not
    grep -q 'in kernel .* .*check_errors.cu:[0-9]' "$T/log" || echo 'the line is not named'
    grep -Eq '^(READ|WRITE) of size [0-9]+ by thread \([0-9]+,0,0\) in block' "$T/log" ||
        echo 'the thread is not named'
    grep -q 'PTX line [0-9]*: ' "$T/log" || echo 'no PTX line'
    grep -q "^launched by cuLaunchKernel at:" "$T/log" ||
        echo 'the launch is not shown'
    ! grep -q '__device_stub_' "$T/log" || echo 'frames of nvcc'
    kernels="passes|fill|sum|copy4|store_at|walk|rows|views|from_one|backwards|count|variable|by_"
    grep -Eq "in kernel .*($kernels)" "$T/log" || echo 'the kernel is not named'
    [[ $1 != in_a_function && $1 != passed_far && $1 != *through_a_pointer ]] ||
        grep -q '^    #0 set.* .*check_errors.cu:[0-9]*$' "$T/log" || echo 'the function is not named'
    [[ $1 != second_through_a_pointer ]] || grep -q 'in kernel by_pointer(' "$T/log" ||
        echo 'another kernel is named'
    [[ $1 == null || $1 == module_variable ]] || grep -q '^allocated by' "$T/log" || echo 'no allocation'
    [ "$1" != module_variable ] || grep -q '^note: it is located .* the global variable .* bytes' "$T/log" ||
        echo 'the variable is not named'
    [[ $found != *after-free* ]] || grep -q '^freed by' "$T/log" || echo 'no free'
}

list_cases "$T/check_errors"
while IFS=$'\t' read -r name types; do
    run "$T/check_errors" good "$name"
    [ "$status" = 0 ] && [ -z "$found" ] && grep -q 'kernel launches checked' "$T/log" &&
        ! grep -q 'kernel launches not checked' "$T/log"
    verdict $? "good $name"
    run "$T/check_errors" bad "$name"
    missing=$(lacks "$name" | paste -sd ,)
    [ "$status" = 97 ] && [[ $found =~ ^($types)$ ]] && [ -z "$missing" ]
    verdict $? "bad $name${missing:+ ($missing)}"
done <"$T/cases"
enough_cases 40

# A line that reads and writes one wrong address is one error.
cc -g -Isrc -o "$T/app" demo/app.c -L"$BUILD/lib/moat" -lcuda || exit 1
run "$T/app"
[ "$status" = 97 ] && [ "$(grep -c 'ERROR: moat' "$T/log")" = 1 ] && grep -q '^READ of size 4' "$T/log" &&
    grep -q '^note: the same line also writes to this address$' "$T/log" &&
    grep -q 'report 1 was seen 2 times' "$T/log"
verdict $? 'a line that reads and writes'
# Where its address came from, with the numbers of the thread.
index='blockIdx.x\*blockDim.x + threadIdx.x'
grep -q "^note: the address is p0 + 4\*($index): element 262144, and the buffer has 262144 of 4" "$T/log" &&
    grep -q "^note: it is reached if $index <= p2, here 262144 <= 262144$" "$T/log"
verdict $? 'the index'
run "$T/check_errors" bad write_before
grep -q '^note: the address is p0 + 2\*(threadIdx.x + p1 + blockDim.x\*k1) with k1 = 0: element -1, ' "$T/log"
verdict $? 'the index in a loop'
# What the names of arguments mean.
run "$T/check_errors" bad wide_second
grep -q "^note: the address is p1: .* (p1 is the kernel's second argument)$" "$T/log"
verdict $? 'an argument'
run "$T/check_errors" bad in_a_struct
words="p0.16 is the value at byte 16 of the kernel's first argument"
grep -q "^note: the address is p0.16 + .* ($words)$" "$T/log" &&
    grep -q '^note: it is reached if threadIdx.x < p0.0, here' "$T/log"
verdict $? 'a part of an argument'

# A million wrong accesses: few records, all of them counted.
run "$T/check_errors" bad a_million
grep -Eq 'wrong accesses that kernels made +1,280,000' "$T/log"
verdict $? 'every wrong access is counted'
! grep -q 'dropped' "$T/log"
verdict $? 'nothing is dropped'

# Mapped memory does not end with its context, so moat frees that of its table: 60 would not fit into 256 MiB.
# A GPU has more, and takes a second or two for a context beside other processes.
resets=60
[ "${GUARD_DEVICE:-cpu}" != gpu ] || resets=5
RESETS=$resets run --cpu-memory=256M "$T/check_errors" bad resets
[ "$status $found" = '97 heap-buffer-overflow' ] && grep -Eq "kernel launches checked +$resets\$" "$T/log"
verdict $? 'tables of contexts that have ended'

# The kernel ends at the first error, and the program's next call fails.
run --on-error=trap "$T/check_errors" bad write_past
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ] &&
    grep -q '^[0-9]*: cudaDeviceSynchronize' "$T/log" &&
    grep -q '^note: the kernel was ended by --on-error=trap$' "$T/log"
verdict $? '--on-error=trap'
# A trap of the program's own is an error.
run --on-error=trap "$T/check_errors" bad own_trap
[ "$status" = 97 ] && [ "$found" = kernel-fault ]
verdict $? 'a trap of the program'
! grep -q '__moat_\|(0x0)\|could not be updated' "$T/log"
verdict $? 'a fault of rewritten code has the names of the program'

# A thread of moat's own finds what a kernel did while the program sleeps.
run --halt-on-error "$T/check_errors" bad host_idle
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ] && ! grep -q 'went on' "$T/log"
verdict $? '--halt-on-error'

# The memory is not the device's, and the kernel ends: one report, with the launch. Some systems let a GPU
# access it.
if [ "${GUARD_DEVICE:-cpu}" = cpu ]; then
    run "$T/check_errors" bad host_pointer
    [ "$status" = 97 ] && [ "$found" = wild-access ] &&
        grep -q 'in kernel store_at(.*check_errors.cu:71' "$T/log" &&
        grep -q '^launched by cuLaunchKernel at:' "$T/log" &&
        grep -q '^note: it has ended the kernel$' "$T/log" &&
        grep -q '^note: the pointer 0x[0-9a-f]* is host memory: the stack of the program$' "$T/log"
    verdict $? 'a pointer to the host'
fi
run "$T/check_errors" good host_pointer
[ "$status" = 0 ] && [ -z "$found" ]
verdict $? 'no pointer to the host'

# A kernel that is not checked: a freed buffer among its arguments is worth a note, and is no error.
run --kernel-name=fill "$T/check_errors" bad stale
[ "$status" = 0 ] && [ -z "$found" ] &&
    grep -q 'ignores.* runs unchecked, was passed 0x.* as argument 3: that is 20 bytes into a 400' "$T/log" &&
    grep -Eq 'were passed a pointer into a freed buffer +1$' "$T/log" &&
    grep -A 2 'moat: kernels that ran unchecked$' "$T/log" | grep -Eq '^ +2  ignores\('
verdict $? 'a freed argument'
run --kernel-name=fill "$T/check_errors" good stale
[ "$status" = 0 ] && [ -z "$found" ] && ! grep -q 'was passed' "$T/log"
verdict $? 'no freed argument'
run "$T/check_errors" bad stale
[ "$status" = 0 ] && [ -z "$found" ] && ! grep -q 'was passed\|ran unchecked' "$T/log"
verdict $? 'a freed argument that is not used'

# A kernel that is not checked calls a function through a pointer, before the module knows the table; and
# after: then the report says that the kernel is not known.
run --kernel-name=fill "$T/check_errors" good through_a_pointer
[ "$status" = 0 ] && [ -z "$found" ]
verdict $? 'an unchecked kernel calls a checked function'
run --kernel-name=by_pointer_too "$T/check_errors" bad second_through_a_pointer
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ] &&
    grep -q 'in function .*set(.*check_errors.cu:[0-9]' "$T/log" &&
    grep -q '^note: the kernel that called it is not known; launched last:.* by_pointer(' "$T/log" &&
    grep -q '^SUMMARY:.*check_errors.cu:[0-9]* in .*set(' "$T/log"
verdict $? 'a function of an unknown kernel'

# From the cache, everything is known as at the first time.
run "$T/check_errors" bad write_past
missing=$(lacks write_past | paste -sd ,)
[ "$status" = 97 ] && [ -z "$missing" ] && grep -q 'modules loaded from the cache' "$T/log"
verdict $? "from the cache${missing:+ ($missing)}"

# Nothing else may decide which code runs.
"$MOAT" --device=cpu --mode=check,count true >"$T/log" 2>&1
status=$? found=
grep -q 'both decide' "$T/log"
verdict $? 'with counters'
# With canaries in place of pages.
run --mode=check,canary "$T/check_errors" bad write_past
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ]
verdict $? 'with canaries'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
