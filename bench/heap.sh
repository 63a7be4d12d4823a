#!/bin/bash
# SPDX-License-Identifier: MIT
# What libmoat-heap.so costs, eager and lazy, against the same program without it: work that only allocates
# (heap_load.c), and programs of Debian as far as they are installed; how much memory a block takes; how soon
# a write is detected. Runs are interleaved. Other tools for comparison: Scudo (clang's), Electric Fence,
# AddressSanitizer where the program can be rebuilt. HEAP_BENCH_SECONDS: for all of it, about, and two minutes
# more for programs under Electric Fence; each part runs at least once. HEAP_BENCH_SCALE: allocations of a
# load; HEAP_BENCH_LIVE: numbers of live blocks; HEAP_BENCH_PARTS: of loads, programs, servers, memory,
# latency, exploits; HEAP_BENCH_DRY: nothing is written to doc/.
set -eu
here=$(dirname "$0")
SECONDS_IN_ALL=${HEAP_BENCH_SECONDS:-600}
SCALE=${HEAP_BENCH_SCALE:-1000000}
LIVE=${HEAP_BENCH_LIVE:-1000 10000 100000 1000000 10000000}
PARTS=${HEAP_BENCH_PARTS:-loads programs servers memory latency exploits}
T=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$T"
}
trap finish EXIT
die() {
    echo "heap.sh: $*" >&2
    exit 1
}
library=$(realpath "$BUILD/lib/libmoat-heap.so")
load=$BUILD/bench/heap_load
scudo=$(clang -print-file-name=libclang_rt.scudo_standalone-x86_64.so 2>/dev/null || true)
fence=$(ldconfig -p | sed -n 's/.*libefence\.so.* => //p' | head -n 1)
${CC:-gcc} -O2 -g -std=gnu11 -D_GNU_SOURCE -fsanitize=address -o "$T/asan_load" "$here/heap_load.c" \
    -pthread 2>/dev/null || true

variants=(plain eager lazy)
[ ! -f "$scudo" ] || variants+=(scudo)
wrap=()  # what to put before a command, for a variant
choose() {
    case $1 in
    plain | asan) wrap=() ;;
    eager | lazy) wrap=(env "MOAT_OPTIONS=heap-free=$1" "LD_PRELOAD=$library") ;;
    scudo) wrap=(env "LD_PRELOAD=$scudo") ;;
    efence) wrap=(env EF_ALLOW_MALLOC_0=1 EF_DISABLE_BANNER=1 "LD_PRELOAD=$fence") ;;
    esac
}
silent() {  # silent WHAT: no report in $T/err
    ! grep -q 'ERROR: moat' "$T/err" || die "a report in $1: $(grep -m 1 'ERROR: moat' "$T/err")"
}
run() {  # run VARIANT COMMAND...: its output in $T/out
    choose "$1"
    shift
    "${wrap[@]}" "$@" >"$T/out" 2>"$T/err" </dev/null || die "$* failed: $(tail -n 1 "$T/err")"
    silent "$*"
}
row() {  # row KIND NAME VARIANT VALUE
    printf '%s\t%s\t%s\t%s\n' "$@" >>"$T/rows"
}
until_spent() {  # until_spent PERCENT COMMAND...: once, and again while its part of the time lasts
    local end=$((SECONDS + SECONDS_IN_ALL * $1 / 100)) i
    shift
    for ((i = 0; i < 30 && (i == 0 || SECONDS < end); i++)); do
        "$@"
    done
}

# --- work that only allocates: nanoseconds ---

loads() {
    local name v scale program
    for name in pairs sizes batch larson handover resize; do
        for v in "${variants[@]}" efence asan; do
            scale=$SCALE program=$load
            # Two system calls or more for each block, so fewer are enough.
            [ $v != efence ] || scale=$((SCALE / 50 > 10000 ? SCALE / 50 : 10000))
            [ $v != asan ] || program=$T/asan_load
            [ $v != efence ] || [ -n "$fence" ] || continue
            [ -x "$program" ] || continue
            run $v "$program" $name $scale
            row load $name $v "$(cat "$T/out")"
        done
    done
}

# --- programs: seconds ---

