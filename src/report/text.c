// SPDX-License-Identifier: MIT
#include "report/text.h"

#include <assert.h>

#include "report/text_paint.h"

#define LAST_WORDS "(moat: the rest is too long and left out)\n"

enum { PER_LINE = 16, MOST_LINES = 16 };  // corrupted bytes per line, and lines

static bool is_leak(const struct report *r)
{
    return r->type == REPORT_LEAK;
}

// Heading

static void paint_where(struct text_painter *p, const struct report *r)
{
    const char *kernel = r->place.kernel, *name = report_device_name(&r->place);
    if (name) {
        text_buffer_cstr(p->b, kernel ? " in kernel " : " in function ");
        text_paint_name(p, name);
        if (r->place.file) {
            text_buffer_char(p->b, ' ');
            text_paint_path(p, r->place.file, r->place.line);
        }
    } else if (r->call) {
        text_buffer_cstr(p->b, " in ");
        text_paint_clean(p, r->call);
    }
}

static void paint_first_line(struct text_painter *p, const struct report *r)
{
    text_paint_colour(p, TEXT_BAD);
    text_buffer_fmt(p->b, "==%d==ERROR: moat: %s on ", r->pid, report_rows[r->type].name);
    if (r->device >= 0)
        text_buffer_fmt(p->b, "device %d", r->device);
    else
        text_buffer_cstr(p->b, "the host");
    if (r->has_address) {
        text_buffer_cstr(p->b, " address ");
        text_buffer_hex(p->b, r->address);
    } else if (r->type != REPORT_KERNEL_FAULT && r->type != REPORT_API_ERROR) {
        text_buffer_cstr(p->b, " at an unknown address");
    }
    paint_where(p, r);
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
}

static void paint_triple(struct text_painter *p, const char *what, const uint32_t v[3])
{
    text_buffer_fmt(p->b, "%s (%u,%u,%u)", what, v[0], v[1], v[2]);
}

static void paint_access(struct text_painter *p, const struct report *r)
{
    const struct report_place *at = &r->place;
    if (r->access == REPORT_NO_ACCESS && !at->thread_known)
        return;
    text_paint_colour(p, TEXT_BOLD);
    text_buffer_cstr(p->b, r->access == REPORT_READ                                      ? "READ"
                           : r->access == REPORT_WRITE                                   ? "WRITE"
                           : r->type == REPORT_KERNEL_FAULT                              ? "Ended"
                           : r->type == REPORT_DOUBLE_FREE || r->type == REPORT_BAD_FREE ? "Freed"
                                                                                         : "Access");
    if (r->bytes) {
        text_buffer_cstr(p->b, " of size ");
        text_buffer_u64(p->b, r->bytes);
    }
    if (at->thread_known) {
        paint_triple(p, " by thread", at->thread);
        paint_triple(p, " in block", at->block);
    } else if (at->kernel) {
        text_buffer_cstr(p->b, " by an unknown thread");
    } else if (r->call) {
        text_buffer_cstr(p->b, " by ");
        text_paint_clean(p, r->call);
    }
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
}

static void paint_instruction(struct text_painter *p, const struct report_place *at)
{
    if (at->function && at->kernel) {
        text_buffer_cstr(p->b, "    in device function ");
        text_paint_name(p, at->function);
        text_buffer_char(p->b, '\n');
    }
    if (!at->instruction && !at->ptx_line)
        return;
    text_paint_colour(p, TEXT_DIM);
    text_buffer_cstr(p->b, "    PTX");
    if (at->module) {
        text_buffer_cstr(p->b, " of ");
        text_paint_path(p, at->module, 0);
    }
    if (at->ptx_line)
        text_buffer_fmt(p->b, " line %u", at->ptx_line);
    if (at->instruction) {
        text_buffer_cstr(p->b, ": ");
        text_paint_clean(p, at->instruction);
    }
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
}

// Prints the device functions that the kernel's thread was in.
static void paint_frames(struct text_painter *p, const struct report_place *at)
{
    if (!at->frames.count)
        return;
    text_paint_colour(p, TEXT_HEADING);
    text_buffer_cstr(p->b, "in the kernel at:");
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
    text_paint_stack(p, &at->frames);
}

