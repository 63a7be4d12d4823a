// SPDX-License-Identifier: MIT
// abort in host code ends a process at once. The modes look at what they watch once more, and then the
// process ends as it would have: there is no handler of a signal, and the program's own handler of SIGABRT
// runs as ever. Not in the archive that tests and the command are linked with. What libc itself finds (a
// corrupted heap, an assertion) ends inside libc and does not come by here.
#include <dlfcn.h>
#include <stdlib.h>

#include "core/guard.h"
#include "mode/mode.h"

__attribute__((visibility("default"), noreturn)) void abort(void)
{
    // The next one is libmoat-heap.so's, with --heap, or libc's.
    void (*real)(void) = (void (*)(void))dlsym(RTLD_NEXT, "abort");
    if (guard.watching)
        mode_aborts();
    if (real)
        real();
    __builtin_trap();
}
