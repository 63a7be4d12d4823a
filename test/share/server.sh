#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# moat share over a pretended nvidia-cuda-mps-control (test/share/mps): starts, lists, ends, restarts and
# stops; and whatever that program prints or does, moat ends with an error that says so, in bounded time and
# memory.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export PATH=$PWD/test/share/mps:$PATH XDG_RUNTIME_DIR=$T
unset MOAT_OPTIONS
passed=0 failed=0
folder=$T/moat-share

share() {  # share WORD...: status in $status, output in $T/out, errors in $T/err
    timeout 60 "$MOAT" share "$@" >"$T/out" 2>"$T/err" </dev/null
    status=$?
}

expect() {  # expect WHAT STATUS [TEXT]: TEXT is an extended regular expression for what was printed
    if [ "$status" = "$2" ] && { [ $# = 2 ] || cat "$T/out" "$T/err" | grep -qE -- "$3"; }; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $1: status $status, $2 wanted, with: ${3:-}"
    head -c 2000 "$T/out" "$T/err" | sed 's/^/    | /'
}

holds() {  # holds WHAT COMMAND...
    local what=$1
    shift
    if "$@" >/dev/null 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what"
    fi
}

# --- without a share ---
share clients
expect 'no share yet' 2 'there is no share in .*moat share start'
mkdir -m 755 "$folder"
share start
expect 'a folder that others can enter' 2 'must have mode 0700'
rmdir "$folder"
ln -s "$T" "$folder"
share start
expect 'a link in place of the folder' 2 'is no folder'
rm "$folder"
share start --share-dir=relative
expect 'a relative folder' 2 'no absolute path'
share start --share-dir="/tmp/$(printf 'x%.0s' {1..100})"
expect 'a long folder' 2 'sockets below it'
share start now
expect 'an operand' 2 'takes no operand'
FAKE_MPS=fail share start
expect 'a daemon that cannot start' 2 'fails with status 1'
PATH=/usr/bin:/bin share start
expect 'no control program' 2 'there is no nvidia-cuda-mps-control'

# --- a share ---
FAKE_MPS_KEEPS=5 share start --share-percent=30 --share-memory=1500M
expect 'start' 0 "^started in $folder"
holds 'the folder is private' [ "$(stat -c %a "$folder")" = 700 ]
share start
expect 'start again' 0 '^already running'
share limits
expect 'the share of multiprocessors' 0 'percent: +30.0$'
expect 'the share of memory' 0 'device 0: +1500M$'
share clients
expect 'no client' 0 '^0 clients on 0 servers'

sleep 600 & first=$!
sleep 600 & second=$!
printf '%s\n' $first $second >"$folder/pipe/servers/4711"
FAKE_MEMORY="$first, 512" share clients
expect 'clients' 0 '^2 clients on 1 server, which takes 48 each; 2 not fenced'
expect 'memory of a client' 0 "^4711 +$first +512.0 MiB +no +- +sleep"
expect 'memory that is not known' 0 "^4711 +$second +- +no +- +sleep"
share metrics
expect 'metrics' 0 "^moat_share_client_fenced\{pid=\"$first\",program=\"sleep\"\} 0$"
expect 'metrics: clients' 0 '^moat_share_clients 2$'

share end
expect 'nothing to end' 2 'needs the number'
share end 1x
expect 'no number' 2 'needs the number'
share end 1
expect 'no client' 2 '1 is no client'
FAKE_MPS=unkind share end $second
expect 'an end that fails' 2 'could not be ended: Failed to terminate'
share end $second
expect 'an end' 0 "^client $second of server 4711 has ended"
holds 'the server was asked' grep -qx "terminate_client 4711 $second" "$folder/log/commands"
share clients
expect 'one is left' 0 '^1 client on 1 server'

# --- a server that refuses clients ---
cat >"$T/driver.c" <<'END'
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>
int cuInit(unsigned flags)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/refuses", getenv("CUDA_MPS_PIPE_DIRECTORY"));
    return access(path, F_OK) ? 0 : getenv("FAKE_REFUSAL") ? atoi(getenv("FAKE_REFUSAL")) : 46;
}
int cuDeviceGet(int *device, int n) { return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    return getenv("FAKE_ERROR") ? atoi(getenv("FAKE_ERROR")) : 0;
}
END
cc -shared -fPIC -o "$T/driver.so" "$T/driver.c" || exit 1
share restart --driver="$T/driver.so"
expect 'a server that accepts clients' 0 'nothing to do'
FAKE_ERROR=808 share restart --driver="$T/driver.so"
expect 'a full server' 0 'all the clients that it takes'
FAKE_ERROR=2 share restart --driver="$T/driver.so"
expect 'another error' 2 'error 2: '
share restart --driver=/dev/null
expect 'no driver' 2 'no driver'
: >"$folder/pipe/refuses"
share restart --driver="$T/driver.so"
expect 'a client would be ended' 2 'but 1 client still runs on it; --share-force'
holds 'the server was left alone' [ -e "$folder/pipe/servers/4711" ]
kill $first
wait $first 2>/dev/null
share restart --driver="$T/driver.so"
expect 'a restart after a kill' 0 '^restarted'
holds 'the server was shut down' grep -qx 'shutdown_server 4711 -f' "$folder/log/commands"
echo $second >"$folder/pipe/servers/4712"
: >"$folder/pipe/refuses"
FAKE_MPS=stubborn share restart --share-force --driver="$T/driver.so"
expect 'a server that does not go alone' 0 '^restarted'
holds 'the daemon went with it' grep -qx 'quit -t 1' "$folder/log/commands"

echo $second >"$folder/pipe/servers/4713"
: >"$folder/pipe/refuses"
FAKE_REFUSAL=719 share restart --share-force --driver="$T/driver.so"
expect 'a server whose clients are in error' 0 '^restarted'

# --- answers that are none ---
for how in flood:'more than 65536 bytes' binary:'' words:'something else' many:'more than 64'; do
    FAKE_MPS=${how%%:*} share clients
    expect "an answer: ${how%%:*}" 2 "${how#*:}"
    FAKE_MPS=${how%%:*} share end $second
    expect "an answer to end: ${how%%:*}" 2
done
share clients --share-force
expect 'an option of another command' 2 'not an option of `moat share clients`'

# --- the end ---
echo $second >"$folder/pipe/servers/4712"
share stop
expect 'stop with a client' 2 '1 client would be ended'
share stop --share-force
expect 'stop' 0
share stop
expect 'stop again' 2 'no control daemon answers'
share metrics
expect 'metrics of a share that is down' 0 '^moat_share_up 0$'
kill $second
wait $second 2>/dev/null

# --- units ---
if command -v systemd-analyze >/dev/null; then
    mkdir "$T/units"
    for unit in $("$MOAT" share units | sed -n 's|^# ~/.*/||p'); do
        "$MOAT" share units "$unit" >"$T/units/$unit"
    done
    holds 'units' [ "$(ls "$T/units" | wc -l)" = 6 ]
    systemd-analyze verify --user "$T"/units/*.service "$T"/units/*.timer >"$T/out" 2>&1
    status=$?
    expect 'units are valid' 0
fi
share units bogus
expect 'no such unit' 2 'there is no unit'

echo "$passed passed, $failed failed"
[ $failed = 0 ]
