// SPDX-License-Identifier: MIT
// The table at the end: for each kernel how many of its accesses are inside, outside or unknown, and
// where those are that are not inside. Accesses of one place that are alike are one row.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "explain/explain.h"
#include "flow/place.h"
#include "track/guard_report.h"

enum { BATCH = 32, PLACES = 12 };  // rows in one event, and places of one kernel

struct explain_report {
    struct arena arena;
    size_t count;
    struct report_explained *kernels;
};

// --- places
// ------------------------------------------------------------------------------------------------

// Returns the worst verdict of all launches; JUDGE_VERDICTS if no launch was judged.
static enum judge_verdict worst_of(const struct explain_tally *t)
{
    for (int v = 0; v < JUDGE_VERDICTS; v++)
        if (t->launches[v])
            return (enum judge_verdict)v;
    return JUDGE_VERDICTS;
}

static const char *keep(struct explain_report *r, struct str text)
{
    char *kept = arena_alloc(&r->arena, text.len + 1);
    memcpy(kept, text.ptr, text.len);
    return kept;
}

static const char *root_text(struct explain_report *r, const struct proof *p, uint32_t root)
{
    char text[PLACE_NAME];
    if (root == PROOF_NONE)
        return NULL;
    judge_root(p, root, text, sizeof text);
    return keep(r, str_from(text));
}

// Sets the place: the innermost frame that is not in a header of the toolkit.
static void set_source(struct explain_report *r, struct report_access_place *to,
                       const struct explain_row *row, uint32_t stmt)
{
    struct place_frame frames[PLACE_FRAMES];
    unsigned n = place_frames(row->m, row->f, stmt, frames);
    to->ptx_line = place_ptx_line(row->m, row->f, stmt);
    for (unsigned i = 0; i < n; i++) {
        const char *file = frames[i].file.len ? keep(r, frames[i].file) : NULL;
        if (!file || (i + 1 < n && report_is_toolkit_header(file)))
            continue;
        to->file = file;
        to->line = frames[i].line;
        return;
    }
}

static void set_place(struct explain_report *r, struct report_access_place *to, const struct explain_row *row,
                      uint32_t i, enum judge_verdict verdict)
{
    const struct proof *p = &row->ranges->proof;
    const struct proof_access *a = &p->accesses[i];
    const struct explain_tally *t = &row->tallies[i];
    char words[120];
    *to = (struct report_access_place){
        .verdict = judge_text(verdict),
        .access = a->does & PROOF_WRITES ? REPORT_WRITE : REPORT_READ,
        .bytes = a->bytes,
        .accesses = 1,
        .launches = t->launches[verdict],
        .root = root_text(r, p, t->root),
    };
    set_source(r, to, row, a->stmt);
    if (verdict == JUDGE_UNKNOWN) {
        to->why = proof_why((enum proof_reason)t->reason);
        to->help = proof_help((enum proof_reason)t->reason);
    } else {
        explain_found_words(&t->answer, t->size, t->freed, words, sizeof words);
        to->why = keep(r, str_from(words));
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool alike(const struct report_access_place *a, const struct report_access_place *b)
{
    return a->verdict == b->verdict && a->access == b->access && a->line == b->line &&
           (a->file || a->ptx_line == b->ptx_line) && same_text(a->file, b->file) &&
           same_text(a->why, b->why) && same_text(a->root, b->root);
}

// Adds a place to those of a kernel, or to one that is alike.
static void add_place(struct report_explained *k, struct report_access_place *places,
                      const struct report_access_place *p)
{
    uint32_t i = 0;
    while (i < k->nplaces && !alike(&places[i], p))
        i++;
    if (i < k->nplaces) {
        places[i].accesses++;
        places[i].launches = p->launches > places[i].launches ? p->launches : places[i].launches;
    } else if (i < PLACES) {
        places[k->nplaces++] = *p;
    } else {
        k->more++;
    }
}

// --- kernels
// -----------------------------------------------------------------------------------------------

static void count(struct report_explained *k, enum judge_verdict verdict)
{
    switch (verdict) {
    case JUDGE_OUTSIDE: k->outside++; break;
    case JUDGE_MAYBE: k->maybe++; break;
    case JUDGE_UNKNOWN: k->unknown++; break;
    case JUDGE_BOUNDED: k->bounded++; break;
    case JUDGE_INSIDE: k->inside++; break;
    default: k->unreachable++; break;
    }
}

static void show(struct explain_report *r, struct report_explained *k, const struct explain_row *row)
{
    *k = (struct report_explained){
        .name = row->name,
        .unread = !row->ranges || row->unevaluated == row->launches,
        .launches = row->launches,
        .median = explain_times_part(&row->times, 500),
        .most = explain_times_part(&row->times, 990),
    };
    if (k->unread)
        return;
    struct report_access_place *places = ARENA_ARRAY(&r->arena, struct report_access_place, PLACES);
    k->places = places;
    k->accesses = row->ranges->proof.head->naccesses;
    for (uint32_t i = 0; i < k->accesses; i++)
        count(k, worst_of(&row->tallies[i]));
    for (int v = 0; v <= JUDGE_UNKNOWN; v++)
        for (uint32_t i = 0; i < k->accesses; i++) {
            struct report_access_place place;
            if (worst_of(&row->tallies[i]) != (enum judge_verdict)v)
                continue;
            set_place(r, &place, row, i, (enum judge_verdict)v);
            add_place(k, places, &place);
        }
}

static int by_importance(const void *x, const void *y)
{
    const struct report_explained *a = x, *b = y;
    if (a->outside != b->outside)
        return a->outside < b->outside ? 1 : -1;
    if (!a->maybe != !b->maybe)
        return a->maybe ? -1 : 1;
    if (a->launches != b->launches)
        return a->launches < b->launches ? 1 : -1;
    return strcmp(a->name, b->name);
}

static void show_all(struct explain_report *r, const struct explain_row *rows)
{
    size_t n = 0;
    for (const struct explain_row *row = rows; row; row = row->next)
        n++;
    r->kernels = ARENA_ARRAY(&r->arena, struct report_explained, n + 1);
    for (const struct explain_row *row = rows; row; row = row->next)
        if (row->launches)
            show(r, &r->kernels[r->count++], row);
    qsort(r->kernels, r->count, sizeof *r->kernels, by_importance);
}

struct explain_report *explain_report_make(const struct explain_row *rows)
{
    struct explain_report *r = mem_zalloc(1, sizeof *r);
    jmp_buf failed;
    if (!r)
        return NULL;
    arena_init(&r->arena, 0);
    r->arena.on_fail = &failed;
    if (setjmp(failed)) {
        arena_free(&r->arena);
        mem_free(r);
        return NULL;
    }
    show_all(r, rows);
    r->arena.on_fail = NULL;
    return r;
}

void explain_report_send(struct explain_report *r)
{
    for (size_t i = 0; i < r->count; i += BATCH) {
        size_t n = r->count - i < BATCH ? r->count - i : BATCH;
        guard_report_proofs(&(struct report_proofs){getpid(), (uint32_t)n, r->kernels + i});
    }
    arena_free(&r->arena);
    mem_free(r);
}
