// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_link.h"

#include <string.h>

#include "core/guard.h"

// Checked kernels take the driver's compiler several times as long as the program's own.
CUresult rewrite_link_open(struct rewrite_jit *jit, CUlinkState *link)
{
    int driver = 0;
    guard.real.cuDriverGetVersion(&driver);
    bool added = rewrite_jit_threads(jit, driver);
    CUresult result = guard.real.cuLinkCreate_v2(jit->count, jit->options, jit->values, link);
    if (result == CUDA_ERROR_INVALID_VALUE && added)
        result = guard.real.cuLinkCreate_v2(--jit->count, jit->options, jit->values, link);
    if (result)
        *link = NULL;
    return result;
}

CUresult rewrite_link_add(CUlinkState link, struct str text, const char *name, unsigned registers)
{
    CUjit_option option = CU_JIT_MAX_REGISTERS;
    void *value = (void *)(uintptr_t)registers;
    return guard.real.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)text.ptr, text.len + 1, name,
                                       registers != 0, registers ? &option : NULL, registers ? &value : NULL);
}

// Writes the beginning of a text, up to its .address_size, for another text. What follows the architecture in
// .target is left out: of `debug` the compiler expects lines of source.
static void copy_header(struct str text, struct out *to)
{
    const char *target = strstr(text.ptr, ".target"), *size = strstr(text.ptr, ".address_size");
    if (!target || !size || size < target)
        return;
    size_t arch = strcspn(target, ",\n"), bits = strcspn(size, "\n");
    out_fmt(to, "%.*s%.*s\n%.*s\n", (int)(target - text.ptr), text.ptr, (int)arch, target, (int)bits, size);
}

// They are for the architecture of the text that calls them: programs may ask for a kernel's.
CUresult rewrite_link_apart(CUlinkState link, struct str caller, const struct pass_apart *apart)
{
    struct out text;
    if (!apart)
        return CUDA_SUCCESS;
    if (out_to_memory(&text))
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy_header(caller, &text);
    out_cstr(&text, apart->text);
    out_char(&text, 0);
    CUresult result =
        text.error ? CUDA_ERROR_OUT_OF_MEMORY
                   : rewrite_link_add(link, (struct str){text.buf, text.len - 1}, "moat", apart->registers);
    out_close(&text);
    return result;
}
