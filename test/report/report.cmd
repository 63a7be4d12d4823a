# SPDX-License-Identifier: MIT
# moat report: saved reports in every format.
$ cat > $T/saved <<'END'
> {"event":"start","pid":11,"parent":10,"program":"/usr/bin/app","mode":"api","device":"cpu","version":"0"}
> {"event":"error","type":"heap-buffer-overflow","pid":11,"id":1,"count":1,"device":0,"address":"0x7f0000000400","access":{"kind":"write","bytes":4},"kernel":{"name":"_Z5scalePfi","file":"scale.cu","line":7},"buffers":[{"base":"0x7f0000000000","size":1024,"made_by":"cuMemAlloc_v2"}]}
> {"event":"error","type":"double-free","pid":11,"id":2,"count":1,"device":0,"address":"0x7f0000000000","call":"cuMemFree_v2"}
> 
> {"event":"repeat","pid":11,"id":1,"count":9}
> {"event":"end","pid":11,"errors":2,"suppressed":0,"watched":[{"key":"kernels_launched","value":3,"label":"kernels launched"}]}
> END
$ moat report $T/saved
==11==moat 0: watching /usr/bin/app (pid 11), mode api, device cpu
==11==ERROR: moat: heap-buffer-overflow on device 0 address 0x7f0000000400 in kernel scale(float*, int) scale.cu:7
WRITE of size 4 by an unknown thread
0x7f0000000400 is located 0 bytes after 1024-byte region [0x7f0000000000,0x7f0000000400)
allocated by cuMemAlloc_v2
Report 1 of process 11
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)

==11==ERROR: moat: double-free on device 0 address 0x7f0000000000 in cuMemFree_v2
Report 2 of process 11
SUMMARY: moat: double-free in cuMemFree_v2

==11==moat: report 1 was seen 9 times in all
==11==moat: 2 errors
  watched
    kernels launched  3
[status 97]
$ moat report --error-exitcode=5 $T/saved > $T/log
[status 5]
$ moat report --error-exitcode=0 $T/saved > $T/log; echo 'double-free:*' > $T/supp; echo '*:*' > $T/all; moat report --suppressions=$T/all $T/saved | tail -n 3
==11==moat: 0 errors, 2 suppressed
  watched
    kernels launched  3
$ moat report --suppressions=$T/all $T/saved > $T/log
$ moat report --print-limit=0 --suppressions=$T/supp $T/saved > $T/log
[status 97]
$ moat report - < $T/saved | diff - <(moat report $T/saved)
$ moat report --format=json $T/saved | diff -B - $T/saved
$ moat report --format=json $T/saved $T/saved | wc -l
10
$ moat report --format=sarif $T/saved | python3 -c 'import json, sys; print([r["ruleId"] for r in json.load(sys.stdin)["runs"][0]["results"]])'
['heap-buffer-overflow', 'double-free']
$ moat report --format=xml $T/saved | grep -E '<(error|count)>'
      <error>heap-buffer-overflow</error>
    <count>9</count>
      <error>double-free</error>
    <count>1</count>
$ moat report --print-limit=1 $T/saved | grep -E 'SUMMARY|further'
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
==11==moat: 1 further error was not printed (--print-limit=1)
$ moat report --color=always $T/saved | grep -c $'\e'
11
$ echo 'double-free:*' > $T/supp; moat report --suppressions=$T/supp $T/saved | grep -E 'SUMMARY|further|errors?,'
SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)
==11==moat: 1 error, 1 suppressed
$ : | moat report -; : | moat report --format=xml -
<?xml version="1.0" encoding="utf-8"?>
<ComputeSanitizerOutput>
</ComputeSanitizerOutput>

# Bad input: what is good is shown, and the line and the place are named.
$ { head -n 2 $T/saved; echo '{"event":"note","pid":11 "text":"x"}'; echo '{"event":"note","pid":11,"text":"good"}'; } > $T/bad; moat report $T/bad | tail -n 1
==11==moat: good
2> $T/bad:3:26: error: expected '}'
2>   {"event":"note","pid":11 "text":"x"}
2>                            ^
$ head -c 150 $T/saved | moat report --format=json - > $T/log
2> standard input:2:45: error: the string does not end
2>   {"event":"error","type":"heap-buffer-overflo
2>                                               ^
[status 2]
$ printf '{"event":"explosion"}\n' > $T/bad; moat report $T/bad
2> $T/bad:1:11: error: no event is called "explosion"
2>   {"event":"explosion"}
2>             ^
[status 2]
# What is no report at all needs no more than a line.
$ printf '\n==1==ERROR: moat: double-free\nREAD of size 4\n' > $T/text; printf '\0\1\2\n{"event":"note"}\n' > $T/bad; moat report $T/text $T/bad
2> $T/text: error: not a saved report: `moat --format=json --log-file=FILE PROGRAM` saves one
2> $T/bad: error: not a saved report: `moat --format=json --log-file=FILE PROGRAM` saves one
[status 2]
$ moat report $T/absent
2> moat: error: cannot read "$T/absent": No such file or directory
[status 2]
$ moat report $T
2> moat: error: cannot read "$T": Is a directory
[status 2]
$ moat report
2> moat: error: no file given; `moat help report` says more
[status 2]
$ moat report --suppressions=$T/absent $T/saved
2> $T/absent: error: No such file or directory
[status 2]
$ moat report $T/saved > /dev/full
2> moat: error: cannot write the output: No space left on device
[status 2]
$ moat ptx list --format=sarif $T/saved
2> moat: error: this command prints text or json; sarif and xml are for reports
[status 2]
$ moat report --log-file=x $T/saved
2> --log-file: error: not an option of `moat report`, but of: explain,run
[status 2]
