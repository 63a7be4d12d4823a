# SPDX-License-Identifier: MIT

$ moat options
--api-errors
    report CUDA driver calls that fail, with their code and stack
    for: explain,run
    default: no
    now: no (default)
--autotune=first|all
    on the CPU device, run Triton's autotuned kernels in their first configuration, or check all of them once
    for: run
    default: first
    now: first (default)
--cache
    keep rewritten modules on disk, so that each is compiled only once
    for: info,run
    default: yes
    now: yes (default)
--cache-dir=DIR
    keep the cache in DIR, an absolute path that only the user can write to (by default moat below $XDG_CACHE_HOME or ~/.cache)
    for: info,run
    default: not set
    now: not set (default)
--cache-size=SIZE
    let the cache take at most SIZE bytes, by removing the modules that were not used for longest
    for: info,run
    default: 1G
    now: 1073741824 (default)
--canary-interval=MS
    wait at least MS milliseconds between two scans of --mode=canary
    for: run
    default: 0.5
    now: 0.5 (default)
--canary-memory=auto|plain|mapped
    take memory for canary mode's buffers of 1 MiB and more from cuMemMap (mapped) or cuMemAlloc (plain), where auto is mapped if there is one GPU
    for: run
    default: auto
    now: auto (default)
--canary-scan=copy|managed
    read canaries by copies (copy) or as GMODx does, from managed memory (managed)
    for: run
    default: copy
    now: copy (default)
--check-variants=auto|together|apart
    with --mode=check or shadow, compile checked variants with their module (together), or each when a launch first needs it (apart), where auto is apart
    for: run
    default: auto
    now: auto (default)
--color=auto|always|never
    use colours in text reports, where auto means on a terminal unless NO_COLOR is set
    for: explain,report,run
    default: auto
    now: auto (default)
--config=FILE
    read options from FILE, which has lines of the form key = value
    default: not set
    now: not set (default)
--cpu-capability=N
    set the compute capability of the CPU device (75 means 7.5)
    for: explain,info,run
    default: 90
    now: 90 (default)
--cpu-devices=N
    show programs N CPU devices, which share threads and have separate memory
    for: explain,info,run
    default: 1
    now: 1 (default)
--cpu-lanes=auto|plain|avx2|avx512
    run the lanes of a warp on these vector instructions, where auto means the best that the CPU has
    for: explain,info,run
    default: auto
    now: auto (default)
