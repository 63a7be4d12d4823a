// SPDX-License-Identifier: MIT
#include "report/document.h"

#include <string.h>

uint64_t document_count(const struct document *d, const struct report_line *line)
{
    uint64_t count = line->error.count;
    for (const struct report_line *l = line + 1; l < d->lines + d->count; l++)
        if (l->event == REPORT_REPEAT && l->repeat.pid == line->error.pid && l->repeat.id == line->error.id)
            count = l->repeat.count;
    return count;
}

void document_say(const struct document *d, const struct report *r, struct out *o)
{
    const struct report_buffer *b = r->nbuffers ? &r->buffers[0] : NULL;
    out_cstr(o, report_rows[r->type].text);
    if (r->access)
        out_fmt(o, ": %s of %llu bytes", r->access == REPORT_READ ? "read" : "write",
                (unsigned long long)r->bytes);
    const char *kernel = r->place.kernel, *name = report_device_name(&r->place);
    if (name) {
        out_cstr(o, kernel ? " in kernel " : " in function ");
        out_cstr(o, demangle_name(&d->demangle, name));
    } else if (r->call) {
        out_cstr(o, " in ");
        out_cstr(o, r->call);
    }
    if (!b)
        return;
    out_cstr(o, ", ");
    if (r->has_address && r->type != REPORT_LEAK) {
        uint64_t at = r->address, past = at - b->base;
        uint64_t distance = at < b->base ? b->base - at : past >= b->size ? past - b->size : past;
        out_fmt(o, "%llu bytes %s ", (unsigned long long)distance,
                at < b->base      ? "before"
                : past >= b->size ? "after"
                                  : "inside");
    }
    out_fmt(o, "a buffer of %llu bytes", (unsigned long long)b->size);
    if (b->made_by) {
        out_cstr(o, " from ");
        out_cstr(o, b->made_by);
    }
}
