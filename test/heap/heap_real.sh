#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Programs of the system under libmoat-heap.so: they do what they do without it, and no error is reported. HEAP_SECONDS: for how
# long, 0 for once each.
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
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
end=$((SECONDS + ${HEAP_SECONDS:-0}))
all
while [ $SECONDS -lt $end ] && [ $failed = 0 ]; do
    all
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 4 ]