// Prints "allocated by cuMemAlloc_v2 in thread T1 at:" and the stack.
static void paint_origin(struct text_painter *p, const char *verb, const char *call, const char *thread,
                         const struct report_stack *stack)
{
    if (!call && !stack->count)
        return;
    text_paint_colour(p, TEXT_HEADING);
    text_buffer_cstr(p->b, verb);
    if (call) {
        text_buffer_cstr(p->b, " by ");
        text_paint_clean(p, call);
    }
    if (thread) {
        text_buffer_cstr(p->b, " in thread ");
        text_paint_clean(p, thread);
    }
    text_buffer_cstr(p->b, stack->count ? " at:" : "");
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
    text_paint_stack(p, stack);
}

// Buffers

static void paint_region(struct text_painter *p, const struct report_buffer *b)
{
    text_buffer_u64(p->b, b->size);
    text_buffer_cstr(p->b, "-byte region [");
    text_buffer_hex(p->b, b->base);
    text_buffer_char(p->b, ',');
    text_buffer_hex(p->b, b->base + b->size);
    text_buffer_char(p->b, ')');
    if (b->name) {
        text_buffer_cstr(p->b, " named ");
        text_paint_clean(p, b->name);
    }
}

static void paint_life(struct text_painter *p, const struct report_buffer *b)
{
    paint_origin(p, "allocated", b->made_by, b->thread, &b->made_at);
    if (b->freed_by || b->freed_at.count)
        paint_origin(p, "freed", b->freed_by, NULL, &b->freed_at);
}

static void paint_distance(struct text_painter *p, uint64_t address, const struct report_buffer *b)
{
    uint64_t distance = address < b->base              ? b->base - address
                        : address - b->base >= b->size ? address - b->base - b->size
                                                       : address - b->base;
    text_buffer_cstr(p->b, " is located ");
    text_buffer_u64(p->b, distance);
    text_buffer_cstr(p->b, distance == 1 ? " byte" : " bytes");
    text_buffer_cstr(p->b, address < b->base              ? " before "
                           : address - b->base >= b->size ? " after "
                                                          : " inside ");
}

static void paint_buffer(struct text_painter *p, const struct report *r, const struct report_buffer *b)
{
    if (r->has_address && !is_leak(r)) {
        text_buffer_hex(p->b, r->address);
        paint_distance(p, r->address, b);
    }
    paint_region(p, b);
    text_buffer_char(p->b, '\n');
    paint_life(p, b);
}

static void paint_leaks(struct text_painter *p, const struct report *r)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r->nbuffers; i++)
        bytes += r->buffers[i].size;
    // Where only one buffer of many is shown, a note has the sum.
    if (!r->nnotes) {
        text_paint_colour(p, TEXT_BOLD);
        text_paint_count(p, bytes, "byte", "bytes");
        text_buffer_cstr(p->b, " in ");
        text_paint_count(p, r->nbuffers, "buffer", "buffers");
        text_buffer_cstr(p->b, bytes == 1 ? " was never freed" : " were never freed");
        text_paint_colour(p, TEXT_PLAIN);
        text_buffer_char(p->b, '\n');
    }
    for (uint32_t i = 0; i < r->nbuffers; i++)
        paint_buffer(p, r, &r->buffers[i]);
}

static void paint_buffers(struct text_painter *p, const struct report *r)
{
    if (!r->nbuffers) {
        if (r->has_address && (r->type == REPORT_WILD_ACCESS || r->type == REPORT_BAD_FREE)) {
            text_buffer_hex(p->b, r->address);
            text_buffer_cstr(p->b, " is in no buffer that moat knows\n");
        }
        return;
    }
    if (!r->has_address && r->nbuffers > 1)
        text_buffer_cstr(p->b, "The buffer may be one of these, most likely first:\n");
    paint_buffer(p, r, &r->buffers[0]);
    if (r->has_address && r->nbuffers > 1)
        text_buffer_cstr(p->b, "Other buffers that it may belong to:\n");
    for (uint32_t i = 1; i < r->nbuffers; i++)
        paint_buffer(p, r, &r->buffers[i]);
}

