// SPDX-License-Identifier: MIT
#define KPRIM_NATIVE
#include "kprim/kprim.h"

struct native_space kprim_native_space;
_Thread_local struct kprim_native *kprim_native_here __attribute__((tls_model("initial-exec")));

uint32_t kprim_native_run(struct native_call *c, void (*body)(struct native_call *, struct kprim_native *))
{
    struct kprim_native here;
    here.call = c;
    here.loads = KPRIM_NATIVE_LOADS;
    here.done = 0;
    kprim_native_here = &here;
    if (!_setjmp(here.decline))
        body(c, &here);
    return here.done;
}
