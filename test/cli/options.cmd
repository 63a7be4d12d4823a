# SPDX-License-Identifier: MIT

$ moat options
--api-errors
    report CUDA calls that fail, with their code
    for: run
    default: no
    now: no (default)
--cache
    keep rewritten modules on disk, so that they are compiled once
    for: info,run
    default: yes
    now: yes (default)
--cache-dir=DIR
    where; a full path, the user's alone; not set: moat in $XDG_CACHE_HOME or in ~/.cache
    for: info,run
    default: not set
    now: not set (default)
--cache-size=SIZE
    bytes that they may take; those not used for longest go first
    for: info,run
    default: 1G
    now: 1073741824 (default)
--canary-interval=MS
    milliseconds between two scans of --mode=canary, at least; longer where scans would take more than a fifth of the monitor's time, but not beyond 1.5 ms for that, 5 to 50 ms while the program launches many kernels, and 50 ms while it makes many transfers
    for: run
    default: 0.5
    now: 0.5 (default)
--canary-memory=auto|plain|mapped
    where --mode=canary puts buffers of 1 MiB and more; mapped: one behind the other in memory that is mapped as it is needed, of which a thousandth is lost; plain: in memory from cuMemAlloc, of which some hundredths are; auto: mapped where the program sees one GPU, else plain
    for: run
    default: auto
    now: auto (default)
--canary-scan=copy|managed
    how --mode=canary reads canaries; copy: by copies; managed: buffers are managed memory, of which the monitor reads pages, as GMODx does, to compare with
    for: run
    default: copy
    now: copy (default)
--color=auto|always|never
    colours in text reports; auto: on a terminal, unless NO_COLOR is set
    for: report,run
    default: auto
    now: auto (default)
--config=FILE
    read options from FILE, lines of the form key = value
    default: not set
    now: not set (default)
--cpu-capability=N
    compute capability of the CPU device, 75 for 7.5
    for: info,run
    default: 90
    now: 90 (default)
--cpu-devices=N
    devices that the CPU device shows; they share its threads, each has memory of its own
    for: info,run
    default: 1
    now: 1 (default)
--cpu-lanes=auto|plain|avx2|avx512
    vector instructions that the CPU device runs a warp's lanes on; auto: the best there are
    for: info,run
    default: auto
    now: auto (default)
--cpu-memory=SIZE
    memory of each CPU device; not set: half of what the machine has, divided among them
    for: info,run
    default: not set
    now: not set (default)
--cpu-threads=N
    threads that the CPU device runs blocks on; not set: one for each core
    for: info,run
    default: not set
    now: not set (default)
--device=auto|gpu|cpu
    what kernels run on; auto: a GPU if there is one, else the CPU device
    for: run
    default: auto
    now: auto (default)
--driver=FILE
    the libcuda that moat stands before; not set: the machine's, or the CPU device
    for: run
    default: not set
    now: not set (default)
--dump-after=ANALYSIS
    print each function with what ANALYSIS found: cfg, dominators, postdominators, loops, reaching or liveness
    for: ptx print
    default: not set
    now: not set (default)
--dump-rewritten=DIR
    write each module that a mode rewrites to a file in DIR, as the PTX that the driver gets
    for: run
    default: not set
    now: not set (default)
--error-exitcode=N
    exit status when errors were found in any process, or are in a saved report; 0: the program's own
    for: report,run
    default: 97
    now: 97 (default)
--follow-children
    watch the programs that the program starts too
    for: run
    default: yes
    now: yes (default)
--format=text|json|sarif|xml
    print for people or for programs; sarif and xml: reports only
    for: ptx list,ptx stats,report,run
    default: text
    now: text (default)
--halt-on-error
    end a process at its first error
    for: run
    default: no
    now: no (default)
--heap
    watch the heap of the program's processes too
    for: run
    default: no
    now: no (default)
--heap-free=eager|lazy
    when a block of the heap is given back; eager: at once; lazy: after a while, in which writes to it are found
    for: run
    default: eager
    now: eager (default)
--heap-monitor-share=PERCENT
    how much of a core each monitor of the heap may take; less where other threads want it
    for: run
    default: 25
    now: 25 (default)
--heap-monitors=N
    threads that look at the blocks of the heap
    for: run
    default: 1
    now: 1 (default)
--heap-stacks=auto|caller|full
    how much of the call stack is kept for the heap's blocks; auto: all of it, for calling paths that were seen often or first
    for: run
    default: auto
    now: auto (default)
--heap-wait=SIZE
    how much of the heap each thread keeps back with --heap-free=lazy
    for: run
    default: 256k
    now: 262144 (default)
--help
    print help on moat or on the command given and exit
    default: no
    now: no (default)
--kheap
    with --mode=canary, also watch what kernels take from malloc: their calls of malloc and free go to a heap of moat's
    for: run
    default: yes
    now: yes (default)
--kheap-arrays=N
    in how many arrays that heap keeps its buffers' addresses; threads are spread over them
    for: run
    default: 32
    now: 32 (default)
--leak-check
    report buffers that are never freed
    for: run
    default: no
    now: no (default)
--log-file=FILE
    write reports to FILE; %p: number of the process, %h: name of the host, %%: a percent sign; not set: standard error
    for: run
    default: not set
    now: not set (default)
