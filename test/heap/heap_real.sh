#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# Programs of the system under libmoat-heap.so: their output is the same as without it, no error is reported,
# and servers do not grow. HEAP_SECONDS: for how long each of six runs, half of it eager and half lazy; 0: all
# programs a few times. HEAP_ONLY: which ones. HEAP_TOGETHER=yes: all six run in parallel. SECTION=FILE: a
# table of the six is written there.
set -u
T=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    rm -rf "$T"
}
trap finish EXIT
library=$(realpath "$BUILD/lib/libmoat-heap.so")
seconds=$((${HEAP_SECONDS:-0} / 2))
together=${HEAP_TOGETHER:-no}
[[ $together =~ ^(yes|no)$ ]] || { echo "heap_real: HEAP_TOGETHER is yes or no, not $together" >&2; exit 2; }
passed=0 failed=0
try() {  # try NAME COMMAND...
    local name=$1 mode
    shift
    command -v "$1" >/dev/null || return 0
    timeout 100 "$@" >"$T/expected" 2>/dev/null </dev/null || return 0
    for mode in eager lazy; do
        if ! MOAT_OPTIONS=heap-free=$mode LD_PRELOAD=$library \
            timeout 200 "$@" >"$T/out" 2>"$T/log" </dev/null ||
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
    try bash \
        bash -c 'for i in $(seq 100); do x=$(echo $i | sed s/1/2/); a[$i]=$x; done; echo ${#a[@]} ${a[7]}'
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
    try sqlite3 sqlite3 :memory: 'create table t(a, b);
        with recursive c(x) as (select 1 union all select x+1 from c where x < 50000)
        insert into t select x, x * 7919 % 100003 from c; create index i on t(b);
        select count(*), max(b) from t where b > 50000;'
    try sort bash -c 'seq 100000 | sort -r --parallel=2 | md5sum'
    try tar bash -c 'tar cf - src/heap | tar tf - | wc -l'
    try git git log --oneline -20
    try ls ls /usr/bin
}
resident() {  # the resident memory of a process and its children, in KiB
    cat /proc/"$1"/status $(pgrep -P "$1" | sed 's|.*|/proc/&/status|') 2>/dev/null |
        awk '/^VmRSS/ { sum += $2 } END { print sum + 0 }'
}
# judge NAME MODE ROUNDS BEFORE AFTER FINE: $T/log and $T/out are checked too
judge() {
    if [ "$6" != yes ] || grep -q 'moat: ' "$T/log" "$T/out" || [ "$5" -gt $(($4 * 5 / 4 + 8192)) ]; then
        failed=$((failed + 1))
        echo "$1 ($2): fails, says something or grows from $4 to $5 KiB"
        cat "$T/log" "$T/out" "$T/client" 2>/dev/null | tail -n 20 | sed 's/^/    | /'
    else
        passed=$((passed + 1))
    fi
    [ $seconds = 0 ] ||
        echo "| $1 | $2 | $seconds | $3 | $4 | $5 | $(grep -c 'ERROR: moat' "$T/log") |" >>"$T/rows"
}
chosen() {
    [ -z "${HEAP_ONLY:-}" ] || [[ " $HEAP_ONLY " = *" $1 "* ]]
}
# serve NAME PROGRAM CLIENT: the client's command runs a few times, or as long as there is time; after that
# the server must not have grown.
serve() {
    local name=$1 program=$2 client=$3 mode before after i begins fine
    chosen "$name" && command -v "${program%% *}" >/dev/null &&
        command -v "${client%% *}" >/dev/null || return 0
    for mode in eager lazy; do
        rm -f "$T/socket"
        MOAT_OPTIONS=heap-free=$mode LD_PRELOAD=$library $program >"$T/out" 2>"$T/log" </dev/null &
        server=$!
        for ((i = 0; i < 200; i++)); do
            $client >"$T/client" 2>&1 && break
            sleep 0.1
        done
        begins=$SECONDS before=0 fine=yes
        # The call that found the server ready was the first round.
        for ((i = 1; i < 4 || SECONDS < begins + seconds; i++)); do
            # A client that waits for ever means a server that does.
            timeout 120 $client >"$T/client" 2>&1 || fine=no
            [ $i -lt 2 ] || [ $SECONDS -lt $((begins + seconds / 5)) ] || [ $before != 0 ] ||
                before=$(resident $server)
            [ $fine = yes ] || break
        done
        after=$(resident $server)
        $client_ok "$T/client" || fine=no
        kill $server 2>/dev/null
        wait $server 2>/dev/null
        server=
        judge "$name" $mode $i "$before" "$after" $fine
    done
}
servers() {
    client_ok='grep -q requests.per.second'
    serve redis-server "redis-server --port 0 --unixsocket $T/socket --save  --appendonly no" \
        "redis-benchmark -s $T/socket -n 2000 -t set,get,lpush,lpop,rpop,lrange_100"
    local port=$((20000 + $$ % 10000))
    mkdir -p "$T/www"
    chmod 755 "$T" "$T/www"
    echo page >"$T/www/index.html"
    echo "daemon off; pid $T/pid; error_log stderr; events {}" \
        "http { access_log off; server { listen 127.0.0.1:$port; root $T/www; } }" >"$T/conf"
    client_ok='grep -q Requests/sec'
    serve nginx "nginx -c $T/conf -p $T" "wrk -t 1 -c 8 -d 1 http://127.0.0.1:$port/index.html"
}
# work NAME FEED COMMAND...: one process that works until $until, reads what FEED prints, and prints how many
# rounds it made.
work() {
    local name=$1 feed=$2 mode before after i
    shift 2
    chosen "$name" && command -v "$1" >/dev/null || return 0
    for mode in eager lazy; do
        export until=$(($(date +%s) + seconds))
        $feed | MOAT_OPTIONS=heap-free=$mode LD_PRELOAD=$library "$@" >"$T/out" 2>"$T/log" &
        server=$!
        sleep $((seconds / 5))
        before=$(resident $server)
        sleep $((seconds - seconds / 5 - seconds / 50 - 1))
        after=$(resident $server)
        for ((i = 0; i < 1200; i++)); do
            kill -0 $server 2>/dev/null || break
            sleep 0.1
        done
        if [ $i = 1200 ] || ! wait $server || ! grep -q '^rounds ' "$T/out"; then
            kill -9 $server 2>/dev/null
            judge "$name" $mode 0 "$before" "$after" no
        else
            judge "$name" $mode "$(sed -n 's/^rounds //p' "$T/out" | tail -n 1)" "$before" "$after" yes
        fi
        server=
    done
}
nothing() { :; }
statements() {  # each fills a pipe, so that no more than one waits in it
    local i=0
    echo 'create table t(a, b); create index i on t(b);'
    while [ "$(date +%s)" -lt "$until" ]; do
        printf '%s%65000s\n' "begin;
            with recursive c(x) as (select 1 union all select x+1 from c where x < 50000)
            insert into t select x, hex(randomblob(8)) from c;
            select 'rounds', $((++i)) where (select count(*) from t where b > 'A') > 0;
            delete from t; commit;" ''
    done
}
compile() {  # the compiler is short-lived, so the loop starts it again and again
    local mode rounds fine
    chosen gcc && command -v gcc >/dev/null || return 0
    CCACHE_DISABLE=1 gcc -O2 -D_GNU_SOURCE -Isrc -S -o "$T/expected" src/base/option.c || return 0
    for mode in eager lazy; do
        local ends=$((SECONDS + seconds))
        : >"$T/log"
        : >"$T/out"
        for ((rounds = 0; SECONDS < ends; rounds++)); do
            CCACHE_DISABLE=1 MOAT_OPTIONS=heap-free=$mode LD_PRELOAD=$library \
                timeout 100 gcc -O2 -D_GNU_SOURCE -Isrc -S -o "$T/s" src/base/option.c 2>>"$T/log" &&
                cmp -s "$T/s" "$T/expected" && fine=yes || fine=no
            [ $fine = yes ] || break
        done
        judge gcc $mode $rounds 0 0 $fine
    done
}
long() {
    servers
    work sqlite3 statements sqlite3 -separator ' ' :memory:
    compile
    work perl nothing perl -e 'my $n = 0;
        while (time < $ENV{until}) { my %h; $h{$_ + $n} = "x" x ($_ % 100) for 1..50000;
        my @k = sort keys %h; my $p = fork; exit 0 if !$p; waitpid $p, 0; $n++ } print "rounds $n\n"'
    work python3 nothing python3 -c '
import json, os, threading, time
n = 0
while time.time() < int(os.environ["until"]):
    d = [{"a": i, "b": [str(j) for j in range(20)]} for i in range(3000 + n % 7)]
    assert json.loads(json.dumps(d)) == d
    ts = [threading.Thread(target=lambda: json.loads(json.dumps(d[:300]))) for _ in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    n += 1
print("rounds", n)'
}
# beside_each_other NAME...: each in a script of its own, whose rows and output are put together.
beside_each_other() {
    local name jobs=()
    for name; do
        HEAP_TOGETHER=no HEAP_ONLY=$name SECTION=$T/$name.md "$0" >"$T/$name.log" 2>&1 &
        jobs+=($!)
    done
    for name; do
        wait "${jobs[0]}" && passed=$((passed + 2)) || failed=$((failed + 1))
        jobs=("${jobs[@]:1}")
        grep -v ' passed, ' "$T/$name.log"
        grep "^| $name |" "$T/$name.md" >>"$T/rows"
    done
}
if [ $seconds = 0 ]; then
    all
    servers
else
    if [ "$together" = yes ]; then
        beside_each_other redis-server nginx sqlite3 gcc perl python3
    else
        long
    fi
    {
        echo '## Programs that work for minutes under the heap'\''s watch'
        echo
        "$(dirname "$0")/../../bench/machine"
        echo
        echo 'KiB that they have resident after a fifth of the time and at the end;' \
            'the compiler is started again and again:'
        echo
        echo '| | | seconds | rounds | resident, KiB | at the end | reports |'
        echo '| --- | --- | --- | --- | --- | --- | --- |'
        cat "$T/rows"
    } >"${SECTION:-/dev/null}"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ] && { [ $passed -gt 4 ] || [ -n "${HEAP_ONLY:-}" ]; }
