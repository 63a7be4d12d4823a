#!/bin/bash
# SPDX-License-Identifier: MIT
# What libmoat-heap.so costs, eager and lazy, against the same program without it: work that only allocates (heap_load.c), and
# programs of Debian as far as they are installed; and how soon it sees a write. Runs are interleaved.
# HEAP_BENCH_RUNS: of each; HEAP_BENCH_SCALE: allocations of a load; HEAP_BENCH_LIVE: numbers of live blocks.
set -eu
here=$(dirname "$0")
RUNS=${HEAP_BENCH_RUNS:-7}
SCALE=${HEAP_BENCH_SCALE:-3000000}
LIVE=${HEAP_BENCH_LIVE:-1000 100000 10000000}
T=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$T"
}
trap finish EXIT
library=$(realpath "$BUILD/lib/libmoat-heap.so")
load=$BUILD/bench/heap_load
scudo=$(clang -print-file-name=libclang_rt.scudo_standalone-x86_64.so 2>/dev/null || true)
fence=$(ldconfig -p | sed -n 's/.*libefence\.so.* => //p' | head -n 1)

variants=(plain eager lazy)
[ ! -f "$scudo" ] || variants+=(scudo)
under() {  # under VARIANT COMMAND...
    local variant=$1
    shift
    case $variant in
    plain) "$@" ;;
    eager | lazy) MOAT_OPTIONS=heap-free=$variant LD_PRELOAD=$library "$@" ;;
    scudo) LD_PRELOAD=$scudo "$@" ;;
    efence) LD_PRELOAD=$fence "$@" ;;
    esac
}
become() {  # become VARIANT COMMAND...: in a background shell, which this turns into the command
    local variant=$1
    shift
    case $variant in
    plain) exec "$@" ;;
    *) exec env MOAT_OPTIONS="heap-free=$variant" LD_PRELOAD="$library" "$@" ;;
    esac
}
seconds() {  # seconds VARIANT COMMAND...: what it takes
    local start=${EPOCHREALTIME/./}
    under "$@" >"$T/out" 2>"$T/err" </dev/null || { echo "heap.sh: $* failed: $(tail -n 1 "$T/err")" >&2; exit 1; }
    ! grep -q 'ERROR: moat' "$T/err" || { echo "heap.sh: a report in $*" >&2; exit 1; }
    echo "$((${EPOCHREALTIME/./} - start))e-6"
}

# Rows of $T/rows: KIND NAME VARIANT value
loads() {
    local i name v
    for ((i = 0; i < RUNS; i++)); do
        for name in pairs sizes batch larson handover resize; do
            for v in "${variants[@]}"; do
                echo "load $name $v $(under "$v" "$load" "$name" "$SCALE")"
            done
        done
    done >>"$T/rows"
}

declare -A program
program[sqlite3]="sqlite3 :memory: 'create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<300000) insert into t select x, hex(randomblob(8)) from c; create index i on t(b); select count(*), max(b) from t where b like \"A%\";'"
program[gcc]="env CCACHE_DISABLE=1 gcc -std=gnu11 -O2 -D_GNU_SOURCE -I$here/../src -c -o $T/o.o $here/../src/ptx/parser.c"
program[perl]="perl -e 'my %h; for my \$r (1..3) { \$h{\$_} = \"x\" x (\$_ % 100) for 1..150000; my @k = sort keys %h; %h = (); }'"
program[python3]="python3 -c 'import json; d = [{\"a\": i, \"b\": [str(j) for j in range(20)]} for i in range(15000)]; [json.loads(json.dumps(d)) for _ in range(3)]'"

programs() {
    local i name v
    for ((i = 0; i < RUNS; i++)); do
        for name in "${!program[@]}"; do
            command -v "$name" >/dev/null || continue
            for v in plain eager lazy; do
                echo "program $name $v $(seconds "$v" sh -c "exec ${program[$name]}")"
            done
        done
    done >>"$T/rows"
}

