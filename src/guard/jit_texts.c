// SPDX-License-Identifier: MIT
#include "guard/jit_texts.h"

#include <errno.h>

#include "base/mem.h"
#include "rewrite/rewrite_source.h"

static void ignore(struct diag_sink *sink, const struct diag *d)
{
}

static int copy_texts(struct out *to, const struct rewrite_source *s, struct diag_sink *sink)
{
    struct image_buffer buffer = {0};
    struct str text;
    int err = s->count ? 0 : -ENODATA;
    for (unsigned i = 0; i < s->count && !err; i++) {
        err = rewrite_source_read(s, i, sink, &buffer, &text);
        if (!err) {
            out_str(to, text);
            out_char(to, '\0');
        }
    }
    image_buffer_free(&buffer);
    return err ? err : to->error;
}

int jit_texts_add(struct out *to, struct str bytes, const char *path, unsigned arch)
{
    struct diag_sink sink = {.emit = ignore};
    struct rewrite_source *s = mem_alloc(sizeof *s);  // too large for a thread's stack
    if (!s)
        return -ENOMEM;
    int err = bytes.ptr ? rewrite_source_bytes(s, bytes.ptr, bytes.len, arch, true, &sink)
                        : rewrite_source_file(s, path, arch, true, &sink);
    if (!err)
        err = copy_texts(to, s, &sink);
    rewrite_source_free(s);
    mem_free(s);
    return err;
}
