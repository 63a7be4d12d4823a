// SPDX-License-Identifier: MIT
#include "check/check_table.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

enum {
    CHUNK = 1 << KCHECK_CHUNK_BITS,
    LIST_CLASSES = 16,  // lists of up to 2^15 records are used again
};

// A block as a chunk knows it. `record` is its own record, shared by all its chunks that are not divided; 0:
// there is none yet.
struct entry {
    uint64_t base, size;  // size without flags
    uint64_t serial;
    uint32_t record;
    bool freed, loose, pool, forgotten;  // the last: when it ends
};

struct entries {
    struct entry *at;  // by ascending base, disjoint
    uint32_t count, room;
};

struct chunk {
    struct entries outer, inner;
    uint32_t first, stride;  // stride 0: not divided
};

struct page {
    struct check_table_run used;  // all other words are 0
    uint64_t words[CHECK_TABLE_PAGE_WORDS];
    struct chunk *chunks[CHECK_TABLE_PAGE_WORDS];
};

// Records that are no longer needed, once all launches up to `after` have ended.
struct spare {
    uint32_t first;
    uint64_t after;
};
struct check_table {
    struct page *pages[CHECK_TABLE_PAGES];
    struct kcheck_record *pieces[CHECK_TABLE_PIECES];
    uint32_t next;  // first record that was never used
    bool failed;    // out of memory: the contents are no longer right
    uint64_t launches, ended;
    struct {
        VEC(struct spare) all;
        size_t first;  // all before it were used again
    } spares[LIST_CLASSES];
    VEC(struct check_table_run) records, words;
};

struct check_table *check_table_new(void)
{
    struct check_table *t = mem_zalloc(1, sizeof *t);
    if (t)
        t->next = 1;  // a word of 0 leads to no record
    return t;
}

static void free_chunk(struct chunk *c)
{
    if (!c)
        return;
    mem_free(c->outer.at);
    mem_free(c->inner.at);
    mem_free(c);
}

void check_table_free(struct check_table *t)
{
    for (unsigned i = 0; t && i < CHECK_TABLE_PAGES; i++) {
        for (unsigned j = 0; t->pages[i] && j < CHECK_TABLE_PAGE_WORDS; j++)
            free_chunk(t->pages[i]->chunks[j]);
        mem_free(t->pages[i]);
    }
    for (unsigned i = 0; t && i < CHECK_TABLE_PIECES; i++)
        mem_free(t->pieces[i]);
    for (unsigned i = 0; t && i < LIST_CLASSES; i++)
        vec_free(&t->spares[i].all);
    if (t) {
        vec_free(&t->records);
        vec_free(&t->words);
    }
    mem_free(t);
}

bool check_table_failed(const struct check_table *t)
{
    return t->failed;
}

void check_table_launches(struct check_table *t, uint64_t count, uint64_t ended)
{
    t->launches = count;
    t->ended = ended > t->ended ? ended : t->ended;
}

// --- what has changed --------------------------------------------------------------------------------------

const struct check_table_run *check_table_records_changed(const struct check_table *t, size_t *n)
{
    *n = t->records.len;
    return t->records.items;
}

const struct check_table_run *check_table_words_changed(const struct check_table *t, size_t *n)
{
    *n = t->words.len;
    return t->words.items;
}

void check_table_clean(struct check_table *t)
{
    t->records.len = t->words.len = 0;
}

// Appends an item to a vector of runs, or lengthens its last run.
#define NOTE(t, runs, n)                                                                                     \
    do {                                                                                                     \
        struct check_table_run *last = (runs)->len ? &(runs)->items[(runs)->len - 1] : NULL;                 \
        if (last && last->first + last->count == (n))                                                        \
            last->count++;                                                                                   \
        else if (!(last && (n)-last->first < last->count) && vec_push(runs, (struct check_table_run){n, 1})) \
            (t)->failed = true;                                                                              \
    } while (0)

// --- records -----------------------------------------------------------------------------------------------

struct kcheck_record *check_table_piece(const struct check_table *t, uint32_t n)
{
    return n < CHECK_TABLE_PIECES ? t->pieces[n] : NULL;
}

uint32_t check_table_records(const struct check_table *t)
{
    return t->next;
}

static struct kcheck_record *record_at(const struct check_table *t, uint32_t n)
{
    return &t->pieces[n / CHECK_TABLE_PIECE][n % CHECK_TABLE_PIECE];
}

static void set_record(struct check_table *t, uint32_t n, uint64_t base, uint64_t size)
{
    struct kcheck_record *r = record_at(t, n);
    if (r->base == base && r->size == size)
        return;
    *r = (struct kcheck_record){base, size};
    NOTE(t, &t->records, n);
}

