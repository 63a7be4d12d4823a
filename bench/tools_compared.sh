#!/bin/bash
# SPDX-License-Identifier: MIT
# What moat and NVIDIA's compute-sanitizer (memcheck) find on a GPU: each error of tools_compared.cu under
# --mode=check, under memcheck, and under --mode=shadow, which has redzones and shadow memory as
# AddressSanitizer, here without proofs, which find more; many programs side by side (test/gpu/units.bash).
# What is right in place of the errors, all of it in one process, must be silent, and is timed, by the clock,
# without a tool and under each, in turns and alone. GPU_SECONDS bounds all of it. DEVICE=cpu: on the CPU
# device, without memcheck, to test this script; then no section of doc/results.md is written.
set -u
here=$(dirname "$0")
device=${DEVICE:-gpu}
[ "$device" = cpu ] || nvidia-smi -L >/dev/null 2>&1 ||
    { echo 'tools_compared.sh: no GPU on this machine' >&2; exit 0; }
command -v nvcc >/dev/null || { echo 'tools_compared.sh: no nvcc on this machine' >&2; exit 0; }
TURNS=${TOOLS_COMPARED_TURNS:-4}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=${GPU_CACHE:-$T/cache}
compile() {  # compile NAME OPTION...
    nvcc -std=c++17 -lineinfo -cudart shared "${@:2}" -o "$T/$1" "$here/tools_compared.cu" >"$T/log" 2>&1 ||
        { cat "$T/log" >&2; exit 1; }
}
compile ptx -gencode arch=compute_75,code=compute_75
compile machine_code -gencode arch=compute_90,code=sm_90

# Sets $command to what runs a program under a tool.
set_command() {
    case $1 in
    alone) command=(); [ "$device" = gpu ] || command=("$MOAT" --device="$device" --mode=off) ;;
    memcheck) command=("$sanitizer" --tool memcheck --error-exitcode 97) ;;
    shadow) command=("$MOAT" --device="$device" --mode=shadow --proofs=off) ;;
    *) command=("$MOAT" --device="$device" --mode="$1") ;;
    esac
}

# start TOOL NAME SECONDS PROGRAM WORD...: a unit, beside the others.
start() {
    local command
    set_command "$1"
    unit "$1.$2" "$3" "${command[@]}" "${@:4}"
}

# Sets $status and $said, the first error, of a unit that has ended; returns false if it has not.
result() {
    local log
    units_ended "$1.$2" || return
    status=$(cat "$units/$1.$2.status")
    log=$(units_file "$1.$2")
    if [ "$1" = memcheck ]; then
        said=$(sed -n 's/^========= *//p' "$log" | grep -Ev -m 1 '^(COMPUTE-SANITIZER|ERROR SUMMARY|$)' |
            cut -c 1-80)
    else
        said=$(sed -n 's/.*ERROR: moat: \([a-z-]*\).*/\1/p' "$log" | head -n 1)
    fi
}

# An error and what it is, one a line.
errors() {
    cat <<'END'
read_past         a kernel reads one element past a buffer
write_past        a kernel writes one element past a buffer
write_before      a kernel writes one element before a buffer
far_read          a kernel reads in the middle of another buffer
far_write         a kernel writes in the middle of another buffer
freed             a kernel reads a freed buffer
freed_taken       a kernel writes a freed buffer, and another one was allocated since
freed_in_order    a kernel writes a buffer after `cudaFreeAsync` in its stream
shared_neighbour  a kernel reads one element past a shared array, where another one is
shared_end        a kernel reads past all of its shared memory
local_end         a kernel writes one element past a local array
constant_end      a kernel reads one element past a `__constant__` array
variable_end      a kernel writes one element past a `__device__` array, where another one is
kernel_heap       a kernel writes one element past what its `malloc` returned
kernel_heap_freed a kernel uses what it has freed
copy              a copy is one element too long
set               a memset is some bytes too long
freed_twice       a buffer is freed twice
null              a kernel writes through a null pointer
nobody            a kernel writes where there is no memory
misaligned        a kernel reads at an address that is not aligned
write_past        the second one again, in a program that has machine code only
END
}

tools=(memcheck shadow check)
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ "$device" != gpu ] || [ ! -x "$sanitizer" ]; then
    tools=(shadow check) sanitizer=''
