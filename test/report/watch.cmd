# SPDX-License-Identifier: MIT
# builds: one
# What the command makes of the reports of processes, of their ends and of bad days. The processes are fake_watched.c's,
# behind a guard that does nothing.
$ mkdir -p $T/tree/bin $T/tree/lib/moat $T/tmp; cp $MOAT $T/tree/bin/
$ cp -L $BUILD/lib/libmoat-cpu.so $BUILD/lib/libcudart.so.13 $T/tree/lib/moat/; cp $BUILD/tool/fake_watched $T/fake
$ gcc -shared -fPIC -x c -o $T/tree/lib/moat/libmoat.so - <<< 'int nothing;'
# w: moat with both outputs in one and all process numbers called P.
$ cat > $T/w <<'END'
> #!/bin/bash
> set -o pipefail
> unset XDG_RUNTIME_DIR
> export TMPDIR=$T/tmp
> $T/tree/bin/moat --device=cpu "$@" 2>&1 | sed -E 's/==[0-9]+==/==P==/; s/(pid"?:? ?|process |parent":)[0-9]+/\1P/g'
> END
$ chmod +x $T/w

# Libraries stand in front of what is there already, and the options say what was found out.
$ LD_PRELOAD=$T/tree/lib/moat/libmoat-cpu.so $T/w sh -c 'echo $LD_PRELOAD $LD_LIBRARY_PATH $MOAT_OPTIONS; echo $MOAT_CHANNEL' | sed -E "s|$T/tree/lib/moat|LIB|g; s|moat-......|moat-RANDOM|"
LIB/libmoat.so:LIB/libcudart.so.13:LIB/libmoat-RANDOM LIB device=cpu:device=cpu:driver=LIB/libmoat-cpu.so
$T/tmp/moat-RANDOM/s
moat: error: nothing was watched: no process of the program has used CUDA where moat could see it
$ touch $T/tree/lib/moat/libmoat-heap.so; $T/tree/bin/moat --device=cpu --heap sh -c 'echo $LD_PRELOAD' 2> /dev/null | sed -E "s|$T/tree/lib/moat|LIB|g"
LIB/libmoat-heap.so:LIB/libmoat.so:LIB/libcudart.so.13
$ $T/tree/bin/moat --device=cpu --heap --mode=off sh -c 'echo $LD_PRELOAD' 2> /dev/null | sed -E "s|$T/tree/lib/moat|LIB|g"; rm $T/tree/lib/moat/libmoat-heap.so
LIB/libmoat-heap.so:LIB/libmoat-cpu.so:LIB/libcudart.so.13
$ $T/tree/bin/moat --driver=/my/libcuda.so sh -c 'echo $LD_PRELOAD $LD_LIBRARY_PATH $MOAT_OPTIONS' 2> /dev/null | sed -E "s|$T/tree/lib/moat|LIB|g"
LIB/libmoat.so driver=/my/libcuda.so
$ $T/w --strict --driver=/my/libcuda.so $T/fake start end
moat: error: the driver "/my/libcuda.so" cannot be used: No such file or directory
[status 98]
$ mkdir "$T/two words"; cp -r $T/tree/* "$T/two words"; "$T/two words/bin/moat" --driver=/my/libcuda.so sh -c 'echo $LD_PRELOAD $LD_LIBRARY_PATH' 2> /dev/null
libmoat.so $T/two words/lib/moat
[status 98]

# The program's own status; 97 over it; 98 where nothing was watched.
$ $T/w $T/fake start say=hello end exit=7
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
hello
==P==moat: 0 errors
  watched
    kernels launched  3
[status 7]
$ $T/w $T/fake start error end exit=7
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==ERROR: moat: heap-buffer-overflow on device 0 address 0x7f0000000400 in kernel scale(float*, int) scale.cu:7
WRITE of size 4 by an unknown thread
0x7f0000000400 is located 0 bytes after 1024-byte region [0x7f0000000000,0x7f0000000400)
allocated by cuMemAlloc_v2
Report 1 of process P
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)

==P==moat: 1 error
  watched
    kernels launched  3
[status 97]

$ $T/w $T/fake say=hello exit=7
hello
moat: warning: nothing was watched: no process of the program has used CUDA where moat could see it
[status 7]
$ $T/w --error-exitcode=5 $T/fake start error end
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==ERROR: moat: heap-buffer-overflow on device 0 address 0x7f0000000400 in kernel scale(float*, int) scale.cu:7
WRITE of size 4 by an unknown thread
0x7f0000000400 is located 0 bytes after 1024-byte region [0x7f0000000000,0x7f0000000400)
allocated by cuMemAlloc_v2
Report 1 of process P
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)

==P==moat: 1 error
  watched
    kernels launched  3
[status 5]

$ $T/w --error-exitcode=0 $T/fake start error end exit=7 | tail -n 1; $T/w --error-exitcode=0 $T/fake start error exit=7 > $T/log
    kernels launched  3
[status 7]
$ $T/w --mode=off $T/fake say=hello exit=7
hello
[status 7]

# A signal: the command dies by it, so that a shell sees what it would have seen.
$ $T/w $T/fake start raise=9 2> /dev/null; echo $?
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==moat: this process ended without a summary: by signal 9 (Killed)
137
$ $T/w $T/fake start raise=6 > $T/log 2>&1; echo $?; ls $T/tmp
134
$ $T/w $T/fake raise=15 2> /dev/null; echo $?
moat: warning: nothing was watched: no process of the program has used CUDA where moat could see it
143
$ $T/w $T/fake start error raise=9 | tail -n 1; $T/w $T/fake start error raise=9 > $T/log; echo $?
==P==moat: this process ended without a summary: by signal 9 (Killed)
97
$ python3 -c 'import os, subprocess; print(subprocess.run([os.environ["T"] + "/tree/bin/moat", "--device=cpu", os.environ["T"] + "/fake", "raise=15"], stderr=subprocess.DEVNULL).returncode)'
-15

# Signals sent to the command reach the program.
$ $T/tree/bin/moat --device=cpu sh -c 'trap "echo got; exit 3" TERM; echo ready > $T/ready; while :; do sleep 0.05; done' 2> $T/log & until [ -s $T/ready ]; do sleep 0.05; done; kill $!; wait $!; echo $?
got
3
$ rm $T/ready; $T/tree/bin/moat --device=cpu sh -c 'trap "echo got; touch $T/got" USR1; echo $$ > $T/ready; while :; do sleep 0.05; done' 2> $T/log & until [ -s $T/ready ]; do sleep 0.05; done; kill -USR1 $!; until [ -e $T/got ]; do sleep 0.05; done; kill -9 $(cat $T/ready); wait $! 2> /dev/null; echo $?
got
137
# Even where the caller ignores that children end, and the program finds signals as the caller left them.
$ (trap '' CHLD USR2; exec $T/w $T/fake start end exit=7) > $T/log; echo $?
7
$ for mode in off api; do env --ignore-signal=USR2,PIPE --default-signal=CHLD,INT $T/tree/bin/moat --mode=$mode --device=cpu grep -E '^Sig(Blk|Ign)' /proc/self/status 2> $T/log; done | sort -u | wc -l
2
$ ulimit -Sn 512; for mode in off api; do $T/tree/bin/moat --mode=$mode --device=cpu sh -c 'ls /proc/self/fd | wc -l; ulimit -n' 2> $T/log; done | sort -u | wc -l
2

# Processes of the tree: each reports for itself, the worst counts.
$ $T/w sh -c '$T/fake start end; $T/fake start error=double-free end; exit 3' | grep -v '^ '
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==moat: 0 errors
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==ERROR: moat: double-free on device 0 address 0x7f0000000400 in kernel scale(float*, int) scale.cu:7
WRITE of size 4 by an unknown thread
0x7f0000000400 is located 0 bytes after 1024-byte region [0x7f0000000000,0x7f0000000400)
allocated by cuMemAlloc_v2
Report 1 of process P
SUMMARY: moat: double-free scale.cu:7 in scale(float*, int)

==P==moat: 1 error

$ $T/w $T/fake start fork start error end | grep -E 'watching|SUMMARY|errors?$'
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
==P==moat: 1 error
# A child whose heap has nothing wrong is worth one line; the program itself, and a child of which there is more to say, all of them.
$ $T/w $T/fake start=heap end
==P==moat 0: watching /usr/bin/fake (pid P), mode heap
==P==moat: 0 errors in the CPU's heap
  watched
    kernels launched  3
$ $T/w $T/fake fork start=heap end
==P==moat: 0 errors in the CPU's heap of /usr/bin/fake (kernels launched: 3)
$ $T/w $T/fake many=40 start=heap end | sort | uniq -c | sed 's/^ *//'
40 ==P==moat: 0 errors in the CPU's heap of /usr/bin/fake (kernels launched: 3)
$ $T/w $T/fake fork start=heap error end | grep -E 'watching|SUMMARY|errors?'
==P==moat 0: watching /usr/bin/fake (pid P), mode heap
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
==P==moat: 1 error in the CPU's heap
$ $T/w $T/fake fork start=heap other start end other end
==P==moat 0: watching /usr/bin/fake (pid P), mode heap
==P==moat: CUDA is used from here on, mode api, device cpu
==P==moat: 0 errors
  watched
    kernels launched  3