// Returns the number of the first of `count` records that were never used; 0: there are none.
static uint32_t new_records(struct check_table *t, uint32_t count)
{
    uint32_t first = t->next;
    if ((uint64_t)first + count > (uint64_t)CHECK_TABLE_PIECE * CHECK_TABLE_PIECES) {
        t->failed = true;
        return 0;
    }
    for (uint32_t i = first / CHECK_TABLE_PIECE; i <= (first + count - 1) / CHECK_TABLE_PIECE; i++) {
        if (!t->pieces[i])
            t->pieces[i] = mem_zalloc(CHECK_TABLE_PIECE, sizeof **t->pieces);
        if (!t->pieces[i]) {
            t->failed = true;
            return 0;
        }
    }
    t->next += count;
    return first;
}

static unsigned class_of(uint32_t count)
{
    unsigned class = 0;
    while ((uint32_t)1 << class < count)
        class ++;
    return class;
}

// Returns the number of the first of `count` records; 0: there are none.
static uint32_t take_records(struct check_table *t, uint32_t count)
{
    unsigned c = class_of(count);
    if (c < LIST_CLASSES && t->spares[c].first < t->spares[c].all.len &&
        t->spares[c].all.items[t->spares[c].first].after <= t->ended) {
        uint32_t first = t->spares[c].all.items[t->spares[c].first++].first;
        if (t->spares[c].first == t->spares[c].all.len)
            t->spares[c].first = t->spares[c].all.len = 0;
        return first;
    }
    return new_records(t, c < LIST_CLASSES ? (uint32_t)1 << c : count);
}

// Records that find no room in the vector are never used again.
static void give_records(struct check_table *t, uint32_t first, uint32_t count)
{
    unsigned c = class_of(count);
    if (first && c < LIST_CLASSES)
        (void)vec_push(&t->spares[c].all, (struct spare){first, t->launches});
}

// --- blocks of a chunk -------------------------------------------------------------------------------------

uint64_t *check_table_page(const struct check_table *t, uint32_t n)
{
    return n < CHECK_TABLE_PAGES && t->pages[n] ? t->pages[n]->words : NULL;
}

struct check_table_run check_table_page_used(const struct check_table *t, uint32_t n)
{
    return n < CHECK_TABLE_PAGES && t->pages[n] ? t->pages[n]->used : (struct check_table_run){0};
}

static struct chunk *chunk_at(const struct check_table *t, uint64_t number)
{
    const struct page *p = t->pages[number / CHECK_TABLE_PAGE_WORDS];
    return p ? p->chunks[number % CHECK_TABLE_PAGE_WORDS] : NULL;
}

static struct chunk *make_chunk(struct check_table *t, uint64_t number)
{
    struct page **p = &t->pages[number / CHECK_TABLE_PAGE_WORDS];
    if (!*p)
        *p = mem_zalloc(1, sizeof **p);
    struct chunk **c = *p ? &(*p)->chunks[number % CHECK_TABLE_PAGE_WORDS] : NULL;
    if (c && !*c)
        *c = mem_zalloc(1, sizeof **c);
    t->failed |= !c || !*c;
    return c ? *c : NULL;
}

static void set_word(struct check_table *t, uint64_t number, uint64_t word)
{
    struct page *page = t->pages[number / CHECK_TABLE_PAGE_WORDS];
    uint32_t n = number % CHECK_TABLE_PAGE_WORDS, first = page->used.first, end = first + page->used.count;
    if (page->words[n] == word)
        return;
    page->words[n] = word;
    first = page->used.count && first < n ? first : n;
    end = end > n ? end : n + 1;
    page->used = (struct check_table_run){first, end - first};
    NOTE(t, &t->words, (uint32_t)number);
}

