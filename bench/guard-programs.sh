#!/bin/bash
# SPDX-License-Identifier: MIT
# guard-programs.sh DIR: other people's programs, already built, on a GPU (or with GUARD_PROGRAMS_DEVICE=cpu
# on the CPU device): alone, in the default mode, with --mode=pages and with --mode=count. They must exit and
# print as they do alone. DIR is as others_programs describes. JOBS at a time, each run at most
# GUARD_PROGRAMS_SECONDS. GUARD_PROGRAMS_MODES: instead of api, pages and count; a mode that looks at every
# access has a section of its own. SECTION=FILE: writes the table there instead of into doc/results.md. After
# a SIGTERM it has what there is. Status 1 if any program behaves differently.
#
# The output of a program is compared by lines, in any order. Alone it runs twice: a line that is the same
# both times must be there when it is watched; in other lines, before a unit of time or rate, and in lines
# about such, numbers do not count.
set -eu
here=$(realpath "$(dirname "$0")")
dir=$(realpath "$1")
MOAT=$(realpath "${MOAT:-$BUILD/bin/moat}")
# shellcheck source=bench/others_programs
. "$here/others_programs"
JOBS=${JOBS:-1} device=${GUARD_PROGRAMS_DEVICE:-gpu} limit=${GUARD_PROGRAMS_SECONDS:-60}
ways=${GUARD_PROGRAMS_MODES:-api pages count} section=guard-programs under='the guard'
case $ways in
check|fence|shadow) section=$ways-programs under=--mode=$ways ;;
esac
[ "$device" = cpu ] || nvidia-smi -L >/dev/null 2>&1 ||
    { echo 'guard-programs.sh: no GPU on this machine' >&2; exit 0; }
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache

mask_units() {
    local timed='time|elapsed|bandwidth|throughput|speed|latency|perf|clock|cycle|per second|took|\/s'
    timed+='|flops|tops'
    local units='ns|us|ms|msec|sec|s|seconds|microseconds|milliseconds|[KMGT]?i?B(\/s|ytes\/s)?'
    units+='|[KMGT]?[Ff][Ll][Oo][Pp]s?(\/s)?|[KMGT]?[Hh]z|fps|FPS'
    sed -E -e "/$timed/I s/-?[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?/N/g" \
        -e "s/[0-9.]+(e[-+]?[0-9]+)? ?($units)\b/N \2/g"
}
mask_numbers() {
    sed -E 's/0x[0-9a-fA-F]+/N/g; s/-?[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?/N/g; s/\b(nan|inf)\b/N/g'
}

# start WAY OUTPUT COMMAND...: its status, and milliseconds. moat's reports go to OUTPUT.log. $only: lines
# that count.
start() {
    local way=$1 output=$2 ended
    shift 2
    case $way in
    alone) [ "$device" = gpu ] || set -- "$MOAT" --device=cpu --mode=off "$@" ;;
    *) set -- "$MOAT" --device="$device" --mode="$way" --error-exitcode=0 --log-file="$output.log" "$@" ;;
    esac
    ended=$(others_run "$output" "$@")
    mask_units <"$output.raw" | grep -E -a -e "$only" | sort >"$output"
    echo "$ended"
}

# The difference from the program alone, in a word; nothing if there is none.
difference() {  # difference FILES STATUS OUTPUT STATUS
    local base=$1
    if others_late "$4"; then
        echo timeout
    elif [ "$2" != "$4" ]; then
        echo "status $4"
    elif [ -n "$(comm -12 "$base.alone" "$base.again" | sort -u | comm -23 - <(sort -u "$3"))" ]; then
        echo 'other output'
    elif ! cmp -s <(mask_numbers <"$3" | sort) <(mask_numbers <"$base.alone" | sort) &&
        cmp -s <(mask_numbers <"$base.again" | sort) <(mask_numbers <"$base.alone" | sort); then
        echo 'other lines'
    fi
}

# one NUMBER NAME FOLDER COMMAND ONLY: the row of a program
one() {
    local files=$T/$1 name=$2 only=${5:-} status ms again_status way way_status way_ms word row
    cd "$dir/$3"
    eval "set -- $4"
    read -r again_status _ < <(start alone "$files.again" "$@")
    read -r status ms < <(start alone "$files.alone" "$@")
    row="| $name | $status | $ms |"
    if [ "$status" != "$again_status" ]; then
        echo "$row its status varies: $again_status, $status |" >"$files.row"
        return
    fi
    for way in $ways; do
        read -r way_status way_ms < <(start "$way" "$files.$way" "$@")
        word=$(difference "$files" "$status" "$files.$way" "$way_status")
        grep -hs '^SUMMARY: moat' "$files.$way.log" |
            sed "s|^SUMMARY: moat: |$name, $way: |" >>"$files.found" || true
        row+=" ${word:-same}, $way_ms ms |"
        [ -z "$word" ] || {
            echo "$name, $way: $word"
            diff "$files.alone" "$files.$way" | head -n 8
            tail -n 3 "$files.$way.log" 2>/dev/null
        } >&2
    done
    echo "$row" >"$files.row"
}

others_each one
right=$(awk -F'|' -v ways="$(wc -w <<<"$ways")" \
    '{ n = 0; for (i = 5; i <= NF; i++) n += $i ~ /^ same,/; right += n == ways } END { print right + 0 }' \
    "$T/rows")
{
    echo "## Programs of others under $under," \
        "on $([ "$device" = gpu ] && echo a GPU || echo the CPU device)"
    echo
    "$here/machine"
    [ ! -f "$dir/about" ] || cat "$dir/about"
    echo "Wall time of one run, $JOBS programs at a time;" \
        "\"same\": status and output are those of the program alone."
    echo
    echo "| program | status | alone ms |$(sed -E 's/(\w+)/--mode=\1 |/g; s/^/ /' <<<"$ways")"
    echo "| --- | ---: | ---: |$(sed -E 's/(\w+)/---: |/g; s/^/ /' <<<"$ways")"
    cat "$T/rows"
    echo
    echo "$right of $(wc -l <"$T/rows") run in every mode as they do alone.$(others_missing)"
    if cat "$T"/*.found 2>/dev/null | grep -q .; then
        printf '\nErrors that were found in them:\n\n'
        cat "$T"/*.found | sort | uniq -c | sed -E 's/^ *([0-9]+) (.*)/- \2 (\1 times)/; s/ \(1 times\)//'
    fi
} >"$T/section"
cat "$T/section"
"$here/finish" "$section-$device" "$T/section"
[ "$right" = "$(others_list | wc -l)" ]
