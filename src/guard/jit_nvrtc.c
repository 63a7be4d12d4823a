// SPDX-License-Identifier: MIT
// NVRTC. A program that was compiled to machine code has its PTX too.
#include "base/cancel.h"
#include "base/mem.h"
#include "guard/jit_forward.h"
#include "guard/jit_hook.h"
#include "guard/jit_library.h"

enum { INTERNAL_ERROR = 11 };

typedef int size_fn(void *program, size_t *size);
typedef int text_fn(void *program, char *text);

static void keep(int library, void *program, const char *code)
{
    size_fn *code_size, *ptx_size;
    text_fn *ptx_of;
    size_t code_len = 0, len = 0;
    JIT_LIBRARY_FIND(library, "nvrtcGetCUBINSize", code_size);
    JIT_LIBRARY_FIND(library, "nvrtcGetPTXSize", ptx_size);
    JIT_LIBRARY_FIND(library, "nvrtcGetPTX", ptx_of);
    if (!code_size || code_size(program, &code_len) || !code_len)
        return;
    char *ptx = ptx_size && ptx_of && !ptx_size(program, &len) && len ? mem_alloc(len) : NULL;
    bool have = ptx && !ptx_of(program, ptx);
    jit_forward_keep((struct str){code, code_len}, (struct str){ptx, have ? len : 0}, "NVRTC");
    mem_free(ptx);
}

int jit_nvrtc_cubin(int library, void *program, char *code)
{
    text_fn *real;
    if (library == JIT_NONE)
        return INTERNAL_ERROR;
    JIT_LIBRARY_FIND(library, "nvrtcGetCUBIN", real);
    int r = real ? real(program, code) : INTERNAL_ERROR;
    if (!r && code && jit_forward_wanted()) {
        cancel_hold();
        keep(library, program, code);
        cancel_release();
    }
    return r;
}