// Corrupted bytes

static bool is_touched(const struct report_bytes *c, uint64_t i)
{
    return i < c->count && c->touched[i / 8] >> (i % 8) & 1;
}

static bool line_touched(const struct report_bytes *c, uint64_t line)
{
    for (uint64_t a = line; a < line + PER_LINE; a++)
        if (a >= c->base && is_touched(c, a - c->base))
            return true;
    return false;
}

static void paint_byte(struct text_painter *p, const struct report_bytes *c, uint64_t address)
{
    uint64_t i = address - c->base;
    if (address < c->base || i >= c->count) {
        text_buffer_cstr(p->b, "   ");
    } else if (!is_touched(c, i)) {
        text_buffer_cstr(p->b, "  .");
    } else {
        text_buffer_char(p->b, ' ');
        text_paint_colour(p, TEXT_BAD);
        text_buffer_char(p->b, "0123456789abcdef"[c->bytes[i] >> 4]);
        text_buffer_char(p->b, "0123456789abcdef"[c->bytes[i] & 15]);
        text_paint_colour(p, TEXT_PLAIN);
    }
}

static void paint_bytes_line(struct text_painter *p, const struct report_bytes *c, uint64_t line)
{
    uint64_t last = line + PER_LINE - 1, end = c->base + c->count - 1;
    text_buffer_cstr(p->b, "  ");
    text_buffer_hex(p->b, line);
    text_buffer_char(p->b, ':');
    for (uint64_t a = line; a <= (last < end ? last : end); a++) {
        if (a == line + PER_LINE / 2)
            text_buffer_char(p->b, ' ');
        paint_byte(p, c, a);
    }
    text_buffer_char(p->b, '\n');
}

// Prints corrupted bytes. Lines without a change are left out; a line of dots stands for them.
static void paint_corrupted(struct text_painter *p, const struct report_bytes *c)
{
    uint64_t changed = 0, shown = 0, first = c->base & ~(uint64_t)(PER_LINE - 1);
    if (!c->count || c->base + c->count < c->base)
        return;
    for (uint32_t i = 0; i < c->count; i++)
        changed += is_touched(c, i);
    text_paint_count(p, changed, "byte outside any live buffer was", "bytes outside any live buffer were");
    text_buffer_cstr(p->b, " changed:\n");
    bool gap = false;
    for (uint64_t line = first; line - first < c->count + (c->base - first) && shown < MOST_LINES;
         line += PER_LINE) {
        if (!line_touched(c, line)) {
            gap = true;
            continue;
        }
        if (gap && shown)
            text_buffer_cstr(p->b, "  ...\n");
        gap = false;
        paint_bytes_line(p, c, line);
        shown++;
    }
    if (shown == MOST_LINES)
        text_buffer_cstr(p->b, "  ...\n");
}

// Summary

// Prints the kernels one of which did it.
static void paint_suspects(struct text_painter *p, const struct report *r)
{
    for (uint32_t i = 0; i < r->nsuspects; i++) {
        text_buffer_cstr(p->b, !i ? r->nsuspects > 1 ? " in one of " : " in " : ", ");
        text_paint_name(p, r->suspects[i]);
    }
}

static void paint_summary(struct text_painter *p, const struct report *r)
{
    const struct report_place *at = &r->place;
    const char *device = report_device_name(at);
    bool suspects = !device && r->nsuspects;
    // If the place of the error is not known, the allocation of the buffer is the best place to start from.
    bool nowhere = !device && !suspects && !at->file && !r->call && !r->stack.count && r->nbuffers;
    const struct report_stack *stack =
        (is_leak(r) && r->nbuffers) || nowhere ? &r->buffers[0].made_at : &r->stack;
    const struct report_frame *f = device || suspects ? NULL : report_frame_of_program(stack);
    // Of a library of templates, as Thrust is, the program's part is the launch.
    const struct report_frame *from =
        device && report_is_toolkit_header(at->file) ? report_frame_of_program(stack) : NULL;
    f = from && from->file ? from : f;
    bool launch = f && f == from;
    const char *file = f ? f->file : at->file;
    const char *name = suspects ? NULL : device && !launch ? device : f ? f->function : r->call;
    bool bare = f && !file && !name;
    text_paint_colour(p, TEXT_BOLD);
    text_buffer_fmt(p->b, "SUMMARY: moat: %s", report_rows[r->type].name);
    if (file || bare)
        text_buffer_char(p->b, ' ');
    if (file)
        text_paint_path(p, file, f ? f->line : at->line);
    else if (bare)
        text_paint_object(p, f);
    if (name) {
        text_buffer_cstr(p->b, " in ");
        text_paint_name(p, name);
    }
    if (suspects)
        paint_suspects(p, r);
    if (nowhere && (file || name || bare) && !is_leak(r))
        text_buffer_cstr(p->b, ", which allocated the buffer");
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
}