await() {  # await PORT
    local i
    for ((i = 0; i < 100; i++)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.1
    done
    echo "heap.sh: nothing answers on port $1" >&2
    exit 1
}
redis() {  # redis VARIANT: seconds for a fixed number of requests
    local start
    become "$1" redis-server --port 16379 --save '' --appendonly no >"$T/out" 2>"$T/err" &
    server=$!
    await 16379
    start=${EPOCHREALTIME/./}
    redis-benchmark -p 16379 -q -n 100000 -t set,get,lpush,lrange_100 >/dev/null
    echo "program redis-server $1 $((${EPOCHREALTIME/./} - start))e-6" >>"$T/rows"
    kill "$server" || { echo "heap.sh: the server ended: $(tail -n 3 "$T/err" "$T/out")" >&2; exit 1; }
    wait "$server" 2>/dev/null || true
    server=
}
web() {  # web VARIANT CONNECTIONS: seconds for a request on average
    mkdir -p "$T/www"
    head -c 4000 /dev/zero >"$T/www/index.html"
    printf 'daemon off; pid %s/pid; error_log stderr; events {} http { access_log off; server { listen 16380; root %s/www; } }\n' "$T" "$T" >"$T/conf"
    become "$1" nginx -c "$T/conf" -p "$T" >"$T/out" 2>"$T/err" &
    server=$!
    await 16380
    wrk -t 1 -c "$2" -d 2 http://127.0.0.1:16380/index.html |
        awk -v v="$1" -v c="$2" '/^Requests\/sec/ { print "program nginx-" c, v, 1 / $2 }' >>"$T/rows"
    kill "$server" || { echo "heap.sh: the server ended: $(tail -n 3 "$T/err" "$T/out")" >&2; exit 1; }
    wait "$server" 2>/dev/null || true
    server=
}
servers() {
    local i v c
    for ((i = 0; i < RUNS; i++)); do
        for v in plain eager lazy; do
            ! command -v redis-benchmark >/dev/null || redis "$v"
            command -v wrk >/dev/null && command -v nginx >/dev/null || continue
            for c in 1 8 64; do
                web "$v" "$c"
            done
        done
    done
}

table() {  # table KIND UNIT SCALE: medians, and how many times the plain one
    awk -v kind="$1" -v unit="$2" -v scale="$3" '
        function median(key,   n, i, k, v, a) {
            n = split(values[key], a, " ")
            for (i = 2; i <= n; i++)
                for (k = i; k > 1 && a[k] + 0 < a[k - 1] + 0; k--) { v = a[k]; a[k] = a[k - 1]; a[k - 1] = v }
            return a[int((n + 1) / 2)]
        }
        $1 == kind {
            values[$2, $3] = values[$2, $3] " " $4
            if (!($2 in seen)) { seen[$2] = 1; names[++n] = $2 }
            if (!($3 in column)) { column[$3] = 1; columns[++m] = $3 }
        }
        END {
            head = "| | plain " unit " |"; rule = "| --- | --- |"
            for (c = 2; c <= m; c++) { head = head " " columns[c] " |"; rule = rule " --- |" }
            print head; print rule
            for (i = 1; i <= n; i++) {
                base = median(names[i] SUBSEP "plain")
                row = sprintf("| %s | %.3g |", names[i], base * scale)
                for (c = 2; c <= m; c++) {
                    r = median(names[i] SUBSEP columns[c]) / base
                    row = row sprintf(" %.2f |", r)
                    sum[c] += r
                    if (r > worst[c]) worst[c] = r
                    values["all", c] = values["all", c] " " r
                }
                print row
            }
            average = "| average | |"; middle = "| median | |"; most = "| worst | |"
            for (c = 2; c <= m; c++) {
                average = average sprintf(" %.2f |", sum[c] / n)
                middle = middle sprintf(" %.2f |", median("all" SUBSEP c))
                most = most sprintf(" %.2f |", worst[c])
            }
            print average; print middle; print most
        }' "$T/rows"
}

# From a write behind a block to its report: heap_load says when it wrote, our clock when a line came.
latency() {  # latency BLOCKS
    mkfifo "$T/reports"
    while IFS= read -r line; do
        [[ $line != *'heap-buffer-overflow'* ]] || echo "seen ${line##*address } $(date +%s.%N)"
    done <"$T/reports" >"$T/seen" &
    local reader=$! offset
    offset=$(awk -v now="$(date +%s.%N)" '{ printf "%.6f", now - $1 }' /proc/uptime)
    under eager "$load" live "$1" 12 >"$T/written" 2>"$T/reports" || true
    wait $reader
    rm -f "$T/reports"
    awk -v blocks="$1" -v offset="$offset" '
        NR == FNR { at[$1] = $2; next }
        $2 in at { d[++n] = ($3 - offset - at[$2]) * 1e3 }
        END {
            for (i = 2; i <= n; i++) for (k = i; k > 1 && d[k] < d[k - 1]; k--) { v = d[k]; d[k] = d[k - 1]; d[k - 1] = v }
            if (n) printf "| %d | %d | %.1f | %.1f |\n", blocks, n, d[int((n + 1) / 2)], d[int((n * 99 + 99) / 100)]
        }' "$T/written" "$T/seen"
}

loads
programs
servers
{
    echo '## The heap'
    echo
    "$here/machine"
    echo "Runs of each: $RUNS, interleaved; medians. Columns are times the plain program's."
    echo
    echo "Work that only allocates, $SCALE allocations, nanoseconds for one and its free:"
    echo
    table load ns 1
    echo
    echo 'Programs, wall time; of nginx, time per request at that many connections:'
    echo
    table program ms 1000
    echo
    echo 'From a write one byte behind a block to its report, eager, in milliseconds:'
    echo
    echo '| live blocks | writes | p50 | p99 |'
    echo '| --- | --- | --- | --- |'
    for blocks in $LIVE; do
        latency "$blocks"
    done
} >"$T/section"
cat "$T/section"
[ -n "${HEAP_BENCH_DRY:-}" ] || "$here/section" heap <"$T/section"
