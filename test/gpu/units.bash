# SPDX-License-Identifier: MIT
# For scripts that run many commands on a GPU, several at a time; sourced by them, with $T a scratch folder.
# Each command is a unit with a name. Its output and its status are kept in a folder below GPU_ROWS, if that
# is set, and a unit that has ended is not run again with the same build and GPU (bench/rows-key): a run
# continues where another one was ended. After GPU_SECONDS, or SIGTERM, no unit is started, and those that
# run are ended.
#
#   units_begin NAME                    before the first unit
#   unit NAME SECONDS COMMAND...        runs the command beside others, for SECONDS at most
#   units_wait                          waits until no unit runs
#   units_end                           waits for all, prints what failed; sets $passed, $failed, $skipped,
#                                       and $left, the number of units that have not ended
#   units_sum NAME                      sums of the units NAME and NAME.*, as "N passed, M failed"
#   units_file NAME                     the output of a unit
#
# A unit's last line says "N passed, M failed", or its status counts as one. UNIT_JOBS: units at a time, 14 by
# default. GPU_SLOTS: a folder of files, of which each running unit of all scripts locks one.
# shellcheck shell=bash
units_over='' units_names=()
trap units_over=yes TERM

units_begin() {
    units=${GPU_ROWS:-$T}/units-$1-$(bench/rows-key)
    mkdir -p "$units" || exit 1
}

units_file() { echo "$units/$1.out"; }

units_rest() {  # seconds that are left
    local rest=$((${GPU_SECONDS:-100000} - SECONDS))
    [ -z "$units_over" ] && [ $rest -gt 0 ] && echo $rest || echo 0
}

# Locks a slot until this shell ends, or until SECONDS are over.
units_slot() {
    local slot
    [ -n "${GPU_SLOTS:-}" ] || return 0
    while [ "$(units_rest)" -gt 0 ]; do
        for slot in "$GPU_SLOTS"/*; do
            exec 9>>"$slot"
            ! flock -n 9 || return 0
        done
        sleep 0.2
    done
    return 1
}

units_run() {  # units_run NAME SECONDS COMMAND...
    local file=$units/$1 limit=$2 whole=yes rest status=0
    units_slot || return
    rest=$(units_rest)
    [ "$rest" -gt 0 ] || return
    [ "$limit" -le "$rest" ] || { limit=$rest whole=; }
    timeout -k 5 "$limit" "${@:3}" >"$file.out" 2>&1 </dev/null 9>&- || status=$?
    # What the end of this script has ended is run again the next time.
    { [ $status != 124 ] && [ $status != 137 ] && [ $status != 143 ]; } || [ -n "$whole" ] || return
    echo $status >"$file.status"
}

unit() {
    units_names+=("$1")
    [ ! -e "$units/$1.status" ] || return 0
    while [ "$(jobs -rp | wc -l)" -ge "${UNIT_JOBS:-14}" ] && [ "$(units_rest)" -gt 0 ]; do
        wait -n || true
    done
    [ "$(units_rest)" -gt 0 ] || return 0
    units_run "$@" &
}

# Numbers of one unit: passed, failed, skipped.
units_count() {
    local status=124 said
    [ ! -e "$units/$1.status" ] || status=$(cat "$units/$1.status")
    said=$(tail -n 1 "$units/$1.out" 2>/dev/null)
    if [[ $said =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)? ]]; then
        local bad=${BASH_REMATCH[2]}
        [ "$status" = 0 ] || [ "$bad" != 0 ] || bad=1
        echo "${BASH_REMATCH[1]} $bad ${BASH_REMATCH[4]:-0}"
    elif [ "$status" = 0 ]; then
        echo 1 0 0
    elif [ "$status" = 77 ]; then
        echo 0 0 1
    else
        echo 0 1 0
    fi
}

units_ended() { [ -e "$units/$1.status" ]; }

units_sum() {
    local name p f s passed=0 failed=0 skipped=0 late=0
    for name in "${units_names[@]}"; do
        [[ $name == "$1" || $name == "$1".* ]] || continue
        units_ended "$name" || { late=$((late + 1)); continue; }
        read -r p f s < <(units_count "$name")
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    done
    echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")$(
        [ $late = 0 ] || echo ", $late parts not run")"
}

units_wait() {
    # What even SIGKILL does not end, as a process whose kernel hangs, is not waited for.
    while [ -n "$(jobs -rp)" ] && [ $SECONDS -lt $((${GPU_SECONDS:-100000} + 7)) ]; do sleep 0.1; done
}

units_end() {
    local name p f s
    units_wait
    passed=0 failed=0 skipped=0 left=0
    for name in "${units_names[@]}"; do
        units_ended "$name" || { left=$((left + 1)); continue; }
        read -r p f s < <(units_count "$name")
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        [ "$f" = 0 ] || { echo "FAIL $name: status $(cat "$units/$name.status")"
            tail -n 40 "$units/$name.out" | cut -c 1-200 | sed 's/^/    | /'; }
    done
}