==P==moat: 0 errors in the CPU's heap
  watched
    kernels launched  3
$ $T/w $T/fake fork start=heap note=attention end | grep -v '^ '
==P==moat 0: watching /usr/bin/fake (pid P), mode heap
==P==moat: attention
==P==moat: 0 errors in the CPU's heap
$ $T/w $T/fake fork start=heap
==P==moat 0: watching /usr/bin/fake (pid P), mode heap
==P==moat: this process ended without a summary: by a signal, by _exit, or because it became another program
$ $T/w --format=json $T/fake fork start=heap end | cut -c 1-30
{"event":"start","pid":P,"pare
{"event":"end","pid":P,"librar
$ $T/w $T/fake start error close error close error end | grep -E 'SUMMARY|errors$'
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
==P==moat: 3 errors
$ $T/w $T/fake many=60 start error error end > $T/log; echo $?; grep -c ERROR: $T/log; grep -c 'moat: 2 errors' $T/log
97
100
60
$ $T/w --print-limit=0 $T/fake many=60 start error error end > $T/log; echo $?; grep -c ERROR: $T/log
97
120
$ (ulimit -n 20; $T/w --print-limit=0 $T/fake many=60 start error end > $T/log; echo $?; grep -c ERROR: $T/log)
97
60
# One program becomes another: a process that starts anew.
$ $T/w $T/fake start error exec start error repeat=1,4 end | grep -E 'watching|SUMMARY|without|errors?$'
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
==P==moat: 1 error
# Two libraries report for one process.
$ $T/w $T/fake start error other start other repeat=1,4 end other note=later end | grep -E 'watching|SUMMARY|seen|later|without'
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==moat: report 1 was seen 4 times in all
==P==moat: later
$ $T/w $T/fake start other start end | grep -c without
1
# The guard and the heap's monitor: one banner, and each error has a number of its own, also after a lost connection.
$ touch $T/tree/lib/moat/libmoat-heap.so; cp $T/tree/lib/moat/libmoat.so $T/tree/lib/moat/libmoat-heap.so
$ $T/w --heap $T/fake start error other start=heap error=double-free other error repeat=2,4 other close error end other end | grep -E 'watching|Report|seen|CUDA'
==P==moat 0: watching /usr/bin/fake (pid P), mode api,heap, device cpu
Report 1 of process P
Report 2 of process P
Report 3 of process P
==P==moat: report 3 was seen 4 times in all
Report 4 of process P
$ $T/w --heap $T/fake start=heap error other start error end other end | grep -E 'watching|Report|CUDA'
==P==moat 0: watching /usr/bin/fake (pid P), mode heap
Report 1 of process P
==P==moat: CUDA is used from here on, mode api, device cpu
Report 2 of process P
$ $T/w --heap $T/fake start end other start=heap end | grep -c watching
1
$ $T/tree/bin/moat --device=cpu --heap --format=json $T/fake start error other start=heap error end other end 2> $T/both.json; moat report $T/both.json | grep -E 'watching|Report' | sed -E 's/==[0-9]+==/==P==/; s/(pid|process) [0-9]+/\1 P/'
==P==moat 0: watching /usr/bin/fake (pid P), mode api,heap, device cpu
Report 1 of process P
Report 2 of process P
$ rm $T/tree/lib/moat/libmoat-heap.so

# The command ends with the program that it started, but hears what others have to say shortly after. Where the machine has others
# to serve, that may be too late once, or twice.
$ for i in {1..30}; do $T/w $T/fake start leave sleep=300 start error end > $T/log; status=$?; ! grep SUMMARY $T/log || break; done; echo $status
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
97
# It does not wait for one that says nothing: that one waits for it here.
$ FAKE_LOG=$T/late.log $T/tree/bin/moat --device=cpu $T/fake start leave start await=$T/ended error end 2> $T/log; echo $?
0
$ grep -c outlives $T/log; touch $T/ended; until grep -s SUMMARY $T/late.log; do sleep 0.05; done
1
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in _Z5scalePfi

# A process that goes wrong.
$ $T/w $T/fake start 'raw={"event":"error"}' raw=nonsense error end | grep -E 'cannot be read|SUMMARY'
==P==moat: a report of this process cannot be read: column 1: "type" is missing
==P==moat: a report of this process cannot be read: column 1: expected '{'
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
$ $T/w $T/fake start error raise=9 | grep -E 'SUMMARY|without'
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
==P==moat: this process ended without a summary: by signal 9 (Killed)

# Log files.
$ $T/w --log-file=$T/a.log $T/fake start error end say=hello; head -n 2 $T/a.log | tail -n 1 | cut -d' ' -f2-5
hello
moat: heap-buffer-overflow on device
$ cd $T; $T/w --log-file=b.%h.%%.log $T/fake start end; ls b.*.log | sed "s/$(hostname)/HOST/"
b.HOST.%.log
$ mkdir $T/logs; $T/w --log-file=$T/logs/%p.log $T/fake many=3 start error end; ls $T/logs | wc -l; cat $T/logs/* | grep -c SUMMARY
3
3
$ $T/w --log-file=$T/absent/log $T/fake start error end exit=7
moat: error: the log file "$T/absent/log" cannot be written: No such file or directory
[status 2]
$ $T/w --log-file=$T/absent/%p $T/fake start end exit=7
moat: error: the log file "$T/absent/%p" cannot be written: No such file or directory
[status 2]
$ $T/w --log-file=%x $T/fake start end
moat: error: the log file's name "%x" has a % before something other than p, h or %
[status 2]
$ $T/w --log-file=/dev/full $T/fake start end
moat: error: cannot write the log file "/dev/full": No space left on device; reports go to standard error
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==moat: 0 errors
  watched
    kernels launched  3
$ (cd $T && MOAT_OPTIONS=log-file=c.log tree/bin/moat --device=cpu sh -c 'echo $MOAT_OPTIONS' 2> log)
device=cpu:log-file=c.log:device=cpu:driver=$T/tree/lib/moat/libmoat-cpu.so:log-file=$T/c.log
[status 98]
# A reader that is slow, of a stream that somebody has made non-blocking: nothing is lost.
$ cat > $T/slow.py <<'END'
> import os, subprocess, time
> T = os.environ["T"]
> end, start = os.pipe()
> os.set_blocking(start, False)
> words = ["start"] + ["error"] * 400 + ["end"]
> p = subprocess.Popen([T + "/tree/bin/moat", "--device=cpu", "--print-limit=0", T + "/fake"] + words, stderr=start)
> os.close(start)
> time.sleep(0.5)
> print(os.fdopen(end).read().count("SUMMARY"), p.wait())
> END
$ python3 $T/slow.py
400 97

# Formats.
$ $T/w --format=json $T/fake start error end
{"event":"start","pid":P,"parent":P,"program":"/usr/bin/fake","mode":"api","device":"cpu","version":"0"}
{"event":"error","type":"heap-buffer-overflow","pid":P,"id":1,"count":1,"device":0,"address":"0x7f0000000400","access":{"kind":"write","bytes":4},"kernel":{"name":"_Z5scalePfi","file":"scale.cu","line":7},"buffers":[{"base":"0x7f0000000000","size":1024,"made_by":"cuMemAlloc_v2"}]}
{"event":"end","pid":P,"errors":1,"suppressed":0,"watched":[{"key":"kernels_launched","value":3,"label":"kernels launched"}]}
[status 97]
$ $T/w --format=json --log-file=$T/saved.json $T/fake start error error=double-free repeat=1,5 end
[status 97]
$ $T/w --format=sarif --log-file=$T/a.sarif $T/fake start error repeat=1,5 end exit=3; python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))["runs"][0]; print(len(r["results"]), r["results"][0]["occurrenceCount"], r["invocations"][0]["exitCode"])' $T/a.sarif
1 5 3
$ $T/w --format=xml --log-file=$T/%p.xml $T/fake many=2 start error end; cat $T/*.xml | grep -c '<record>'; cat $T/*.xml | grep -c '^</ComputeSanitizerOutput>'
2
2
$ $T/tree/bin/moat --device=cpu --format=sarif $T/fake start end 2>&1 | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["runs"][0]["results"]))'
0
$ $T/w --color=always $T/fake start error end | grep -c $'\e'
8
$ $T/w $T/fake start error end | grep -c $'\e'
0
[status 1]

# Suppressions: what is suppressed does not count, and the process learns of it.
$ printf '# ours\ndouble-free:*\n' > $T/supp
$ $T/w --suppressions=$T/supp $T/fake start error=double-free repeat=1,9 end
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==moat: 0 errors, 1 suppressed
  watched
    kernels launched  3
$ $T/w --heap --suppressions=$T/supp $T/fake start error=double-free other start=heap error end other end | grep -E 'errors?\b'
==P==moat: 1 error in the CPU's heap
==P==moat: 0 errors, 1 suppressed
$ $T/w --suppressions=$T/supp $T/fake start error=double-free error end | grep -E SUMMARY
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
$ $T/w --suppressions=$T/saved.json $T/fake start error end | grep -c ERROR
0
[status 1]
$ printf 'double-fre:*\n' > $T/bad; $T/w --suppressions=$T/bad $T/fake start error=double-free end | head -n 4
$T/bad:1:1: error: there is no such type of error; did you mean double-free?
  double-fre:*
  ^~~~~~~~~~
moat: warning: not all suppressions can be used
$ $T/w --suppressions=$T/none $T/fake start end
$T/none: error: No such file or directory
[status 2]
$ $T/w --strict --suppressions=$T/bad $T/fake start error=double-free end | tail -n 1
moat: error: not all suppressions can be used

# A cache that cannot be used: with --strict, no start.
$ $T/w --strict --mode=count --cache-dir=relative $T/fake start end
moat: error: the cache of rewritten modules cannot be used: relative: its name must be a full path
[status 98]
$ mkdir -m 755 $T/open; $T/w --strict --mode=count --cache-dir=$T/open $T/fake start end
moat: error: the cache of rewritten modules cannot be used: $T/open: the folder is not the user's alone
[status 98]
$ $T/w --strict --mode=count --cache-dir=$T/own $T/fake start end | head -n 1; $T/w --strict --mode=count --no-cache --cache-dir=$T/open $T/fake start end | head -n 1
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
$ $T/w --strict --cache-dir=$T/open $T/fake start end
moat: error: the cache of rewritten modules cannot be used: $T/open: the folder is not the user's alone
[status 98]
$ $T/w --strict --mode=api --cache-dir=$T/open $T/fake start end | head -n 1; $T/w --mode=count --cache-dir=$T/open $T/fake start end | head -n 1
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu
==P==moat 0: watching /usr/bin/fake (pid P), mode api, device cpu

# Names in sentences are as people write them.
$ $T/w $T/fake start 'note=launched last: _Z5scalePfi, _Zqq, _Z1fv.' end | grep 'launched last'
==P==moat: launched last: scale(float*, int), _Zqq, f().

# Limits.
$ $T/w --print-limit=1 $T/fake start error error repeat=2,7 error end | grep -E 'SUMMARY|further|happened'
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
==P==moat: 2 further errors were not printed (--print-limit=1)

# What is missing.
$ rm $T/tree/lib/moat/libmoat.so; $T/w $T/fake say=hello
moat: warning: the guard is not there: $T/tree/lib/moat/libmoat.so: No such file or directory
hello
moat: error: nothing was watched: no process of the program has used CUDA where moat could see it
[status 98]
$ $T/w --strict $T/fake say=hello
moat: error: the guard is not there: $T/tree/lib/moat/libmoat.so: No such file or directory
[status 98]
$ $T/w --mode=off,api true
moat: error: --mode=off cannot be combined with other modes
[status 2]
$ ls -A $T/tmp

