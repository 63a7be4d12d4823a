#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# test/gpu/neighbours.bash finds which of the programs that run side by side has ended the neighbours, over a
# pretended MPS server, and nothing else is blamed or left out; a later call goes on where one was ended.
set -u
T=$(mktemp -d) || exit 1
export T
trap 'rm -rf "$T"' EXIT
fail() { echo "$*"; exit 1; }
mkdir "$T/bin"
export PATH=$T/bin:$PATH

cat >"$T/bin/nvidia-cuda-mps-control" <<'END'
#!/bin/bash
[ "${1:-}" = -d ] || exec cat >/dev/null
echo start >>"$T/servers"
END
cat >"$T/bin/tenant" <<'END'
#!/bin/bash
rounds=0
while [ -e "$3" ]; do
    [ ! -e "$CUDA_MPS_PIPE_DIRECTORY/fault" ] || { echo 'neighbour: cudaErrorFault'; exit 5; }
    rounds=$((rounds + 1))
    echo $rounds | dd of="$3" conv=notrunc,nocreat status=none 2>/dev/null
    sleep 0.01
done
echo "neighbour: ok after $rounds rounds"
END
chmod +x "$T"/bin/*
tenant=$T/bin/tenant

# A context with a fault fails all programs. The third of the guilty ones has a good row.
program() {  # program WAY NAME
    [[ $2 != guilty* ]] || : >"$CUDA_MPS_PIPE_DIRECTORY/fault"
    if [ -e "$CUDA_MPS_PIPE_DIRECTORY/hangs" ]; then
        echo "$1 $2 fail: status 4: bad $2: error 46, neighbour intact"
    elif [ "$2" = endless ]; then
        : >"$CUDA_MPS_PIPE_DIRECTORY/hangs"
        echo "$1 $2 fail: status 124"
    elif [ "$2" = guilty3 ] || [ ! -e "$CUDA_MPS_PIPE_DIRECTORY/fault" ]; then
        echo "$1 $2 pass"
    else
        echo "$1 $2 fail: status 4"
    fi
}
export -f program

cat >"$T/script" <<'END'
#!/bin/bash
set -u
. test/gpu/units.bash
. test/gpu/neighbours.bash
server_start && neighbours_start || exit 1
beside 4 "$1" "$T/rows" program || exit 2
neighbours_go_on || exit 3
neighbours_end || exit 4
echo "$neighbours_said"
server_end
END
export tenant
run() {  # run SECONDS
    rm -rf "$T"/pipe.*
    GPU_SECONDS=$1 timeout 200 bash "$T/script" "$T/list" >"$T/log" 2>&1 ||
        { cat "$T/log"; fail 'it has failed'; }
}
printf 'mask %s\n' a b c d e guilty1 f g h guilty2 i guilty3 j k >"$T/list"
run 100
[ "$(cut -d ' ' -f 1-2 "$T/rows" | sort)" = "$(sort "$T/list")" ] || { cat "$T/rows"; fail 'not a row each'; }
[ "$(grep -c 'pass$' "$T/rows")" = 11 ] || { cat "$T/rows"; fail 'not all others pass'; }
[ "$(grep -c '^mask guilty[123] fail: its neighbours ended: .*cudaErrorFault.*(itself: ' "$T/rows")" = 3 ] ||
    { cat "$T/rows"; fail 'the guilty ones are not named'; }
# One at first, one after each group with a guilty one, one after each guilty one.
[ "$(wc -l <"$T/servers")" = 6 ] || fail "$(wc -l <"$T/servers") servers"
grep -q 'ok after .* ok after ' "$T/log" || { cat "$T/log"; fail 'the last neighbours have not ended well'; }
[ ! -s "$T/rows.alone" ] || fail 'programs are left to be run alone'

# Those that were to be run alone when the time was over are run alone: no group has a death.
printf 'mask %s\n' a guilty1 b c >"$T/list"
cp "$T/list" "$T/rows.alone"
: >"$T/rows"
: >"$T/servers"
run 1
[ ! -s "$T/rows" ] || fail 'a program was started after the end'
run 100
[ "$(grep -c 'pass$' "$T/rows")" = 3 ] && [ "$(wc -l <"$T/servers")" = 3 ] && [ ! -s "$T/rows.alone" ] ||
    { cat "$T/rows" "$T/servers"; fail 'the rest was not run alone'; }

# A server that refuses clients is replaced; the one that did it has its own row.
printf 'mask %s\n' a b c endless d e f g >"$T/list"
rm "$T"/rows*
run 100
[ "$(grep -c 'pass$' "$T/rows")" = 7 ] && grep -q '^mask endless fail: status 124$' "$T/rows" ||
    { cat "$T/rows"; fail 'clients are refused'; }