--mode=off|api|count|pages|canary|tally
    how to look for errors, several ways with commas; api: check frees, transfers and leaks; count: also count what kernels read and write; pages: also make kernels fault that leave large buffers or use freed ones; canary: also watch the bytes around each buffer while kernels run; tally: also count what modes are told, to test moat itself; off: run the program as it is
    for: run
    default: api
    now: api (default)
--module=N
    look only at the N-th module of the file, counted from 1
    for: ptx instrument,ptx list,ptx print,ptx stats,ptx verify
    default: not set
    now: not set (default)
--on-error=stop|skip
    what becomes of a kernel whose access faults, on the CPU device; stop: it ends, as on a GPU; skip: it goes on without the access, so that one run finds several errors
    for: run
    default: stop
    now: stop (default)
--pages-budget=SIZE
    memory that --mode=pages may take beyond what the program asks for, by rounding; what does not fit gets plain memory; not set: an eighth of the device's
    for: run
    default: not set
    now: not set (default)
--pages-own=SIZE
    with --mode=pages, buffers from SIZE on get pages of their own, so that overflows are found; smaller ones share pages
    for: run
    default: 1M
    now: 1048576 (default)
--pass=PASS
    how to rewrite: count adds counters of loads, stores and bytes; kheap sends malloc and free to a heap of moat's
    for: ptx instrument
    default: count
    now: count (default)
--print-limit=N
    print at most N errors and count the others; 0: print all
    for: report,run
    default: 100
    now: 100 (default)
--raw
    print PTX as it is stored, decompressed but not parsed
    for: ptx print
    default: no
    now: no (default)
--shared
    link the shared runtime instead of the static one
    for: link-flags
    default: no
    now: no (default)
--stack-depth=N
    frames of the host's call stack that are kept for each allocation and free
    for: run
    default: 16
    now: 16 (default)
--stats
    count what kernels execute on the CPU device and print it at exit
    for: run
    default: no
    now: no (default)
--strict
    do not run the program, status 98, where something that moat needs is missing
    for: run
    default: no
    now: no (default)
--suppressions=FILE
    leave out the errors that FILE names: lines of the form type:pattern, or a saved report
    for: report,run
    default: not set
    now: not set (default)
--times
    measure how long kernels take on the CPU device and print it at exit
    for: run
    default: no
    now: no (default)
--torch-alloc
    take the place of PyTorch's allocator, so that each tensor is a buffer of its own
    for: run
    default: no
    now: no (default)
--unpool
    turn off the memory pools of PyTorch, JAX and CuPy, so that each array is a buffer of its own
    for: run
    default: no
    now: no (default)
--version
    print the version and exit
    default: no
    now: no (default)

# Each source, the stronger over the weaker; a value that loses must still be good.
$ printf '# mine\nformat = json\n module=3\nraw = yes\n' > $T/moat.conf
$ moat options --config=$T/moat.conf | grep now: | grep -v '(default)'
    now: $T/moat.conf (command line)
    now: json ($T/moat.conf:2)
    now: 3 ($T/moat.conf:3)
    now: yes ($T/moat.conf:4)
$ MOAT_OPTIONS='module=4:no-raw' moat options --config $T/moat.conf | grep now: | grep -v '(default)'
    now: $T/moat.conf (command line)
    now: json ($T/moat.conf:2)
    now: 4 (MOAT_OPTIONS)
    now: no (MOAT_OPTIONS)
$ MOAT_OPTIONS='module=4:no-raw' moat options --module 5 --config=$T/moat.conf | grep now: | grep -v '(default)'
    now: $T/moat.conf (command line)
    now: json ($T/moat.conf:2)
    now: 5 (command line)
    now: no (MOAT_OPTIONS)
$ MOAT_OPTIONS='dump-after=a\:b\\c' moat options | grep MOAT_OPTIONS
    now: a:b\c (MOAT_OPTIONS)
$ MOAT_OPTIONS='module=x' moat options --module 5
2> MOAT_OPTIONS:1:8: error: "x" is not a whole number
2>   module=x
2>          ^
[status 2]

# Errors say where they are.
$ printf 'format = jsno\n# a comment\n\tmodule\t= none\nversion = 1\nbogus\n' > $T/bad.conf
$ moat options --config=$T/bad.conf
2> $T/bad.conf:1:10: error: unknown word "jsno"; did you mean json?
2>   format = jsno
2>            ^~~~
2> $T/bad.conf:3:11: error: "none" is not a whole number
2>    module = none
2>             ^~~~
2> $T/bad.conf:4:1: error: can be given on the command line only
2>   version = 1
2>   ^~~~~~~
2> $T/bad.conf:5:1: error: unknown option; `moat options` lists them all
2>   bogus
2>   ^~~~~
[status 2]
$ moat options --config=$T/absent.conf
2> $T/absent.conf: error: No such file or directory
[status 2]
$ moat options --config=$T
2> $T: error: Is a directory
[status 2]
$ moat options --config=/dev/zero
2> /dev/zero: error: too large for a configuration file
[status 2]
$ MOAT_OPTIONS='format=json:moduel=3:raw=x' moat options
2> MOAT_OPTIONS:1:13: error: unknown option; did you mean module?
2>   format=json:moduel=3:raw=x
2>               ^~~~~~
2> MOAT_OPTIONS:1:26: error: "x" is neither yes nor no
2>   format=json:moduel=3:raw=x
2>                            ^
[status 2]
$ MOAT_OPTIONS='config=x' moat options
2> MOAT_OPTIONS:1:1: error: can be given on the command line only
2>   config=x
2>   ^~~~~~
[status 2]
