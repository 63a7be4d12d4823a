// SPDX-License-Identifier: MIT
// Launches as people write them: any text is read or refused with a place inside it, and what is read is laid
// out inside the parameters of kernels of several kinds, or refused.
#include <assert.h>
#include <stdlib.h>

#include "flow/launch_bind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char code[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                           ".visible .entry none() { ret; }\n"
                           ".visible .entry one(.param .u64 a) { ret; }\n"
                           ".visible .entry two(.param .u8 c, .param .f64 b) { ret; }\n"
                           ".visible .entry three(.param .u64 a, .param .f32 b, .param .u32 n) { ret; }\n"
                           ".visible .entry tuple(.param .u32 n, .param .align 8 .b8 s[24]) { ret; }\n";

static void check_place(struct diag_sink *sink, const struct diag *d)
{
    assert(d->offset <= d->source.text.len && d->message[0]);
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "we");
    diag_print(nowhere, d);
}

static void bind_all(const struct launch_text *t, const struct ptx_module *m, struct diag_sink *sink)
{
    static struct launch_bind b;
    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct ptx_func *f = m->items[i].func;
        unsigned before = sink->errors;
        int err = launch_bind(t, m, f, sink, &b);
        assert(!err == (sink->errors == before));
        for (uint32_t k = 0; !err && k < b.nbuffers; k++)
            assert(b.buffers[k].at + 8 <= b.launch.params_size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ptx_module *m;
    static struct launch_text t;
    struct diag_sink sink = {.emit = check_place};
    int err = m ? 0 : ptx_parse("kernels", STR(code), &sink, NULL, &m);
    assert(!err);
    // A copy of the exact size: a byte read behind it is found.
    char *text = malloc(size ? size : 1);
    memcpy(text, data, size);
    err = launch_text_read((struct str){text, size}, &sink, &t);
    assert(!err == !sink.errors);
    if (!err)
        bind_all(&t, m, &sink);
    free(text);
    return 0;
}
