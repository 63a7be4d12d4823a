#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# --mode=canary under load: test/guard/canary_stress.c allocates, launches and frees at random in several
# threads. All errors that it planted must be reported, and nothing else.
# CANARY_STRESS_SECONDS: how long; by default 10, in `make check` 4, and 600 with ThreadSanitizer, which only
# `make check-all` uses. Also CANARY_STRESS_THREADS, CANARY_STRESS_SEED.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device. PAIRS_OPTIONS: additional options.
set -u
seconds=10
[ "${TEST_ALL:-1}" = 1 ] || seconds=4
case $(cat "$BUILD/flags" 2>/dev/null) in
*fsanitize=thread*) seconds=600 ;;
*fsanitize*) echo 'this sanitizer wants to be loaded first'; exit 77 ;;
esac
"$MOAT" --mode=canary --version >/dev/null 2>&1 || { echo 'this moat has no --mode=canary'; exit 77; }
device=${GUARD_DEVICE:-cpu} seconds=${CANARY_STRESS_SECONDS:-$seconds}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0

run() {  # run SECONDS CLEAN: a run, and what was reported of each type in the file $T/found
    # shellcheck disable=SC2086
    timeout $((seconds * 10 + 120)) "$MOAT" --device="$device" --mode=canary \
        ${PAIRS_OPTIONS:-} --format=json \
        --log-file="$T/log" --print-limit=0 "$BUILD/tool/canary_stress" "$1" "${CANARY_STRESS_THREADS:-4}" \
        "${CANARY_STRESS_SEED:-$RANDOM}" $2 >"$T/out" 2>&1 </dev/null
    status=$?
    # Equal errors are reported once; their number is reported at the end.
    awk '
        function value(key,   rest) {
            rest = $0
            if (!sub(".*\"" key "\":\"?", "", rest))
                return ""
            sub(/[",}].*/, "", rest)
            return rest
        }
        /^\{"event":"error"/ { id = $0; sub(/.*"pid":[0-9]+,"id":/, "", id); sub(/,.*/, "", id); type[id] = $0
            sub(/.*"event":"error","type":"/, "", type[id]); sub(/".*/, "", type[id]); count[id] = 1 }
        /^\{"event":"repeat"/ { count[value("id")] = value("count") }
        END { for (id in count) n[type[id]] += count[id]; for (t in n) print t, n[t] }' "$T/log" >"$T/found"
}

of() {  # of TYPE: how many
    awk -v type="$1" '$1 == type { n = $2 } END { print n + 0 }' "$T/found"
}

# A scan reads what kernels write, by design; on the CPU device both happen in its own code. Functions are
# named below: ThreadSanitizer's helper would have moat preloaded too.
echo 'race:libmoat-cpu.so' >"$T/suppressions"
export TSAN_OPTIONS=${TSAN_OPTIONS:-}:symbolize=0:suppressions=$T/suppressions

places() {
    local library offset
    grep -A 3 -E '(Write|Read|write|read) of size' "$T/out" |
        sed -nE 's/.*\((lib[a-z-]+\.so)\+(0x[0-9a-f]+)\).*/\1 \2/p' | sort -u | head -n 30 |
        while read -r library offset; do addr2line -fse "$BUILD/lib/$library" "$offset" | paste -sd ' '; done
}

judge() {  # judge WHAT STATUS
    local behind before others
    read -r _ _ behind _ before < <(grep '^planted' "$T/out")
    others=$(grep -Evc '^heap-buffer-(over|under)flow ' "$T/found")
    if [ "$status" = "$2" ] && [ "$(of heap-buffer-overflow)" = "${behind:-none}" ] &&
        [ "$(of heap-buffer-underflow)" = "${before:-none}" ] && [ "$others" = 0 ] &&
        ! grep -q 'WARNING: ThreadSanitizer' "$T/out"; then
        passed=$((passed + 1))
        echo "$1: $(paste -sd ' ' "$T/out"); all reported"
    else
        failed=$((failed + 1))
        echo "FAIL $1: status $status, expected $2;" \
            "planted behind ${behind:-?}, before ${before:-?}; reported:"
        { cat "$T/found" "$T/out" | tail -n 50; places; } | sed 's/^/    | /'
    fi
}

run $((seconds / 20 + 2)) clean
judge 'without errors' 0
run "$seconds" ''
judge 'with errors' 97
echo "$passed passed, $failed failed"
[ $failed = 0 ]
