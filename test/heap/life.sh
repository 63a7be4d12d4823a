#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# The ways in which processes live and end (heap_life_check.c): silent if they are correct, one report if not;
# over libc's allocator, and over others that are preloaded behind us if they are installed. Where TEST_ALL is
# 0, each way has one of the two ways to free.
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
library=$(realpath "$BUILD/lib/libmoat-heap.so")
tool=$BUILD/tool/heap_life_check
passed=0 failed=0 more=
cat >"$T/deep.c" <<'END'
#include <stdlib.h>
char *deep_give(size_t n) { return malloc(n); }
void deep_take(char *p) { free(p); }
END
gcc -shared -fPIC -o "$T/deep.so" "$T/deep.c" || exit 1
export DEEP_LIBRARY=$T/deep.so
# The handlers of this library are called while ours hold their locks.
cat >"$T/atfork.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
static void *kept[2000];
static void allocate(void)
{
    for (int i = 0; i < 2000; i++)
        kept[i] = malloc((size_t)i % 500);
    for (int i = 0; i < 2000; i++)
        free(kept[i]);
}
static __attribute__((constructor)) void begin(void) { pthread_atfork(allocate, allocate, allocate); }
END
gcc -shared -fPIC -o "$T/atfork.so" "$T/atfork.c" || exit 1
run() {  # run MODE PRELOAD NAME
    MOAT_OPTIONS=heap-free=$1$more LD_PRELOAD=$2 timeout 100 "$tool" "$3" >"$T/out" 2>"$T/log" </dev/null
}
fail() {
    failed=$((failed + 1))
    echo "$1"
    head -n 30 "$T/log" | sed 's/^/    | /'
}
over() {  # over PRELOAD LABEL NAME...
    local preload=$1 label=$2 mode way errors number
    shift 2
    for mode in eager lazy; do
        [ $mode = eager ] && number=0 || number=1
        for way; do
            number=$((number + 1))
            [ "${TEST_ALL:-1}" != 0 ] || [ $# = 1 ] || [ $((number % 2)) = 1 ] || continue
            if ! run $mode "$preload" "$way" || [ -s "$T/log" ]; then
                fail "$way ($mode, $label): status or output"
                continue
            fi
            run $mode "$preload" "$way+bug"
            errors=$(grep -c '^==[0-9]*==ERROR: moat: heap-buffer-overflow' "$T/log")
            if [ "$errors" = 0 ] || [ "$errors" != "$(grep -c '^==[0-9]*==ERROR' "$T/log")" ]; then
                fail "$way+bug ($mode, $label): the error is not found, or another is"
                continue
            fi
            passed=$((passed + 1))
        done
    done
}
mapfile -t ways < <("$tool")
[ ${#ways[@]} -gt 5 ] || { echo "no ways to live"; exit 1; }
over "$library" libc "${ways[@]}"
over "$library:$T/atfork.so" 'handlers that allocate' fork
more=:leak-check
over "$library" 'leaks looked for' exit_resizes
more=
for name in mimalloc jemalloc; do
    other=$(ldconfig -p | sed -n "s/.*lib$name\\.so.* => //p" | head -n 1)
    [ -n "$other" ] || continue
    # These ways have no blocks from libc's own heap, which these allocators do not know.
    over "$library:$other" $name fork fork_threads threads api exec
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
