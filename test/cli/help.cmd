# SPDX-License-Identifier: MIT

$ moat help
usage: moat [OPTIONS] PROGRAM [ARG...]
       moat [OPTIONS] COMMAND ...

moat finds memory errors in GPU programs.

Commands:
  completion bash|zsh     print what makes a shell complete moat's commands and options
  explain PROGRAM [ARG...]
                          run a program and say what its launches touch, as their arguments decide
                          it (--mode=explain)
  help [COMMAND]          print help on moat or on a command
  info                    print what this machine offers: driver, GPUs, CPU device, cache
  link-flags              print shell commands that make nvcc and CMake link moat's CUDA runtime
  options                 print every option with its value and the source of the value
  ptx explain FILE        say what the kernels inside FILE touch as their launch decides it, and
                          what cannot be said
  ptx instrument FILE     print the PTX inside FILE after a rewriting pass
  ptx list FILE           list the GPU modules inside an executable, library, object, archive,
                          fatbin, cubin or PTX file
  ptx print FILE          print the PTX inside FILE
  ptx stats FILE          count kernels, functions, loads and stores of the PTX inside FILE
  ptx verify FILE         check that the PTX inside FILE is well formed and stays inside its
                          variables
  report FILE...          render saved reports (JSON Lines) as text, json, sarif or xml
  [run] PROGRAM [ARG...]  run a program and watch it (the word run may be left out)
  share clients           list the clients of the share's MPS server with their memory and whether
                          each is fenced
  share end PID           end what a client does on the GPU
  share limits            say how many clients a server takes, and which shares of memory and
                          multiprocessors are set
  share metrics           print what clients and fenced processes do as text for Prometheus
  share restart           restart the MPS server if it refuses new clients
  share run PROGRAM [ARG...]
                          run a program as a client of the MPS server with --mode=fence, where
                          options of `moat run` apply too
  share start             start an MPS server for the calling user
  share stop              stop the MPS server
  share units [NAME]      print units for systemd's user manager
  version                 print the version

Options:
  --config=FILE           read options from FILE, which has lines of the form key = value
  --help                  print help on moat or on the command given and exit
  --version               print the version and exit

`moat help run` lists the options for running a program, `moat help COMMAND` those of a command;
moat(1) explains them.
$ moat --help | diff - <(moat help)
$ moat help ptx print
usage: moat ptx print FILE

  print the PTX inside FILE

Options:
  --dump-after=ANALYSIS   print each function with the result of ANALYSIS: cfg, dominators,
                          postdominators, loops, reaching, roots or liveness
  --module=N              use only the N-th module of the file, counted from 1
  --raw                   print PTX as it is stored, decompressed but not parsed
$ moat help info
usage: moat info

  print what this machine offers: driver, GPUs, CPU device, cache

Options:
  --cache                 keep rewritten modules on disk, so that each is compiled only once
  --cache-dir=DIR         keep the cache in DIR, an absolute path that only the user can write to
                          (by default moat below $XDG_CACHE_HOME or ~/.cache)
  --cache-size=SIZE       let the cache take at most SIZE bytes, by removing the modules that were
                          not used for longest
  --cpu-capability=N      set the compute capability of the CPU device (75 means 7.5)
  --cpu-devices=N         show programs N CPU devices, which share threads and have separate memory
  --cpu-lanes=auto|plain|avx2|avx512
                          run the lanes of a warp on these vector instructions, where auto means the
                          best that the CPU has
  --cpu-memory=SIZE       give each CPU device SIZE bytes of memory (by default half of the
                          machine's memory, divided among the devices)
  --cpu-threads=N         run blocks on N threads of the CPU (by default one for each core)
$ moat info --help | diff - <(moat help info)
$ moat ptx --help | grep usage
usage: moat ptx explain FILE
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
