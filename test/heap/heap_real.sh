#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Programs of the system under libmoat-heap.so: they do what they do without it, no error is reported, and servers do not grow.
# HEAP_SECONDS: for how long, 0 for once each.
set -u
T=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    rm -rf "$T"
}
trap finish EXIT
library=$(realpath "$BUILD/lib/libmoat-heap.so")
passed=0 failed=0
try() {  # try NAME COMMAND...
    local name=$1 mode
    shift
    command -v "$1" >/dev/null || return 0
    timeout 100 "$@" >"$T/expected" 2>/dev/null </dev/null || return 0
    for mode in eager lazy; do
        if ! MOAT_OPTIONS=heap-free=$mode LD_PRELOAD=$library timeout 200 "$@" >"$T/out" 2>"$T/log" </dev/null ||
            grep -q 'moat: ' "$T/log" || ! cmp -s "$T/out" "$T/expected"; then
            failed=$((failed + 1))
            echo "$name ($mode): fails, says something or prints something else"
            grep -A 20 'moat: ' "$T/log" | head -n 30 | sed 's/^/    | /'
        else
            passed=$((passed + 1))
        fi
    done
}
all() {
    try bash bash -c 'for i in $(seq 100); do x=$(echo $i | sed s/1/2/); a[$i]=$x; done; echo ${#a[@]} ${a[7]}'
    try python3 python3 -c '
import json, subprocess, threading
d = [{"a": i, "b": [str(j) for j in range(20)]} for i in range(5000)]
s = json.dumps(d)
assert json.loads(s) == d
ts = [threading.Thread(target=lambda: json.loads(json.dumps(d[:500]))) for _ in range(8)]
[t.start() for t in ts]
[t.join() for t in ts]
print(len(s), subprocess.run(["echo", "hi"], capture_output=True).stdout)'
    try perl perl -e 'my %h; $h{$_} = "x" x ($_ % 100) for 1..50000; print scalar(sort keys %h), "\n";
        for (1..20) { my $p = fork; exit 0 if !$p; waitpid $p, 0 }'
    try gcc env CCACHE_DISABLE=1 gcc -O2 -D_GNU_SOURCE -Isrc -S -o - src/base/option.c
    try sqlite3 sqlite3 :memory: 'create table t(a, b); with recursive c(x) as (select 1 union all select x+1 from c where x < 50000)
        insert into t select x, x * 7919 % 100003 from c; create index i on t(b); select count(*), max(b) from t where b > 50000;'
    try sort bash -c 'seq 100000 | sort -r --parallel=2 | md5sum'
    try tar bash -c 'tar cf - src/heap | tar tf - | wc -l'
    try git git log --oneline -20
    try ls ls /usr/bin
}
resident() {  # of a process and its children, in KiB
    cat /proc/"$1"/status $(pgrep -P "$1" | sed 's|.*|/proc/&/status|') 2>/dev/null | awk '/^VmRSS/ { sum += $2 } END { print sum + 0 }'
}
# serve NAME PROGRAM CLIENT: the client's command runs some times, or as long as there is time, after which the server must not have grown.
serve() {
    local name=$1 program=$2 client=$3 mode before after i ends
    command -v "${program%% *}" >/dev/null && command -v "${client%% *}" >/dev/null || return 0
    for mode in eager lazy; do
        rm -f "$T/socket"
        MOAT_OPTIONS=heap-free=$mode LD_PRELOAD=$library $program >"$T/out" 2>"$T/log" </dev/null &
        server=$!
        for ((i = 0; i < 200; i++)); do
            $client >"$T/client" 2>&1 && break
            sleep 0.1
        done
        ends=$((SECONDS + ${HEAP_SECONDS:-0} / 4))
        for ((i = 0; i < 2; i++)); do $client >"$T/client" 2>&1; done
        before=$(resident $server)
        for ((i = 0; i < 2 || SECONDS < ends; i++)); do
            $client >"$T/client" 2>&1 || break
        done
        after=$(resident $server)
        kill $server 2>/dev/null
        wait $server 2>/dev/null
        server=
        if ! $client_ok "$T/client" || grep -q 'moat: ' "$T/log" "$T/out" || [ "$after" -gt $((before * 3 / 2 + 8192)) ]; then
            failed=$((failed + 1))
            echo "$name ($mode): fails, says something or grows from $before to $after KiB"
            cat "$T/log" "$T/client" | tail -n 20 | sed 's/^/    | /'
        else
            passed=$((passed + 1))
        fi
    done
}
servers() {
    client_ok='grep -q requests.per.second'
    serve redis-server "redis-server --port 0 --unixsocket $T/socket --save  --appendonly no" \
        "redis-benchmark -s $T/socket -n 2000 -t set,get,lpush,lrange_100"
    local port=$((20000 + $$ % 10000))
    mkdir -p "$T/www"
    chmod 755 "$T" "$T/www"
    echo page >"$T/www/index.html"
    echo "daemon off; pid $T/pid; error_log stderr; events {} http { access_log off; server { listen 127.0.0.1:$port; root $T/www; } }" >"$T/conf"
    client_ok='grep -q Requests/sec'
    serve nginx "nginx -c $T/conf -p $T" "wrk -t 1 -c 8 -d 1 http://127.0.0.1:$port/index.html"
}
end=$((SECONDS + ${HEAP_SECONDS:-0}))
all
servers
while [ $SECONDS -lt $end ] && [ $failed = 0 ]; do
    all
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 4 ]