tool() {  # the distribution's own, not a wrapper that comes before it
    [ -x "/usr/bin/$1" ] && echo "/usr/bin/$1" || command -v "$1"
}
# The same order of keys in all runs.
export PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0 PYTHONHASHSEED=0
declare -A program
program[sqlite3]="$(tool sqlite3) :memory: 'create table t(a,b);
    with recursive c(x) as (select 1 union all select x+1 from c where x<300000)
        insert into t select x, hex(randomblob(8)) from c;
    create index i on t(b); select count(*), max(b) from t where b like \"A%\";'"
program[gcc]="$(tool gcc) -std=gnu11 -O2 -D_GNU_SOURCE -I$here/../src -c -o $T/o.o $here/../src/ptx/parser.c"
program[perl]="$(tool perl) -e 'my %h; for my \$r (1..3) { \$h{\$_} = \"x\" x (\$_ % 100) for 1..150000;
    my @k = sort keys %h; %h = (); }'"
program[python3]="$(tool python3) -c 'import json
d = [{\"a\": i, \"b\": [str(j) for j in range(20)]} for i in range(15000)]
[json.loads(json.dumps(d)) for _ in range(3)]'"

# The shell that starts it is the same for all: what is preloaded into the program is not loaded there.
start_program() {  # start_program VARIANT NAME
    choose "$1"
    local set=("${wrap[@]:1}")
    sh -c "${set:+export \"\$@\"; }exec ${program[$2]}" sh "${set[@]}" >"$T/out" 2>"$T/err" </dev/null ||
        die "$2 failed: $(tail -n 1 "$T/err")"
    silent "$2"
}
# Short programs run more often. The order is random, because a run finds the machine as the one before left
# it.
declare -A times=([sqlite3]=2 [gcc]=5 [perl]=1 [python3]=2)
programs() {
    local name v i start
    for name in sqlite3 gcc perl python3; do
        [ -n "$(tool $name)" ] || continue
        for ((i = 0; i < times[$name]; i++)); do
            for v in $(shuf -e "${variants[@]}"); do
                start=${EPOCHREALTIME/./}
                start_program "$v" $name
                row program $name "$v" "$((${EPOCHREALTIME/./} - start))e-6"
            done
        done
    done
}
# Once, because it takes minutes, or needs more mappings than a process may have, and fails.
with_fence() {
    local name start
    [ -n "$fence" ] || return 0
    choose efence
    for name in sqlite3 gcc perl python3; do
        [ -n "$(tool $name)" ] || continue
        start=${EPOCHREALTIME/./}
        if timeout 60 "${wrap[@]}" sh -c "exec ${program[$name]}" >"$T/out" 2>"$T/err" </dev/null; then
            row program $name efence "$((${EPOCHREALTIME/./} - start))e-6"
        else
            row program $name efence nan
        fi
    done
}

# --- servers: seconds for what a client asks of them ---

await() {  # await PORT
    local i
    for ((i = 0; i < 100; i++)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.1
    done
    die "nothing answers on port $1: $(tail -n 1 "$T/err")"
}
serve() {  # serve VARIANT PORT COMMAND...
    choose "$1"
    local port=$2
    shift 2
    "${wrap[@]}" "$@" >"$T/out" 2>"$T/err" </dev/null &
    server=$!
    await "$port"
}
stop() {
    kill "$server" || die "the server ended: $(tail -n 3 "$T/err" "$T/out")"
    wait "$server" 2>/dev/null || true
    server=
    silent 'a server'
}
redis() {  # redis VARIANT: seconds for a fixed number of requests
    serve "$1" 16379 redis-server --port 16379 --save '' --appendonly no
    local start=${EPOCHREALTIME/./}
    redis-benchmark -p 16379 -q -n 50000 -t set,get,lpush,lrange_100 >/dev/null
    row program redis-server "$1" "$((${EPOCHREALTIME/./} - start))e-6"
    stop
}
web() {  # web VARIANT CONNECTIONS: seconds for a request on average
    mkdir -p "$T/www"
    chmod 755 "$T" "$T/www"
    head -c 4000 /dev/zero >"$T/www/index.html"
    printf 'daemon off; pid %s/pid; error_log stderr; events {} %s\n' "$T" \
        "http { access_log off; server { listen 16380; root $T/www; } }" >"$T/conf"
    serve "$1" 16380 nginx -c "$T/conf" -p "$T"
    wrk -t 1 -c "$2" -d 1 http://127.0.0.1:16380/index.html >"$T/wrk" || die "wrk: $(tail -n 1 "$T/wrk")"
    ! grep -q 'Non-2xx' "$T/wrk" || die "nginx does not serve the page"
    row program "nginx, $2" "$1" "$(awk '/^Requests\/sec/ { print 1 / $2 }' "$T/wrk")"
    stop
}
servers() {
    local v c
    for v in $(shuf -e "${variants[@]}"); do
        ! command -v redis-benchmark redis-server >/dev/null || redis "$v"
    done
    command -v wrk >/dev/null && command -v nginx >/dev/null || return 0
    for c in 1 8 64; do
        for v in $(shuf -e "${variants[@]}"); do
            web "$v" $c
        done
    done
}

# --- bytes of memory for a block ---

memory() {
    local size v
    for size in 16 64 256 1024 4096; do
        for v in plain eager lazy; do
            run $v "$load" memory 200000 $size
            row memory $size $v "$(cat "$T/out")"
        done
    done
}

# --- from a write behind a block to its report, and from one look at all blocks to the next ---

latency() {  # latency BLOCKS SECONDS INTERVAL: heap_load says when it wrote, our clock when a line came
    local reader line
    mkfifo "$T/reports"
    while IFS= read -r line; do
        case $line in
        *'ERROR: moat: heap-buffer-overflow'*) echo "seen ${line##*address } $EPOCHREALTIME" ;;
        *'microseconds from one time'*) line=${line##* } && echo "cycle ${line//,/}" ;;
        esac
    done <"$T/reports" >"$T/seen" &
    reader=$!
    choose eager
    "${wrap[@]}" "$load" live "$1" "$2" "$3" >"$T/written" 2>"$T/reports" </dev/null || true
    wait $reader
    rm -f "$T/reports"
    awk -v blocks="$1" '
        NR == FNR { at[$1] = at[$1] " " $2; writes++; next }
        $1 == "cycle" { print "cycle\t" blocks "\t" (n++ ? "p99" : "p50") "\t" $2 / 1000; next }
        {
            # The last write there before it was detected: a block may be chosen twice.
            k = split(at[$2], times, " ")
            while (k && times[k] > $3) k--
            if (k) print "latency\t" blocks "\tseen\t" ($3 - times[k]) * 1e3
        }
        END { print "latency\t" blocks "\twrites\t" writes }' "$T/written" "$T/seen" >>"$T/rows"
}
latencies() {
    local blocks all=$((SECONDS_IN_ALL * 25 / 100)) count each
    count=$(wc -w <<<"$LIVE")
    each=$((all / count > 1 ? all / count : 1))
    for blocks in $LIVE; do
        # A cycle takes some hundred nanoseconds for each block, without disturbance.
        latency "$blocks" $each \
            "$(awk -v n="$blocks" '
                BEGIN { print n < 20000 ? 0.05 : n < 200000 ? 0.2 : n < 2000000 ? 1 : 4 }')"
    done
}

# --- how often an exploit is stopped ---

exploits() {  # T1 of what heap_exploit.c does, without us; and how often it gets there with us
    local way blocks
    for way in call request file spray; do
        for blocks in 1000 100000; do
            run plain "$BUILD/bench/heap_exploit" $way $blocks
            row exploit "$way $blocks" plain "$(cat "$T/out")"
            choose eager
            if "${wrap[@]}" MOAT_OPTIONS=heap-free=eager:halt-on-error "$BUILD/bench/heap_exploit" $way \
                $blocks >"$T/out" 2>"$T/err"; then
                row exploit "$way $blocks" stopped 0
            else
                grep -q 'ERROR: moat' "$T/err" || die "heap_exploit $way fails: $(tail -n 1 "$T/err")"
                row exploit "$way $blocks" stopped 1
            fi
        done
    done
}

for part in $PARTS; do
    case $part in
    loads) until_spent 22 loads ;;
    programs)
        with_fence
        until_spent 20 programs
        ;;
    servers) until_spent 23 servers ;;
    memory) memory ;;
    latency) latencies ;;
    exploits) until_spent 10 exploits ;;
    *) die "no part $part" ;;
    esac
done

drawings=$T
[ -n "${HEAP_BENCH_DRY:-}" ] || drawings=$here/../doc
{
    echo '## The heap'
    echo
    "$here/machine"
    python3 "$here/heap_tables.py" "$drawings" "$SCALE" <"$T/rows"
} >"$T/section"
cat "$T/section"
[ -n "${HEAP_BENCH_DRY:-}" ] || "$here/section" heap <"$T/section"
