// SPDX-License-Identifier: MIT
// A certain error becomes a report of the usual kind: the place in the kernel, the launching call with
// its stack, the buffer, and what it lacks.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explain/explain.h"
#include "explain/explain_text.h"
#include "flow/place.h"
#include "track/guard_report.h"

// --- the place
// ---------------------------------------------------------------------------------------------

// Appends a text, and returns where it starts; 0 if it is empty or there is no room.
static uint16_t add_text(struct driver_fault *f, size_t *used, struct str text)
{
    if (!text.len || text.len + 1 > sizeof f->texts - *used)
        return 0;
    uint16_t at = (uint16_t)*used;
    memcpy(f->texts + at, text.ptr, text.len);
    f->texts[at + text.len] = 0;
    *used += text.len + 1;
    return at;
}

static void set_frames(struct driver_fault *fault, const struct explain_row *row, uint32_t stmt)
{
    struct place_frame frames[PLACE_FRAMES];
    char name[PLACE_NAME];
    size_t used = 1;
    unsigned n = place_frames(row->m, row->f, stmt, frames);
    for (unsigned i = 0; i < n && i < DRIVER_FAULT_FRAMES; i++) {
        place_function(&frames[i], name);
        fault->frames[fault->nframes++] = (struct driver_fault_frame){
            .function = add_text(fault, &used, str_from(name)),
            .file = add_text(fault, &used, frames[i].file),
            .line = frames[i].line,
            .inlined = frames[i].inlined,
        };
    }
    snprintf(fault->source_file, sizeof fault->source_file, STR_FMT, STR_ARG(frames[0].file));
    fault->source_line = frames[0].line;
}

static void set_place(struct driver_fault *fault, const struct explain_row *row, uint32_t stmt)
{
    *fault = (struct driver_fault){.line = place_ptx_line(row->m, row->f, stmt)};
    snprintf(fault->kernel, sizeof fault->kernel, "%s", row->name);
    snprintf(fault->module, sizeof fault->module, "%s", row->m->source.name);
    struct str rest = str_skip(row->m->source.text, row->f->stmts[stmt].pos);
    const char *end = memchr(rest.ptr, ';', rest.len);
    snprintf(fault->instruction, sizeof fault->instruction, "%.*s", end ? (int)(end - rest.ptr) : 0,
             rest.ptr);
    set_frames(fault, row, stmt);
}

// --- the error
// ---------------------------------------------------------------------------------------------

static enum report_type type_of(const struct proof_root *root, const struct explain_found *e)
{
    switch ((enum proof_root_kind)root->kind) {
    case PROOF_ROOT_SHARED: return REPORT_SHARED_OVERFLOW;
    case PROOF_ROOT_LOCAL: return REPORT_LOCAL_OVERFLOW;
    case PROOF_ROOT_GLOBAL:
    case PROOF_ROOT_CONST: return REPORT_GLOBAL_OVERFLOW;
    default: break;
    }
    if (e->buffer.freed)
        return REPORT_USE_AFTER_FREE;
    if (e->buffer.block.facts.family == TRACK_VARIABLE)
        return REPORT_GLOBAL_OVERFLOW;
    return e->answer.needs ? REPORT_HEAP_OVERFLOW : REPORT_HEAP_UNDERFLOW;
}

// Writes 1,234,567.
static void write_number(char text[32], uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n), to = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            text[to++] = ',';
        text[to++] = digits[i];
    }
    text[to] = 0;
}

void explain_found_words(const struct judge_answer *a, uint64_t size, bool freed, char *text, size_t room)
{
    char needs[32], has[32], before[32];
    write_number(needs, a->needs);
    write_number(has, size);
    write_number(before, a->before);
    if (freed)
        snprintf(text, room, "its buffer was freed before the launch");
    else if (a->needs && a->before)
        snprintf(text, room, "starts %s bytes before the buffer and needs %s bytes, the buffer has %s",
                 before, needs, has);
    else if (a->needs)
        snprintf(text, room, "needs %s bytes, the buffer has %s", needs, has);
    else
        snprintf(text, room, "starts %s byte%s before the buffer", before, a->before == 1 ? "" : "s");
}

// Returns a wrong byte that is touched for certain, counted from the start of the buffer: what lies at
// the bound's own ends is, what lies between them may not be.
static uint64_t place_of(const struct explain_found *e, uint32_t bytes)
{
    uint64_t last = e->answer.needs - (bytes ? bytes : 1);
    if (e->buffer.freed || !e->answer.needs)
        return (uint64_t)e->answer.first;
    return last > e->buffer.judged.size ? last : e->buffer.judged.size;
}

void explain_found(const struct explain_row *row, const struct explain_found *e, enum driver_id call)
{
    const struct proof *p = &row->ranges->proof;
    const struct proof_access *access = &p->accesses[e->access];
    const struct explain_buffer *b = &e->buffer;
    struct driver_fault fault;
    char words[120], note[240];
    set_place(&fault, row, access->stmt);
    explain_found_words(&e->answer, b->judged.size, b->freed, words, sizeof words);
    snprintf(note, sizeof note, "%s; known from the arguments before the launch, which was made nevertheless",
             words);
    uint64_t at = place_of(e, access->bytes);
    struct guard_finding f = {
        .type = type_of(&p->roots[e->root], e),
        .call = call,
        .nowhere = !b->found,
        .address = b->found ? b->block.base + at : 0,
        .bytes = access->bytes,
        .access = access->does & PROOF_WRITES ? REPORT_WRITE : REPORT_READ,
        .nbuffers = b->found,
        .fault = &fault,
        .note = note,
    };
    if (b->found)
        f.buffers[0] = b->block;
    guard_report_finding(&f);
}
