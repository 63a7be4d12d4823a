// SPDX-License-Identifier: MIT
// Any bytes as PTX that is to be rewritten: whatever parses and verifies is valid after every pass too, for
// an older and for a newer GPU, and keeps its functions.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kcheck/kcheck.h"
#include "pass/pass.h"
#include "pass/pass_check.h"
#include "pass/pass_variants.h"
#include "ptx_mutate.h"

enum { MOST_MEMORY = 32 << 20 };

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void emit_nothing(struct diag_sink *sink, const struct diag *d)
{
    (void)sink;
    (void)d;
}

// Returns the module if it parses and the verifier reports no errors.
static struct ptx_module *sound(struct str text)
{
    struct diag_sink sink = {.emit = emit_nothing};
    struct ptx_module *m;
    if (ptx_parse("input", text, &sink, &(struct ptx_limits){MOST_MEMORY}, &m))
        return NULL;
    if (!ptx_verify(m, &sink, NULL))
        return m;
    ptx_free(m);
    return NULL;
}

// Cuts each variant out of a module that only has variants.
static void cut(const struct pass_result *r)
{
    struct diag_sink sink = {.emit = emit_nothing};
    for (uint32_t i = 0; i < r->check->nkernels; i++) {
        struct out name, out;
        if (out_to_memory(&name) || out_to_memory(&out))
            abort();
        out_fmt(&name, KCHECK_PREFIX STR_FMT, STR_ARG(r->check->kernels[i].name));
        const struct pass_variants_way way = {32, 24, i % 2 == 0};
        int err = pass_variants_cut(r->text, (struct str){name.buf, name.len}, &way, &sink, &out);
        require(!err || err == -ENOMEM);
        struct ptx_module *m = err ? NULL : sound((struct str){out.buf, out.len - 1});
        require(err || m);
        ptx_free(m);
        out_close(&name);
        out_close(&out);
    }
}

static void rewrite(struct str text, const char *passes, unsigned arch)
{
    struct diag_sink sink = {.emit = emit_nothing};
    struct pass_request request = {.passes = passes, .arch = arch, .verify = true};
    struct pass_result *r;
    int err = pass_rewrite("input", text, &request, &sink, &r);
    if (err) {
        bool target = err == -EINVAL && !sink.errors;
        require(!r && (err == -ENOTSUP || err == -EEXIST || err == -ENOMEM || target));
        return;
    }
    struct ptx_module *m = sound(r->text);
    require(m);
    bool apart = r->check && r->check->apart;
    if (apart)
        cut(r);
    for (uint32_t i = 0; !apart && i < r->nfuncs; i++)
        require(ptx_find(m, r->funcs[i].name) != NULL);
    ptx_free(m);
    pass_result_free(r);
}

// What the library does with a module of a program, sound or not: the driver judges it later.
static void rewrite_any(struct str text, const char *passes)
{
    struct diag_sink sink = {.emit = emit_nothing};
    struct pass_request request = {.passes = passes, .arch = 75};
    struct pass_result *r;
    if (!pass_rewrite("input", text, &request, &sink, &r))
        pass_result_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str text = {(const char *)bytes, len};
    struct ptx_module *m = sound(text);
    if (!m) {
        rewrite_any(text, "check");
        rewrite_any(text, "kheap,count");
        return 0;
    }
    ptx_free(m);
    rewrite(text, "count", 75);
    rewrite(text, "check", 75);
    rewrite(text, "check,variants", 75);
    rewrite(text, "shadow", 75);
    rewrite(text, "shadow_8", 75);
    rewrite(text, "count,check", 100);
    return 0;
}
