# SPDX-License-Identifier: MIT

$ moat help
usage: moat [OPTIONS] PROGRAM [ARG...]
       moat [OPTIONS] COMMAND ...

moat finds memory errors in GPU programs.

Commands:
  completion bash|zsh     print what makes a shell complete moat's commands and options
  help [COMMAND]          print help on moat or on a command
  info                    print what this machine offers: driver, GPUs, CPU device, cache
  link-flags              print shell commands after which nvcc and CMake link moat's CUDA runtime
  options                 print every option, its value and where that comes from
  ptx instrument FILE     print the PTX inside FILE as a rewriting pass leaves it
  ptx list FILE           list the GPU modules inside an executable, library, object, archive,
                          fatbin, cubin or PTX file
  ptx print FILE          print the PTX inside FILE
  ptx stats FILE          count kernels, functions, loads and stores of the PTX inside FILE
  ptx verify FILE         check the PTX inside FILE: is it well formed, does it stay inside its
                          variables
  report FILE...          render saved reports, JSON Lines, as text, json, sarif or xml
  [run] PROGRAM [ARG...]  run a program; `run` may be left out
  version                 print the version

Options:
  --config=FILE           read options from FILE, lines of the form key = value
  --help                  print help on moat or on the command given and exit
  --version               print the version and exit

`moat help run` lists the options for running a program, `moat help COMMAND` those of a command;
moat(1) explains them.
$ moat --help | diff - <(moat help)
$ moat help ptx print
usage: moat ptx print FILE

  print the PTX inside FILE

Options:
  --dump-after=ANALYSIS   print each function with what ANALYSIS found: cfg, dominators,
                          postdominators, loops, reaching or liveness
  --module=N              look only at the N-th module of the file, counted from 1
  --raw                   print PTX as it is stored, decompressed but not parsed
$ moat help info
usage: moat info

  print what this machine offers: driver, GPUs, CPU device, cache

Options:
  --cache                 keep rewritten modules on disk, so that they are compiled once
  --cache-dir=DIR         where; a full path, the user's alone; not set: moat in $XDG_CACHE_HOME or
                          in ~/.cache
  --cache-size=SIZE       bytes that they may take; those not used for longest go first
  --cpu-capability=N      compute capability of the CPU device, 75 for 7.5
  --cpu-devices=N         devices that the CPU device shows; they share its threads, each has memory
                          of its own
  --cpu-lanes=auto|plain|avx2|avx512
                          vector instructions that the CPU device runs a warp's lanes on; auto: the
                          best there are
  --cpu-memory=SIZE       memory of each CPU device; not set: half of what the machine has, divided
                          among them
  --cpu-threads=N         threads that the CPU device runs blocks on; not set: one for each core
$ moat info --help | diff - <(moat help info)
$ moat ptx --help | grep usage
usage: moat ptx instrument FILE
usage: moat ptx list FILE
usage: moat ptx print FILE
usage: moat ptx stats FILE
usage: moat ptx verify FILE
$ moat help bogus
2> moat: error: unknown command "bogus"; `moat help` lists them all
[status 2]
$ moat help ptx bogus
2> moat: error: unknown command "ptx bogus"; `moat help` lists them all
[status 2]
