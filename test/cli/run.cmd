# SPDX-License-Identifier: MIT
# builds: one
# With --mode=off moat becomes the program: its arguments, streams and exit status are its own.
$ moat --mode=off --device=cpu echo -h -V
-h -V
$ moat --mode=off --device=cpu sh -c 'echo "$0 $*"; echo err >&2; exit 7' a --device=gpu -- --help
a --device=gpu -- --help
2> err
[status 7]
$ moat run --mode=off --device=cpu sh -c 'cat; echo "$*"' sh --mode=x <<< input
input
--mode=x
$ moat --mode=off --device=cpu sh -c 'kill -TERM $$'; echo $?
143
2> Terminated
$ (moat --mode=off --device=cpu sleep 20 & sleep 0.3; kill $!; wait $!; echo $?)
143
$ printf '#!/bin/sh\necho "script $1"\n' > $T/script; chmod +x $T/script; cd $T; moat --mode=off --device=cpu ./script x
script x

$ moat --mode=off --device=cpu readlink /proc/self/fd/0 <&-; echo $?
1

# What follows -- is a program, even if a command has the same name.
$ mkdir $T/bin; printf '#!/bin/sh\necho "my ptx $*"\n' > $T/bin/ptx; chmod +x $T/bin/ptx
$ PATH=$T/bin:$PATH moat --mode=off --device=cpu -- ptx list
my ptx list
$ PATH=$T/bin:$PATH moat run --mode=off --device=cpu ptx list
my ptx list
$ PATH=$T/bin:$PATH moat run --mode=off -- ptx --version
my ptx --version

# Libraries stand in front of what is there already, and options reach them.
$ LD_LIBRARY_PATH=/a moat --mode=off --device=cpu sh -c 'echo $LD_PRELOAD $LD_LIBRARY_PATH' | sed 's|[^ :]*/lib/moat|LIB|g'
LIB/libmoat-cpu.so:LIB/libcudart.so.13:LIB/libcudart.so.12 LIB:/a
$ gcc -shared -fPIC -x c -o $T/mine.so - <<< 'int mine;'
$ LD_PRELOAD=$T/mine.so moat --mode=off --device=cpu sh -c 'echo $LD_PRELOAD' | sed 's|[^ :]*/lib/moat|LIB|g'
LIB/libmoat-cpu.so:LIB/libcudart.so.13:LIB/libcudart.so.12:$T/mine.so
$ MOAT_OPTIONS=cpu-memory=1G:raw moat --mode=off --cpu-threads=2 --device=cpu sh -c 'echo $MOAT_OPTIONS'
cpu-memory=1073741824:cpu-threads=2:device=cpu:mode=off:raw=yes
$ moat --mode=off --device=cpu sh -c 'moat --mode=off --device=cpu --stats sh -c "echo \$MOAT_OPTIONS"'
device=cpu:mode=off:stats=yes
$ moat --mode=off --device=cpu sh -c 'grep -o "lib/[^/]*$" /proc/self/maps' | sort -u | grep -E 'moat|cudart'
lib/libcudart.so.12
lib/libcudart.so.13
lib/libmoat-cpu.so

# What cannot be run or watched: status 98.
$ moat $T/absent
2> moat: error: cannot run "$T/absent": No such file or directory
[status 98]
$ moat optoins
2> moat: error: cannot run "optoins": No such file or directory; did you mean the command "options"?
[status 98]
$ moat no-such-program
2> moat: error: cannot run "no-such-program": No such file or directory
[status 98]
$ moat $T
2> moat: error: cannot run "$T": Is a directory
[status 98]
$ : > $T/plain; moat $T/plain
2> moat: error: cannot run "$T/plain": Permission denied
[status 98]
$ chmod +x $T/plain; moat --device=cpu $T/plain
2> moat: error: cannot watch "$T/plain": it is neither an executable nor a script
[status 98]
$ gcc -static -x c -o $T/static - <<< 'int main(void) { return 0; }'; moat --device=cpu $T/static
2> moat: error: cannot watch "$T/static": it is statically linked, so no library can be preloaded
[status 98]
$ printf '#!%s\n' $T/static > $T/script; moat --device=cpu $T/script
2> moat: error: cannot watch "$T/static": it is statically linked, so no library can be preloaded
[status 98]
$ printf '#!%s\n' $T/script > $T/script; moat --device=cpu $T/script
2> moat: error: cannot watch "$T/script": its interpreter is a script, too many times over
[status 98]
$ cp /bin/true $T/gained; chown 65534 $T/gained 2> /dev/null; chmod u+s $T/gained
$ [ $(id -u) != 0 ] && echo status 98 || { moat --device=cpu $T/gained 2> $T/log; echo status $?; }
status 98
$ moat ''
2> moat: error: cannot run "": No such file or directory
[status 98]

# Bad usage: status 2.
$ moat run
2> moat: error: no program given; `moat help run` says more
[status 2]
$ moat explain
2> moat: error: no program given; `moat help explain` says more
[status 2]
$ moat --device=tpu true
2> --device: error: unknown word "tpu"; did you mean gpu?
[status 2]
$ moat --mode=chekc true
2> --mode: error: unknown word "chekc"; did you mean check?
[status 2]
$ moat --mode=pages,canary true
2> moat: error: --mode: pages and canary both decide where buffers lie; choose one of them
[status 2]
$ moat --device=cpu --cpu-lanes=sse true
2> --cpu-lanes: error: unknown word "sse"; known are auto, plain, avx2, avx512
[status 2]
$ moat --device=cpu --cpu-memory=1 true
2> --cpu-memory: error: 1 is not within 67108864 to 17592186044416
[status 2]
$ moat --module=1 true
2> --module: error: not an option of `moat run`, but of: ptx explain,ptx instrument,ptx list,ptx print,ptx stats,ptx verify
[status 2]