--cpu-memory=SIZE
    give each CPU device SIZE bytes of memory (by default half of the machine's memory, divided among the devices)
    for: explain,info,run
    default: not set
    now: not set (default)
--cpu-native
    on the CPU device, execute moat's own functions in kernels in C instead of as PTX, with the same results
    for: run
    default: yes
    now: yes (default)
--cpu-threads=N
    run blocks on N threads of the CPU (by default one for each core)
    for: explain,info,run
    default: not set
    now: not set (default)
--device=auto|gpu|cpu
    run kernels on a GPU or on the CPU device, where auto means a GPU if there is one
    for: explain,run
    default: auto
    now: auto (default)
--driver=FILE
    load FILE as the CUDA driver (by default the machine's libcuda.so.1, or the CPU device)
    for: explain,run,share restart
    default: not set
    now: not set (default)
--dump-after=ANALYSIS
    print each function with the result of ANALYSIS: cfg, dominators, postdominators, loops, reaching, roots or liveness
    for: ptx print
    default: not set
    now: not set (default)
--dump-rewritten=DIR
    write the PTX of each rewritten module to a file in DIR, as the driver gets it
    for: run
    default: not set
    now: not set (default)
--error-exitcode=N
    exit with status N if errors were found in any process or are in a saved report (0 keeps the program's own status)
    for: explain,report,run
    default: 97
    now: 97 (default)
--fence=mask|check|modulo
    with --mode=fence, force addresses into the partition (mask, or modulo for any size of it), or compare each one (check)
    for: run
    default: mask
    now: mask (default)
--fence-keep=SIZE
    with --mode=fence, keep at most SIZE bytes of freed memory, or a quarter of what buffers have, and give the rest back to the driver
    for: run
    default: 256M
    now: 268435456 (default)
--fence-silent
    with --mode=fence, contain wrong accesses without a record of them, so that the program gets no error
    for: run
    default: no
    now: no (default)
--fence-watchdog=SECONDS
    with --mode=fence, end threads that have been in a loop for SECONDS, so that the program gets a launch timeout (0: none)
    for: run
    default: 0
    now: 0 (default)
--fill=BYTE
    fill memory that the program gets, and memory that it frees, with BYTE (by default it stays as it is)
    for: run
    default: not set
    now: not set (default)
--follow-children
    also watch the programs that the program starts
    for: explain,run
    default: yes
    now: yes (default)
--format=text|json|sarif|xml
    choose the output format, of which sarif and xml are for reports only
    for: explain,ptx explain,ptx list,ptx stats,report,run
    default: text
    now: text (default)
--halt-on-error
    end a process at its first error
    for: explain,run
    default: no
    now: no (default)
--heap
    also watch the CPU heap of the program's processes
    for: run
    default: no
    now: no (default)
--heap-free=eager|lazy
    release a freed heap block at once (eager) or after a delay in which writes to it are found (lazy)
    for: run
    default: eager
    now: eager (default)
--heap-monitor-share=PERCENT
    let each heap monitor use at most PERCENT of a core, and less while other threads need it
    for: run
    default: 25
    now: 25 (default)
--heap-monitors=N
    check the heap's blocks with N threads
    for: run
    default: 1
    now: 1 (default)
--heap-signals
    check the heap when SIGSEGV, SIGBUS or SIGABRT comes, before the program's own handlers
    for: run
    default: no
    now: no (default)
--heap-stacks=auto|caller|full
    record only the caller of each heap allocation, its full call stack, or the full stack of paths that are seen first or often (auto)
    for: run
    default: auto
    now: auto (default)
--heap-wait=SIZE
    let each thread hold back SIZE bytes of freed heap blocks with --heap-free=lazy
    for: run
    default: 256k
    now: 262144 (default)
--help
    print help on moat or on the command given and exit
    default: no
    now: no (default)
--jit-ptx
    use the PTX from which Triton and PyTorch make machine code while the program runs
    for: run
    default: yes
    now: yes (default)
--kernel-name=REGEX
    count, check and report only kernels whose name, mangled or as in the source, matches REGEX, an extended regular expression
    for: run
    default: not set
    now: not set (default)
--kheap
    with --mode=canary and check, also watch memory that kernels take from malloc: their calls go to a heap of moat's own
    for: run
    default: yes
    now: yes (default)
--kheap-arrays=N
    record the buffers that kernels take from malloc in N arrays, over which threads are spread
    for: run
    default: 32
    now: 32 (default)
--launch=LAUNCH
    explain one launch, written as kernel<<<grid,block,shared>>>(arguments) with *SIZE for a pointer to a buffer of SIZE bytes
    for: ptx explain
    default: not set
    now: not set (default)
--leak-check
    report buffers that are never freed
    for: run
    default: no
    now: no (default)
--log-file=FILE
    write reports to FILE instead of standard error, with %p for the process, %h for the host and %% for a percent sign
    for: explain,run
    default: not set
    now: not set (default)
--mode=auto|off|api|count|shadow|check|fence|pages|canary|explain|tally
    look for errors in this mode or in several, separated by commas
    for: run
    default: auto
    now: auto (default)
--module=N
    use only the N-th module of the file, counted from 1
    for: ptx explain,ptx instrument,ptx list,ptx print,ptx stats,ptx verify
    default: not set
    now: not set (default)
--on-error=stop|skip|trap
    at an access that faults, end the kernel of the CPU device (stop) or skip the access (skip), and with trap also end kernels where --mode=check finds an error
    for: explain,run
    default: stop
    now: stop (default)
--pages-align=BYTES
    with --mode=pages, align buffers in pages of their own to BYTES, so that they end nearer to the unmapped page (by default as the driver does)
    for: run
    default: not set
    now: not set (default)
--pages-budget=SIZE
    let --mode=pages take SIZE bytes for rounding and give plain memory beyond that (by default an eighth of the device's memory)
    for: run
    default: not set
    now: not set (default)
--pages-own=SIZE
    with --mode=pages, give buffers of SIZE bytes and more pages of their own, so that overflows of them are found
    for: run
    default: 1M
    now: 1048576 (default)
--pages-small=auto|apart|packed
    give each of the first small buffers of pages mode (auto), or all of them (apart), addresses of its own, or pack them with room between them (packed)
    for: run
    default: auto
    now: auto (default)
--pass=PASS
    apply PASS: count counts loads and stores, kheap redirects malloc and free, check and shadow check each access, fence keeps it inside a partition
    for: ptx instrument
    default: count
    now: count (default)
--print-limit=N
    print at most N errors and count the others (0 prints all)
    for: explain,report,run
    default: 100
    now: 100 (default)
--proofs=on|off|check
    with --mode=check and fence, leave out what a proof at the launch covers (on), or nothing (off), or with check report where checks and proofs disagree (check)
    for: run
    default: on
    now: on (default)
--raw
    print PTX as it is stored, decompressed but not parsed
    for: ptx print
    default: no
    now: no (default)
--shadow-load
    with --mode=shadow, load the shadow in kernels (without, nothing is checked: it serves to measure what the load costs)
    for: run
    default: yes
    now: yes (default)
--shadow-quarantine=SIZE
    with --mode=shadow, keep up to SIZE bytes of freed managed and pinned memory from being used again
    for: run
    default: 64M
    now: 67108864 (default)
--shadow-redzone=PERCENT
    with --mode=shadow, leave PERCENT of a buffer's size free behind it
    for: run
    default: 50
    now: 50 (default)
--shadow-redzone-least=SIZE
    with --mode=shadow, leave at least SIZE bytes free behind each buffer
    for: run
    default: 256
    now: 256 (default)
--shadow-roots
    with --mode=shadow and --shadow-scale=256, look into the shadow only where an access is not inside the buffer of a parameter
    for: run
    default: yes
    now: yes (default)
--shadow-scale=256|128|8
    with --mode=shadow, describe 256, 128 or 8 bytes of memory by a byte
    for: run
    default: 256
    now: 256 (default)
--share-dir=DIR
    keep an MPS server's files in DIR, and what fenced processes count (by default moat-share in $XDG_RUNTIME_DIR, and for `moat run` nowhere)
    for: run,share clients,share end,share limits,share metrics,share restart,share run,share start,share stop
    default: not set
    now: not set (default)
--share-force
    stop or restart the MPS server even if that ends clients
    for: share restart,share stop
    default: no
    now: no (default)
--share-memory=SIZE
    let a client take at most SIZE bytes of each device, by MPS's own limit
    for: share run,share start
    default: not set
    now: not set (default)
--share-percent=PERCENT
    let a client use at most PERCENT of the multiprocessors, by MPS's own limit
    for: share run,share start
    default: not set
    now: not set (default)
--shared
    link the shared runtime instead of the static one
    for: link-flags
    default: no
    now: no (default)
--stack-depth=N
    record N frames of the host's call stack for each allocation and free
    for: explain,run
    default: 16
    now: 16 (default)
--stats
    count what kernels execute on the CPU device and print the counts at exit
    for: run
    default: no
    now: no (default)
--strict
    exit with status 98 instead of running the program if something that moat needs is missing
    for: explain,run
    default: no
    now: no (default)
--suppressions=FILE
    leave out the errors that FILE lists, as lines of the form type:pattern or as a saved report
    for: explain,report,run
    default: not set
    now: not set (default)
--tensors
    find accesses outside of PyTorch's tensors: short for --mode=check --torch-alloc --pages-own=1 --pages-align=16
    for: run
    default: no
    now: no (default)
--times
    measure how long kernels take on the CPU device and print the times at exit
    for: run
    default: no
    now: no (default)
--torch-alloc
    replace PyTorch's allocator by moat's, so that each tensor is a separate buffer
    for: explain,run
    default: no
    now: no (default)
--torch-ops
    on the CPU device, run PyTorch's own CUDA operators, whose kernels are machine code, on the CPU
    for: run
    default: yes
    now: yes (default)
--uncovered=refuse|allow
    with --mode=fence, refuse to launch kernels that cannot be fenced, such as those without PTX, or allow them
    for: run
    default: refuse
    now: refuse (default)
--unpool
    turn off the memory pools of PyTorch, JAX and CuPy, so that each array is a separate buffer
    for: explain,run
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
