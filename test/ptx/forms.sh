#!/bin/sh
# SPDX-License-Identifier: MIT
# Reads the texts of test/ptx/forms, which together hold every form of PTX that we know:
#   1. moat knows and accepts all of it, without a warning
#   2. what moat prints, it prints again in the same way
#   3. each row of ops.def, mods.def and sregs.def is met somewhere
#   4. ptxas, if there is one, makes the same machine code from what moat prints as from the text itself; the
#      first line of a text says with which options. Not for builds with a sanitizer, which print the same.
set -u
MOAT=${MOAT:-${BUILD:=build}/bin/moat} BUILD=${BUILD:-build}
forms=test/ptx/forms
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
passed=0 failed=0
if ! command -v "${CC:-cc}" >/dev/null; then
    echo 'there is no C compiler, which reads the tables'
    exit 77
fi

count() { # count STATUS WHAT: one test more; $work/log says what is wrong
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $2"
        sed 's/^/  /' "$work/log"
    fi
}

verify() { # verify FILE
    "$MOAT" ptx verify "$1" >"$work/out" 2>"$work/log" && [ ! -s "$work/log" ]
}

print_twice() { # print_twice FILE NAME
    "$MOAT" ptx print "$1" >"$work/$2.ptx" 2>"$work/log" &&
        "$MOAT" ptx print "$work/$2.ptx" >"$work/again" 2>>"$work/log" &&
        diff "$work/$2.ptx" "$work/again" >>"$work/log"
}

# --- is every row met? --------------------------------------------------------------------------------------

# The names in a table: the second field of its rows. Those in parentheses are not spelled like that.
rows() { # rows TABLE
    {
        for macro in OP TYPE SPACE MOD SREG; do echo "#define $macro(id, name, ...) @name"; done
        echo "#include \"src/ptx/$1\""
    } | ${CC:-cc} -E -P -I. - | tr '@' '\n' | sed -n 's/" *"//g; s/^ *"\([^("][^"]*\)".*/\1/p'
}

# Which names of ops.def, mods.def and sregs.def the texts use; each as one line: "op NAME", ...
met() { # met OPS < TEXTS
    awk -v ops="$1" '
        BEGIN { while ((getline name < ops) > 0) is_op[name] = 1 }
        function say_mods(word) {
            n = split(word, mod, ".")
            for (k = 2; k <= n; k++) {
                sub(/[^A-Za-z0-9_:].*/, "", mod[k])
                print "mod " mod[k]
            }
        }
        /^\t@/ { sub(/^\t@!?[^ ]+ /, "\t") }
        /^\t[a-z]/ {  # an instruction
            sub(/;.*/, "", $1)
            say_mods($1)
            for (op = $1; op != "" && !is_op[op]; )
                sub(/\.?[^.]*$/, "", op)
            print "op " op
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^%/) {
                    sub(/[.,;].*/, "", $i)
                    print "sreg " $i
                }
            }
            next
        }
        {  # a declaration
            for (i = 1; i <= NF; i++)
                if ($i ~ /^\(?\./)
                    say_mods($i)
        }' | sort -u
}

check_rows() { # check_rows WORD TABLE
    rows "$2" | sort -u >"$work/rows"
    sed -n "s/^$1 //p" "$work/met" | sort -u | comm -23 "$work/rows" - >"$work/log"
    [ -s "$work/rows" ] && [ ! -s "$work/log" ]
    count $? "these rows of $2 are met in no text:"
}

# --- does ptxas agree? --------------------------------------------------------------------------------------

# Prints nothing and leaves NAME.same if all is well.
compare_code() { # compare_code FILE NAME
    options=$(sed -n '1s|^// ptxas: ||p' "$1")
    # shellcheck disable=SC2086 # several options
    if ! ptxas $options -o "$work/$2.a" "$1" >"$work/$2.out" 2>&1 ||
        ! ptxas $options -o "$work/$2.b" "$work/$2.ptx" >"$work/$2.out" 2>&1 ||
        ! "$same_code" "$work/$2.a" "$work/$2.b" >"$work/$2.out" 2>&1; then
        grep -v ' \(warning\|info\) ' "$work/$2.out"
        return
    fi
    : >"$work/$2.same"
}

# Every other text, so that two of these run side by side.
compare_half() { # compare_half FIRST...
    while [ $# -gt 0 ]; do
        compare_code "$1" "$(basename "$1" .ptx)" >"$work/$(basename "$1" .ptx).log"
        shift
        [ $# = 0 ] || shift
    done
}

compare_all() {
    set -- "$forms"/*.ptx
    compare_half "$@" &
    shift
    compare_half "$@"
    wait
    for file in "$forms"/*.ptx; do
        name=$(basename "$file" .ptx)
        cp "$work/$name.log" "$work/log"
        [ -e "$work/$name.same" ]
        count $? "$file: not the same machine code"
    done
}

need_same_code() {
    same_code=$BUILD/tool/same_code
    [ -x "$same_code" ] && return
    same_code=$work/same_code
    ${CC:-cc} -o "$same_code" test/ptx/same_code.c -lelf 2>"$work/log"
}

# ------------------------------------------------------------------------------------------------------------

for file in "$forms"/*.ptx; do
    verify "$file"
    count $? "$file: not clean"
    print_twice "$file" "$(basename "$file" .ptx)"
    count $? "$file: printed differently the second time"
done

rows ops.def >"$work/ops"
cat "$work"/*.ptx | met "$work/ops" >"$work/met"
check_rows op ops.def
check_rows mod mods.def
check_rows sreg sregs.def

left_out=
if grep -q fsanitize "$BUILD/flags" 2>/dev/null; then
    :
elif ! command -v ptxas >/dev/null; then
    left_out='there is no ptxas'
elif ! need_same_code; then
    left_out='same_code cannot be built'
else
    compare_all
fi
[ -z "$left_out" ] || echo "machine code was not compared: $left_out"
echo "$passed passed, $failed failed${left_out:+, 1 skipped}"
[ $failed = 0 ]
