#!/bin/bash
# SPDX-License-Identifier: MIT
# --mode=canary under load: test/guard/canary_stress.c allocates, launches and frees at random in several threads. What it
# planted must be reported, all of it and nothing else.
# CANARY_STRESS_SECONDS: how long; 10 if not set, 600 with ThreadSanitizer, whose builds only `make check-all` tests;
# CANARY_STRESS_THREADS, CANARY_STRESS_SEED.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device. CANARY_OPTIONS: options to run with besides.
set -u
seconds=10
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
    timeout $((seconds * 10 + 120)) "$MOAT" --device="$device" --mode=canary ${CANARY_OPTIONS:-} --format=json \
        --log-file="$T/log" --print-limit=0 "$BUILD/tool/canary_stress" "$1" "${CANARY_STRESS_THREADS:-4}" \
        "${CANARY_STRESS_SEED:-$RANDOM}" $2 >"$T/out" 2>&1 </dev/null
    status=$?
    # Equal errors are told once; how often they came is said at the end.
    awk '
        function value(key,   rest) { rest = $0; if (!sub(".*\"" key "\":\"?", "", rest)) return ""; sub(/[",}].*/, "", rest); return rest }
        /^\{"event":"error"/ { id = $0; sub(/.*"pid":[0-9]+,"id":/, "", id); sub(/,.*/, "", id); type[id] = $0
            sub(/.*"event":"error","type":"/, "", type[id]); sub(/".*/, "", type[id]); count[id] = 1 }
        /^\{"event":"repeat"/ { count[value("id")] = value("count") }
        END { for (id in count) n[type[id]] += count[id]; for (t in n) print t, n[t] }' "$T/log" >"$T/found"
}

of() {  # of TYPE: how many
    awk -v type="$1" '$1 == type { n = $2 } END { print n + 0 }' "$T/found"
}

judge() {  # judge WHAT STATUS
    local behind before others
    read -r _ _ behind _ before < <(grep '^planted' "$T/out")
    others=$(grep -Evc '^heap-buffer-(over|under)flow ' "$T/found")
    if [ "$status" = "$2" ] && [ "$(of heap-buffer-overflow)" = "${behind:-none}" ] &&
        [ "$(of heap-buffer-underflow)" = "${before:-none}" ] && [ "$others" = 0 ] && ! grep -q 'WARNING: ThreadSanitizer' "$T/out"; then
        passed=$((passed + 1))
        echo "$1: $(paste -sd ' ' "$T/out"); all reported"
    else
        failed=$((failed + 1))
        echo "FAIL $1: status $status, expected $2; planted behind ${behind:-?}, before ${before:-?}; reported:"
        sed 's/^/    | /' "$T/found" "$T/out" | tail -n 60
    fi
}

run $((seconds / 5 + 1)) clean
judge 'without errors' 0
run "$seconds" ''
judge 'with errors' 97
echo "$passed passed, $failed failed"
[ $failed = 0 ]
