// SPDX-License-Identifier: MIT
// Writes a record for each error: its kind, who did it, what was accessed, where in the kernel, and host
// stacks. Data that compute-sanitizer has no element for is in additional elements after its own.
#include "report/xml.h"

#include "report/utf8.h"

static void put_text(struct out *o, struct str s)
{
    while (s.len) {
        size_t n = utf8_length(s);
        bool control = n && utf8_is_control(s, n) && s.ptr[0] != '\n' && s.ptr[0] != '\t';
        bool none = n == 3 && (unsigned char)s.ptr[0] == 0xEF && (unsigned char)s.ptr[1] == 0xBF &&
                    (unsigned char)s.ptr[2] >= 0xBE;  // U+FFFE and U+FFFF are not allowed in XML
        char c = s.ptr[0];
        if (!n || control || none)
            out_char(o, '?');
        else if (c == '<' || c == '>' || c == '&')
            out_cstr(o, c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;");
        else
            out_bytes(o, s.ptr, n);
        s = str_skip(s, n ? n : 1);
    }
}

static void indent(struct out *o, int depth)
{
    for (int i = 0; i < depth; i++)
        out_lit(o, "  ");
}

static void put_open(struct out *o, int depth, const char *tag)
{
    indent(o, depth);
    out_fmt(o, "<%s>\n", tag);
}

static void put_close(struct out *o, int depth, const char *tag)
{
    indent(o, depth);
    out_fmt(o, "</%s>\n", tag);
}

static void put_element(struct out *o, int depth, const char *tag, const char *text)
{
    if (!text)
        return;
    indent(o, depth);
    out_fmt(o, "<%s>", tag);
    put_text(o, str_from(text));
    out_fmt(o, "</%s>\n", tag);
}

static void put_u64(struct out *o, int depth, const char *tag, uint64_t v)
{
    indent(o, depth);
    out_fmt(o, "<%s>%llu</%s>\n", tag, (unsigned long long)v, tag);
}

static void put_pid(struct out *o, int pid)
{
    indent(o, 2);
    out_fmt(o, "<pid>%d</pid>\n", pid);
}

static void put_address(struct out *o, int depth, const char *tag, uint64_t v)
{
    indent(o, depth);
    out_fmt(o, "<%s>0x%llx</%s>\n", tag, (unsigned long long)v, tag);
}

static void put_triple(struct out *o, const char *tag, const uint32_t v[3])
{
    put_open(o, 3, tag);
    put_u64(o, 4, "x", v[0]);
    put_u64(o, 4, "y", v[1]);
    put_u64(o, 4, "z", v[2]);
    put_close(o, 3, tag);
}

static void put_who(struct out *o, const struct report_place *at)
{
    if (!at->thread_known)
        return;
    put_open(o, 2, "who");
    put_triple(o, "threadIdx", at->thread);
    put_triple(o, "blockIdx", at->block);
    put_close(o, 2, "who");
}

static const char *space_of(enum report_type type)
{
    return type == REPORT_SHARED_OVERFLOW  ? "__shared__"
           : type == REPORT_LOCAL_OVERFLOW ? "__local__"
                                           : "__global__";
}

static void put_what(struct out *o, const struct document *d, const struct report *r)
{
    struct out text;
    out_to_memory(&text);
    document_say(d, r, &text);
    put_open(o, 2, "what");
    indent(o, 3);
    out_lit(o, "<text>");
    put_text(o, (struct str){text.buf, text.len});
    out_lit(o, "</text>\n");
    if (report_device_name(&r->place))
        put_element(o, 3, "space", space_of(r->type));
    if (r->bytes)
        put_u64(o, 3, "size", r->bytes);
    if (r->access)
        put_element(o, 3, "direction", r->access == REPORT_READ ? "read" : "write");
    put_element(o, 3, "error", report_rows[r->type].name);
    if (r->has_address)
        put_address(o, 3, "address", r->address);
    put_element(o, 3, "api", r->call);
    put_close(o, 2, "what");
    o->error = o->error ? o->error : text.error;
    out_close(&text);
}

static void put_where(struct out *o, const struct document *d, const struct report_place *at)
{
    const char *name = report_device_name(at);
    if (!name)
        return;
    put_open(o, 2, "where");
    put_element(o, 3, "func", demangle_name(&d->demangle, name));
    put_element(o, 3, "path", at->file);
    if (at->line)
        put_u64(o, 3, "line", at->line);
    put_close(o, 2, "where");
}

// Writes a stack. when: NULL for the functions that a kernel's thread was in.
static void put_stack(struct out *o, const struct document *d, const char *when, const struct report_stack *s)
{
    const char *tag = when ? "hostStack" : "deviceStack";
    if (!s->count)
        return;
    put_open(o, 2, tag);
    put_element(o, 3, "saveLocation", when);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct report_frame *f = &s->frames[i];
        put_open(o, 3, "frame");
        put_element(o, 4, "func", f->function ? demangle_name(&d->demangle, f->function) : NULL);
        put_element(o, 4, "path", f->file);
        if (f->line)
            put_u64(o, 4, "line", f->line);
        put_element(o, 4, "module", f->object);
        if (when)
            put_address(o, 4, "pc", f->object ? f->offset : f->pc);
        put_close(o, 3, "frame");
    }
    put_close(o, 2, tag);
}