fi
# shellcheck source=test/gpu/units.bash
. "$here/../test/gpu/units.bash"
units_begin "tools-$device"
# What is right comes first: it compiles what the others find in the caches.
errors | awk '{ print NR - 1, $0 }' >"$T/errors"
for tool in alone "${tools[@]}"; do
    start "$tool" good 100 "$T/ptx" all good
done
for tool in "${tools[@]}"; do
    while read -r number case what; do
        program=ptx
        [[ $what != *'machine code'* ]] || program=machine_code
        start "$tool" "$number" 30 "$T/$program" "$case" bad
    done <"$T/errors"
done
units_wait
wrong=0
for tool in alone "${tools[@]}"; do
    if ! result "$tool" good; then
        echo "| what is right | $tool | not run |" >>"$T/alarms"
    elif [ "$status" != 0 ] || [ -n "$said" ]; then
        echo "tools_compared.sh: what is right, $tool: status $status:" \
            "${said:-$(tail -n 1 "$(units_file "$tool.good")")}" >&2
        [ "$tool" = memcheck ] || wrong=$((wrong + 1))
        echo "| what is right | $tool | status $status, ${said:-without a report} |" >>"$T/alarms"
    fi
    [ "$tool" != alone ] || continue
    while read -r number _; do
        result "$tool" "$number" || continue
        # An error is found if the tool says what it is: the program may end with any status.
        if [ -z "$said" ]; then
            printf '%s\tno%s\n' "$number" "$([ "$status" = 0 ] || echo ", status $status")"
        else
            printf '%s\t%s\n' "$number" "yes: $said"
        fi >>"$T/found.$tool"
    done <"$T/errors"
done

# Seconds of the clock, in turns: each tool follows each other equally often.
now() { echo "${EPOCHREALTIME/./}"; }
order=(alone "${tools[@]}")
for ((turn = 0; turn < TURNS; turn++)); do
    for ((i = 0; i < ${#order[@]}; i++)); do
        tool=${order[(turn + i) % ${#order[@]}]} left=$(units_rest)
        [ "$left" -gt 15 ] || break 2
        set_command "$tool"
        start=$(now)
        ! timeout -k 2 "$((left < 65 ? left - 5 : 60))" "${command[@]}" "$T/ptx" all good \
            >"$T/log" 2>&1 </dev/null || echo "$tool $(($(now) - start))" >>"$T/times"
    done
done

{
    echo "## What moat and compute-sanitizer find"
    echo
    "$here/machine"
    echo "Errors of \`bench/tools_compared.cu\`, each in a process of its own, and the first words of each" \
        "tool about it. \`--mode=shadow --proofs=off\` stands for tools with redzones and shadow memory."
    [ -z "$sanitizer" ] || echo "$("$sanitizer" --version 2>/dev/null | grep -i -m 1 version), memcheck."
    echo
    echo "| error |$(printf ' %s |' "${tools[@]}")"
    echo "| --- |$(printf ' %s |' "${tools[@]//*/---}")"
    while read -r number case what; do
        row="| $what |"
        for tool in "${tools[@]}"; do
            row+=" $(awk -F '\t' -v n="$number" '$1 == n { print $2 }' "$T/found.$tool" 2>/dev/null |
                grep . || echo 'not run') |"
        done
        echo "$row"
    done <"$T/errors"
    row='| found |'
    for tool in "${tools[@]}"; do
        touch "$T/found.$tool"
        row+=" $(grep -c $'\tyes' "$T/found.$tool") of $(wc -l <"$T/found.$tool") |"
    done
    echo "$row"
    echo
    if [ -s "$T/alarms" ]; then
        echo 'Reported, or not run to its end, in what is right:'
        echo
        echo '| | tool | |'
        echo '| --- | --- | --- |'
        cat "$T/alarms"
    else
        echo 'What is right in their place is reported by none of them.'
    fi
    echo
    echo 'Seconds of a program that does all that is right, start included; moat has its modules in a cache:'
    echo
    echo '| | runs | average | median | worst |'
    echo '| --- | ---: | ---: | ---: | ---: |'
    for tool in "${order[@]}"; do
        sed -n "s/^$tool //p" "$T/times" 2>/dev/null | sort -n | awk -v tool="$tool" '
            { v[NR] = $1 / 1e6; sum += v[NR] }
            END { if (NR) printf "| %s | %d | %.2f | %.2f | %.2f |\n", tool, NR, sum / NR,
                (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, v[NR] }'
    done
} >"$T/section"
cat "$T/section"
[ "$device" = cpu ] || "$here/finish" tools-compared-gpu "$T/section"
[ $wrong = 0 ]