static void paint_id(struct text_painter *p, const struct report *r)
{
    if (!r->id)
        return;
    text_paint_colour(p, TEXT_DIM);
    text_buffer_cstr(p->b, "Report ");
    text_buffer_u64(p->b, r->id);
    text_buffer_fmt(p->b, " of process %d", r->pid);
    if (r->client)
        text_buffer_fmt(p->b, " for client %u", r->client);
    if (r->count > 1) {
        text_buffer_cstr(p->b, ", seen ");
        text_paint_count(p, r->count, "time", "times");
    }
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
}

static void paint_error(struct text_painter *p, const struct report *r)
{
    assert(r->type < REPORT_TYPES);
    paint_first_line(p, r);
    paint_access(p, r);
    paint_instruction(p, &r->place);
    paint_frames(p, &r->place);
    if (r->place.kernel)
        paint_origin(p, r->call ? "launched" : "noticed", r->call, NULL, &r->stack);
    else if (!is_leak(r))
        text_paint_stack(p, &r->stack);
    if (is_leak(r))
        paint_leaks(p, r);
    else
        paint_buffers(p, r);
    paint_corrupted(p, &r->corrupted);
    text_paint_notes(p, r->notes, r->nnotes, "note: ");
    paint_id(p, r);
    paint_summary(p, r);
    text_buffer_char(p->b, '\n');
}

static void paint_repeat(struct text_painter *p, int pid, uint64_t id, uint64_t count)
{
    text_buffer_fmt(p->b, "==%d==moat: report ", pid);
    text_buffer_u64(p->b, id);
    text_buffer_cstr(p->b, " was seen ");
    text_paint_count(p, count, "time in all\n", "times in all\n");
}

static void paint_note(struct text_painter *p, int pid, const char *text)
{
    text_buffer_fmt(p->b, "==%d==moat: ", pid);
    text_paint_sentence(p, text ? text : "");
    text_buffer_char(p->b, '\n');
}

void text_render(struct text_buffer *b, const struct report_line *line, const struct text_style *style)
{
    struct text_painter p = {b, style ? *style : (struct text_style){0}};
    size_t start = b->len, cap = b->cap;
    if (b->cut)
        return;
    if (cap - start < sizeof LAST_WORDS) {
        b->cut = true;
        return;
    }
    b->cap -= sizeof LAST_WORDS - 1;
    switch (line->event) {
    case REPORT_START: text_summary_start(&p, &line->start); break;
    case REPORT_ERROR: paint_error(&p, &line->error); break;
    case REPORT_REPEAT: paint_repeat(&p, line->repeat.pid, line->repeat.id, line->repeat.count); break;
    case REPORT_NOTE: paint_note(&p, line->note.pid, line->note.text); break;
    case REPORT_END: text_summary_end(&p, &line->end); break;
    case REPORT_COUNTS: text_counts(&p, &line->counts); break;
    case REPORT_PROOFS: text_proofs(&p, &line->proofs); break;
    case REPORT_UNCHECKED: text_unchecked(&p, &line->unchecked); break;
    }
    b->cap = cap;
    if (b->cut) {
        while (b->len > start && b->text[b->len - 1] != '\n')
            b->len--;
        b->cut = false;
        text_buffer_cstr(b, LAST_WORDS);
        b->cut = true;
    }
}