static void put_buffer(struct out *o, const struct document *d, const struct report_buffer *b)
{
    put_open(o, 2, "allocation");
    put_address(o, 3, "address", b->base);
    put_u64(o, 3, "size", b->size);
    put_element(o, 3, "name", b->name);
    put_element(o, 3, "api", b->made_by);
    put_element(o, 3, "freeApi", b->freed_by);
    put_close(o, 2, "allocation");
    put_stack(o, d, "allocation time", &b->made_at);
    put_stack(o, d, "free time", &b->freed_at);
}

static const char *kind_of(const struct report *r)
{
    if (r->type == REPORT_LEAK)
        return "Leak";
    if (!report_device_name(&r->place))
        return "Api";
    return r->has_address ? "Precise" : "Imprecise";
}

static void put_record(struct out *o, const struct document *d, const struct report_line *line)
{
    const struct report *r = &line->error;
    put_open(o, 1, "record");
    put_element(o, 2, "kind", kind_of(r));
    put_element(o, 2, "level", r->type == REPORT_LEAK ? "Warning" : "Error");
    put_who(o, &r->place);
    put_what(o, d, r);
    put_where(o, d, &r->place);
    put_stack(o, d, NULL, &r->place.frames);
    put_stack(o, d, r->place.kernel ? "kernel launch time" : "error", &r->stack);
    for (uint32_t i = 0; i < r->nbuffers; i++)
        put_buffer(o, d, &r->buffers[i]);
    for (uint32_t i = 0; i < r->nnotes; i++) {
        char text[4096];
        put_element(o, 2, "note", demangle_text(&d->demangle, r->notes[i], text, sizeof text));
    }
    put_pid(o, r->pid);
    if (r->client)
        put_u64(o, 2, "client", r->client);
    uint64_t count = document_count(d, line);
    put_u64(o, 2, "count", count ? count : 1);
    put_close(o, 1, "record");
}

static void put_values(struct out *o, const char *tag, const struct report_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put_open(o, 2, tag);
        put_element(o, 3, "key", values[i].key);
        put_element(o, 3, "label", values[i].label);
        put_u64(o, 3, "value", values[i].value);
        put_close(o, 2, tag);
    }
}

static void put_summary(struct out *o, const struct report_end *e)
{
    put_open(o, 1, "summary");
    put_pid(o, e->pid);
    put_element(o, 2, "library", e->library);
    put_u64(o, 2, "errors", e->errors);
    put_u64(o, 2, "suppressed", e->suppressed);
    put_values(o, "watched", e->values, e->nvalues);
    put_values(o, "uncovered", e->uncovered, e->nuncovered);
    put_close(o, 1, "summary");
}

void xml_write(struct out *o, const struct document *d)
{
    out_lit(o, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<ComputeSanitizerOutput>\n");
    for (size_t i = 0; i < d->count; i++) {
        if (d->lines[i].event == REPORT_ERROR)
            put_record(o, d, &d->lines[i]);
        else if (d->lines[i].event == REPORT_END)
            put_summary(o, &d->lines[i].end);
    }
    out_lit(o, "</ComputeSanitizerOutput>\n");
}