// Returns the number of entries that end at or before the address: the first of the others contains it, or
// lies behind it.
static uint32_t entries_before(const struct entries *e, uint64_t address)
{
    uint32_t low = 0, high = e->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (e->at[middle].base + e->at[middle].size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct entry *overlapping(const struct entries *e, uint64_t base, uint64_t end)
{
    uint32_t i = entries_before(e, base);
    return i < e->count && e->at[i].base < end ? &e->at[i] : NULL;
}

static void insert_entry(struct check_table *t, struct entries *e, const struct entry *new)
{
    if (e->count == e->room) {
        uint32_t room = e->room ? 2 * e->room : 1;
        struct entry *grown = mem_realloc(e->at, room, sizeof *grown);
        if (!grown) {
            t->failed = true;
            return;
        }
        e->at = grown;
        e->room = room;
    }
    uint32_t i = entries_before(e, new->base);
    memmove(&e->at[i + 1], &e->at[i], (e->count++ - i) * sizeof *e->at);
    e->at[i] = *new;
}

static void drop_entry(struct entries *e, uint64_t base)
{
    uint32_t i = entries_before(e, base);
    assert(i < e->count && e->at[i].base == base);
    memmove(&e->at[i], &e->at[i + 1], (--e->count - i) * sizeof *e->at);
}

static struct entries *level_of(struct chunk *c, bool inner)
{
    return inner ? &c->inner : &c->outer;
}

// --- slots -------------------------------------------------------------------------------------------------

static uint64_t flagged(const struct entry *e)
{
    return e->size | (e->freed ? KCHECK_FREED : 0) | (e->loose ? KCHECK_LOOSE : 0) |
           (e->pool ? KCHECK_POOL : 0);
}

static uint32_t slot_of(const struct chunk *c, uint64_t offset)
{
    return (uint32_t)(offset / c->stride);
}

static uint32_t slots_of(const struct chunk *c)
{
    return slot_of(c, CHUNK - 1) + 1;
}

static uint32_t count_touching(const struct entries *e, uint64_t base, uint64_t end)
{
    uint32_t n = 0;
    for (uint32_t i = entries_before(e, base); i < e->count && e->at[i].base < end; i++)
        n++;
    return n;
}

// Copies the entries that touch a slot to the records from `at` on. Returns the next record.
static uint32_t list_entries(struct check_table *t, const struct entries *e, uint64_t base, uint64_t end,
                             uint32_t at)
{
    for (uint32_t i = entries_before(e, base); i < e->count && e->at[i].base < end; i++)
        set_record(t, at++, e->at[i].base, flagged(&e->at[i]));
    return at;
}

static uint32_t list_length(const struct check_table *t, uint32_t first)
{
    uint32_t n = 1;
    while (record_at(t, first + n - 1)->base)
        n++;
    return n;
}

static uint64_t make_list(struct check_table *t, const struct chunk *c, uint64_t base, uint64_t end,
                          uint32_t count)
{
    uint32_t first = take_records(t, count + 1);
    if (!first)
        return 0;
    uint32_t at = list_entries(t, &c->inner, base, end, first);
    at = list_entries(t, &c->outer, base, end, at);
    set_record(t, at, 0, 0);
    return KCHECK_MIXED | first;
}

// Makes the record of a slot anew.
static void fill_slot(struct check_table *t, const struct chunk *c, uint64_t chunk_base, uint32_t slot)
{
    uint64_t base = chunk_base + (uint64_t)slot * c->stride, end = base + c->stride;
    uint32_t inner = count_touching(&c->inner, base, end), outer = count_touching(&c->outer, base, end);
    uint32_t number = c->first + slot;
    struct kcheck_record old = *record_at(t, number);
    const struct entry *e = overlapping(inner ? &c->inner : &c->outer, base, end);
    bool covers = inner == 1 && e->base <= base && e->base + e->size >= end;
    if (inner + outer == 0)
        set_record(t, number, 0, 0);
    else if (inner + outer == 1 || covers)
        set_record(t, number, e->base, flagged(e));
    else
        set_record(t, number, overlapping(outer ? &c->outer : &c->inner, base, end)->base,
                   make_list(t, c, base, end, inner + outer));
    if (old.size & KCHECK_MIXED) {
        uint32_t list = (uint32_t)(old.size & KCHECK_SIZE);
        give_records(t, list, list_length(t, list));
    }
}

static void divide(struct check_table *t, struct chunk *c, uint32_t stride)
{
    c->stride = stride;
    c->first = new_records(t, slots_of(c));
}

// Returns the first block of a chunk; NULL if it has none.
static struct entry *first_entry(const struct chunk *c)
{
    return c->outer.count ? c->outer.at : c->inner.count ? c->inner.at : NULL;
}

// Brings records and word of a chunk up to date where [base, end) touches it.
static void fill_chunk(struct check_table *t, uint64_t number, uint64_t base, uint64_t end, bool ordered)
{
    struct chunk *c = chunk_at(t, number);
    uint64_t chunk_base = number << KCHECK_CHUNK_BITS, chunk_end = chunk_base + CHUNK;
    struct entry *only = first_entry(c);
    bool whole = only && only->base <= chunk_base && only->base + only->size >= chunk_end;
    uint32_t count = c->outer.count + c->inner.count;
    if (!c->stride && count < 2 && (!ordered || whole)) {
        if (only)
            set_record(t, only->record, only->base, flagged(only));
        set_word(t, number, only ? (uint64_t)only->record << 32 : 0);
        return;
    }
    if (!c->stride) {
        divide(t, c, KCHECK_GRANULE);
        base = chunk_base;
        end = chunk_end;
    }
    if (t->failed)
        return;
    uint32_t low = slot_of(c, base > chunk_base ? base - chunk_base : 0);
    uint32_t high = slot_of(c, (end < chunk_end ? end - chunk_base : CHUNK) - 1);
    const struct entry *last = NULL;  // the block of the slot before
    for (uint32_t slot = low; slot <= high && !t->failed; slot++) {
        uint64_t at = chunk_base + (uint64_t)slot * c->stride;
        bool same = last && last->base <= at && last->base + last->size >= at + c->stride;
        if (!same || record_at(t, c->first + slot)->size & KCHECK_MIXED)
            fill_slot(t, c, chunk_base, slot);
        else
            set_record(t, c->first + slot, last->base, flagged(last));
        if (!same)
            last = c->inner.count ? NULL : overlapping(&c->outer, at, at + c->stride);
    }
    set_word(t, number, (uint64_t)c->first << 32 | kcheck_reciprocal(c->stride));
}

#define EACH_CHUNK(number, base, end) \
    for (uint64_t number = (base) >> KCHECK_CHUNK_BITS; number <= ((end)-1) >> KCHECK_CHUNK_BITS; number++)

// --- operations --------------------------------------------------------------------------------------------

// Forgets a block. If out of memory, the table has failed, or the block's record is never used again.
static void forget(struct check_table *t, struct entry e, bool inner)
{
    EACH_CHUNK(number, e.base, e.base + e.size)
    {
        drop_entry(level_of(chunk_at(t, number), inner), e.base);
        fill_chunk(t, number, e.base, e.base + e.size, false);
    }
    if (e.record)
        give_records(t, e.record, 1);
}

// Forgets the blocks of a level that overlap the range.
static void forget_range(struct check_table *t, uint64_t base, uint64_t end, bool inner)
{
    EACH_CHUNK(number, base, end)
    {
        struct chunk *c = chunk_at(t, number);
        struct entry *e;
        while (!t->failed && c && (e = overlapping(level_of(c, inner), base, end)))
            forget(t, *e, inner);
    }
}

static bool needs_record(const struct chunk *c)
{
    return !c || !c->stride;
}

int check_table_add(struct check_table *t, const struct check_table_block *b)
{
    uint64_t end = b->base + b->size;
    if (!b->base || !b->size || end < b->base || end > (uint64_t)1 << KCHECK_ADDRESS_BITS)
        return -EINVAL;
    if (t->failed)
        return -ENOMEM;
    bool inner = b->flags & CHECK_TABLE_INNER;
    struct entry e = {.base = b->base,
                      .size = b->size,
                      .serial = b->serial,
                      .loose = b->flags & CHECK_TABLE_LOOSE,
                      .forgotten = b->flags & CHECK_TABLE_FORGOTTEN};
    forget_range(t, b->base, end, inner);
    if (!inner && !(b->flags & CHECK_TABLE_SHARES))
        forget_range(t, b->base, end, true);
    EACH_CHUNK(number, b->base, end)
    {
        if (!e.record && needs_record(chunk_at(t, number)))
            e.record = take_records(t, 1);
        struct chunk *c = make_chunk(t, number);
        if (!t->failed)
            insert_entry(t, level_of(c, inner), &e);
        if (t->failed)
            return -ENOMEM;
    }
    // Not in the loop above, so that all entries have the record.
    EACH_CHUNK(number, b->base, end)
    {
        struct chunk *c = chunk_at(t, number);
        overlapping(level_of(c, inner), b->base, end)->record = e.record;
        if (!t->failed)
            fill_chunk(t, number, b->base, end, b->flags & CHECK_TABLE_ORDERED);
    }
    return t->failed ? -ENOMEM : 0;
}

void check_table_pool(struct check_table *t, uint64_t address)
{
    struct chunk *c = address >> KCHECK_ADDRESS_BITS ? NULL : chunk_at(t, address >> KCHECK_CHUNK_BITS);
    const struct entry *found = c ? overlapping(&c->outer, address, address + 1) : NULL;
    if (!found || t->failed)
        return;
    uint64_t base = found->base, end = base + found->size;
    EACH_CHUNK(number, base, end)
    {
        overlapping(&chunk_at(t, number)->outer, base, end)->pool = true;
        fill_chunk(t, number, base, end, false);
    }
}

// Sets FREED in the record of a slot, or in the entry of its list.
static void mark_slot(struct check_table *t, uint32_t number, const struct entry *e)
{
    struct kcheck_record *r = record_at(t, number);
    if (!(r->size & KCHECK_MIXED)) {
        if (r->base == e->base && (r->size & KCHECK_SIZE) == e->size)
            set_record(t, number, e->base, flagged(e));
        return;
    }
    for (uint32_t i = (uint32_t)(r->size & KCHECK_SIZE); record_at(t, i)->base; i++)
        if (record_at(t, i)->base == e->base && (record_at(t, i)->size & KCHECK_SIZE) == e->size)
            set_record(t, i, e->base, flagged(e));
}

bool check_table_mark(struct check_table *t, uint64_t base, uint64_t serial)
{
    if (base >> KCHECK_ADDRESS_BITS || t->failed)
        return false;
    struct chunk *c = chunk_at(t, base >> KCHECK_CHUNK_BITS);
    const struct entry *found = c ? overlapping(&c->outer, base, base + 1) : NULL;
    if (!found || found->base != base || found->serial != serial || found->freed)
        return false;
    if (found->forgotten) {
        forget(t, *found, false);
        return true;
    }
    uint64_t end = base + found->size;
    EACH_CHUNK(number, base, end)
    {
        c = chunk_at(t, number);
        uint64_t chunk_base = number << KCHECK_CHUNK_BITS;
        struct entry *e = overlapping(&c->outer, base, end);
        e->freed = true;
        if (!c->stride) {
            set_record(t, e->record, base, flagged(e));
            continue;
        }
        uint32_t low = slot_of(c, base > chunk_base ? base - chunk_base : 0);
        uint32_t high = slot_of(c, (end < chunk_base + CHUNK ? end - chunk_base : CHUNK) - 1);
        for (uint32_t slot = low; slot <= high; slot++)
            mark_slot(t, c->first + slot, e);
    }
    return true;
}

int check_table_withdraw(struct check_table *t, uint64_t base, uint64_t end)
{
    if (base < end && end <= (uint64_t)1 << KCHECK_ADDRESS_BITS)
        forget_range(t, base, end, true);
    return t->failed ? -ENOMEM : 0;
}

// A chunk has slots of the stride itself if all of them begin in it, else of the largest power of two that
// divides it: then blocks may have several records, and none shares one.
int check_table_divide(struct check_table *t, uint64_t base, uint64_t bytes, uint64_t stride)
{
    uint64_t end = base + bytes, slot = bytes == CHUNK && stride <= CHUNK / 2 ? stride : stride & -stride;
    if (base % CHUNK || !bytes || bytes % CHUNK || end < base || end > (uint64_t)1 << KCHECK_ADDRESS_BITS ||
        !stride || stride % KCHECK_GRANULE)
        return -EINVAL;
    slot = slot < CHUNK / 2 ? slot : CHUNK / 2;
    EACH_CHUNK(number, base, end)
    {
        struct chunk *c = t->failed ? NULL : make_chunk(t, number);
        if (!c || c->stride || c->outer.count || c->inner.count)
            continue;
        divide(t, c, (uint32_t)slot);
        if (!t->failed)
            set_word(t, number, (uint64_t)c->first << 32 | kcheck_reciprocal(c->stride));
    }
    return t->failed ? -ENOMEM : 0;
}

// --- invariants --------------------------------------------------------------------------------------------

static bool sorted(const struct entries *e)
{
    for (uint32_t i = 1; i < e->count; i++)
        if (e->at[i - 1].base + e->at[i - 1].size > e->at[i].base)
            return false;
    return true;
}

static bool chunk_valid(const struct check_table *t, const struct chunk *c, uint64_t word)
{
    const struct entry *only = first_entry(c);
    if (!sorted(&c->outer) || !sorted(&c->inner))
        return false;
    if (c->stride)
        return word == ((uint64_t)c->first << 32 | kcheck_reciprocal(c->stride)) &&
               c->first + slots_of(c) <= t->next;
    if (c->outer.count + c->inner.count > 1)
        return false;
    return word == (only ? (uint64_t)only->record << 32 : 0);
}

static bool page_valid(const struct check_table *t, const struct page *page)
{
    for (unsigned i = 0; i < CHECK_TABLE_PAGE_WORDS; i++) {
        if (page->chunks[i] ? !chunk_valid(t, page->chunks[i], page->words[i]) : page->words[i] != 0)
            return false;
        if (page->words[i] && i - page->used.first >= page->used.count)
            return false;
    }
    return true;
}

bool check_table_valid(const struct check_table *t)
{
    for (unsigned i = 0; i < CHECK_TABLE_PAGES; i++)
        if (t->pages[i] && !page_valid(t, t->pages[i]))
            return false;
    return true;
}
