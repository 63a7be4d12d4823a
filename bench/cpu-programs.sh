#!/bin/bash
# SPDX-License-Identifier: MIT
# cpu-programs.sh DIR [NAME...]: other people's programs, already built, on the CPU device, each alone; the
# table of doc/cpu-device.md lists which pass. DIR is as others_programs describes; a command line may begin
# with options of moat, such as --cpu-devices=2. DIR/notes.tsv may have lines with a name, a tab and a note on
# that program for the table: smaller arguments, or why it cannot pass. With names only those run, and the
# document is not changed.
#
# A program passes if it exits with status 0 and no line that counts reports a failure; "passed" if one also
# reports success, "ran" if none does. Status 2 with the word "waiving" is how a sample declines to run. JOBS
# at a time, each run at most CPU_PROGRAMS_SECONDS. CPU_PROGRAMS_KEEP=FOLDER: keeps their output there.
# CPU_PROGRAMS_SHARE: status 1 if fewer percent pass.
set -eu
here=$(realpath "$(dirname "$0")")
dir=$(realpath "$1")
shift
names=" $* "
MOAT=$(realpath "${MOAT:-$BUILD/bin/moat}")
JOBS=${JOBS:-1} limit=${CPU_PROGRAMS_SECONDS:-120} keep=${CPU_PROGRAMS_KEEP:-} share=${CPU_PROGRAMS_SHARE:-90}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
# shellcheck source=bench/others_programs
. "$here/others_programs"

bad='\bFAIL(ED|URE|S)?\b|\b[Ff]ailed\b|\bMISMATCH|\bmismatch|CUDA error|\b[Ii]ncorrect|'
bad+='\b(not|NOT) match|\b[Ww]rong\b|\bERROR\b|^moat: '
good='\bPASS(ED)?\b|\b[Pp]ass(ed)?\b|\bOK\b|\b[Ss]uccess|SUCCESS|\b[Cc]orrect'

note() { awk -F'\t' -v name="$1" '$1 == name { print "; " $2 }' "$dir/notes.tsv" 2>/dev/null || true; }

first() {
    grep -E -a -m 1 -e "$2" "$1" | tr -d '\r|' |
        sed -E 's/^[[:space:]]+//; s/[^[:print:]]//g; s/[.[:space:]]+$//' | cut -c 1-100
}

# verdict OUTPUT STATUS: a word, and what the program or the device says of it
verdict() {
    if others_late "$2"; then
        echo "**no end** in $limit s"
    elif [ "$2" = 2 ] && grep -q -i -a waiv "$1.raw"; then
        echo "**declined**: $(first "$1.raw" '[Ww]aiv')"
    elif [ "$2" != 0 ]; then
        echo "**status $2**: $(first "$1.raw" '^moat: |[Ee]rror|ERROR' ||
            tail -n 1 "$1.raw" | tr -d '|' | cut -c 1-100)"
    elif grep -E -a -q -e "$bad" "$1"; then
        echo "**wrong**: $(first "$1" "$bad")"
    elif grep -E -a -q -e "$good" "$1"; then
        echo passed
    else
        echo ran
    fi
}

# one NUMBER NAME FOLDER COMMAND ONLY: the row of a program
one() {
    local files=$T/$1 name=$2 only=${5:-} status ms
    case $names in '  ' | *" $name "*) ;; *) return ;; esac
    cd "$dir/$3"
    eval "set -- $4"
    read -r status ms < <(others_run "$files" "$MOAT" --device=cpu --mode=off "$@")
    grep -E -a -e "$only" "$files.raw" >"$files" || true
    [ -z "$keep" ] || cp "$files.raw" "$keep/${name//\//_}"
    echo "| $name | $(verdict "$files" "$status")$(note "$name") |" \
        "$(awk -v ms="$ms" 'BEGIN { printf "%.1f", ms / 1000 }') |" >"$files.row"
}

[ -z "$keep" ] || { mkdir -p "$keep" && keep=$(realpath "$keep"); }
others_each one
right=$(grep -c -E '^\| [^|]* \| (passed|ran)' "$T/rows" || true) all=$(wc -l <"$T/rows")
{
    echo '### Programs of others'
    echo
    "$here/machine"
    [ ! -f "$dir/about" ] || cat "$dir/about"
    echo "$JOBS at a time, each for at most $limit s. \"passed\": it ends with status 0 and says" \
        "that its check succeeded; \"ran\":"
    echo 'status 0 and no such word; some tell the result of a check by their status alone, others have none.'
    echo
    echo "$right of $all run and pass.$([ "$names" != '  ' ] || others_missing)"
    echo
    echo '| program | result | seconds |'
    echo '| --- | --- | ---: |'
    cat "$T/rows"
} >"$T/section"
cat "$T/section"
[ "$names" != '  ' ] || "$here/section" cpu-programs "$here/../doc/cpu-device.md" <"$T/section"
[ $((right * 100)) -ge $((all * share)) ]
