// SPDX-License-Identifier: MIT
#include "heap/monitor.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/cancel.h"
#include "base/checked.h"
#include "heap/deliver.h"
#include "heap/safe_read.h"
#include "heap/guarded.h"
#include "heap/heap_report.h"
#include "heap/span.h"
#include "heap/word_bag.h"
#include "heap/producer.h"

enum { SUSPECTS = 128, PATIENCE_MS = 2000 };
enum { PIECE = 192 };  // bytes read of a block, at least: its head, and of most blocks the tail too

struct suspect {
    uint64_t word;   // 0: none
    uint64_t round;  // the exact round after which it can be judged
    uint64_t seen;   // the pass that saw it last
    struct block_head head;
};

struct far {
    uint64_t word;
    struct block_head head;
};

struct monitor {
    pthread_mutex_t lock;
    struct block_list *list;
    struct word_bag dead;  // notices whose words were not met yet
    struct suspect suspects[SUSPECTS];
    unsigned nsuspects;
    uint64_t suspect_bits;  // the bit_of each suspect: a quick test for most words
    uint64_t round;         // exact rounds that were complete when this pass began
    uint64_t passes;        // passes begun
    // For any thread, so relaxed: numbers of the last complete pass, and the passes begun by then.
    _Atomic uint64_t seen_known, seen_live, seen_passes;
    uint64_t known, live;      // in this pass
    _Atomic uint64_t matched;  // notices that met their word
    // One batch: words whose blocks are live as far as we know, and what was read of them.
    size_t count;
    uint64_t words[SAFE_READ_MOST];
    struct safe_read_piece pieces[SAFE_READ_MOST];
    _Alignas(16) char bytes[SAFE_READ_MOST * PIECE];
    // The blocks of the batch whose tails were not read with their heads.
    size_t nfar;
    struct far far[SAFE_READ_MOST];
    const char *at[SAFE_READ_MOST];
    char tails[SAFE_READ_MOST][BLOCK_TAIL_MOST];
    bool read[SAFE_READ_MOST];
    monitor_visitor *visit;
    void *ctx;
};

static struct monitor *monitors[DELIVER_MOST_LISTS];
static atomic_bool hurry;

int monitor_init(unsigned lists)
{
    for (unsigned i = 0; i < lists; i++) {
        monitors[i] = guarded_keep(sizeof **monitors);
        if (!monitors[i])
            return -ENOMEM;
        pthread_mutex_init(&monitors[i]->lock, NULL);
        monitors[i]->list = deliver_list(i);
    }
    return 0;
}

void monitor_lock(unsigned list)
{
    pthread_mutex_lock(&monitors[list]->lock);
}

bool monitor_trylock(unsigned list)
{
    return pthread_mutex_trylock(&monitors[list]->lock) == 0;
}

// Returns whether any thread has the lock.
static bool is_locked(unsigned list)
{
    return pthread_mutex_trylock(&monitors[list]->lock) == EBUSY;
}

void monitor_unlock(unsigned list)
{
    pthread_mutex_unlock(&monitors[list]->lock);
}

void monitor_hurry(bool now)
{
    atomic_store_explicit(&hurry, now, memory_order_relaxed);  // relaxed: a late effect is fine
}

// --- suspects ---

static uint64_t bit_of(uint64_t word)
{
    return 1ull << (word * 0x9e3779b97f4a7c15u >> 58);
}

static struct suspect *find_suspect(struct monitor *m, uint64_t word)
{
    if (!(m->suspect_bits & bit_of(word)))
        return NULL;
    for (unsigned i = 0; i < m->nsuspects; i++)
        if (m->suspects[i].word == word)
            return &m->suspects[i];
    return NULL;
}

static bool same(const struct suspect *a, const struct suspect *b)
{
    return memcmp(&a->head, &b->head, sizeof a->head) == 0;
}

static void report(const struct suspect *s)
{
    const char *block = block_of_word(s->word);
    if (!heap_report_make_known(s->word))
        return;
    if (block_is_freed(block, &s->head))
        heap_report_unused_head(block, &s->head, span_before(block));
    else
        heap_report_head(block, &s->head);
}

// Judges a tail that seems wrong. A piece may have been copied in any order, so the tail is read again, after
// the head, and then the head once more. If the head is unchanged, with its unique ticket, the block was live
// in between and its tail was overwritten.
static void judge_tail(uint64_t word, const struct block_head *head)
{
    const char *block = block_of_word(word);
    struct block_head now;
    struct block_info info = block_info_of(block, head);
    char tail[BLOCK_TAIL_MOST];
    if (safe_read_one(block + info.size, block_tail_bytes(info.size, info.step), tail) &&
        !block_tail_is(tail, info.size, info.step, head->canary) &&
        safe_read_one(block - BLOCK_HEAD, sizeof now, &now) && memcmp(&now, head, sizeof now) == 0 &&
        heap_report_make_known(block_name(block, head->ticket)))
        heap_report_tail(block, head, tail, NULL);
}

static void suspect(struct monitor *m, uint64_t word, const struct block_head *head)
{
    struct suspect now = {word, 0, m->passes, *head}, *s = find_suspect(m, word);
    if (s && same(s, &now)) {
        s->seen = now.seen;
        if (m->round >= s->round) {
            report(s);
            s->word = 0;
        }
        return;
    }
    if (heap_report_is_known(word) || (!s && m->nsuspects == SUSPECTS))
        return;
    now.round = deliver_ask_exact();
    m->suspect_bits |= bit_of(word);
    *(s ? s : &m->suspects[m->nsuspects++]) = now;
}

// A later block may have the same word; it is not to blame for this one.
static void acquit(struct monitor *m, uint64_t word)
{
    struct suspect *s = find_suspect(m, word);
    if (s)
        s->word = 0;
}

// Drops suspects that were valid again, whose words were removed, or that were reported.
static void forget_suspects(struct monitor *m)
{
    unsigned kept = 0;
    m->suspect_bits = 0;
    for (unsigned i = 0; i < m->nsuspects; i++)
        if (m->suspects[i].word && m->suspects[i].seen == m->passes) {
            m->suspect_bits |= bit_of(m->suspects[i].word);
            m->suspects[kept++] = m->suspects[i];
        }
    m->nsuspects = kept;
}

// --- batches ---

static void check_tail(uint64_t word, struct block_info info, const struct block_head *h, const char *tail)
{
    if (__builtin_expect(!block_tail_is(tail, info.size, info.step, h->canary), 0) &&
        !heap_report_is_known(block_name(block_of_word(word), h->ticket)))
        judge_tail(word, h);
}

// The pieces are of one size, so they end where the tails end.
static void check_far_tails(struct monitor *m)
{
    safe_read_pieces(m->at, m->nfar, sizeof *m->tails, m->tails[0], m->read);
    for (size_t i = 0; i < m->nfar; i++) {
        const struct far *f = &m->far[i];
        struct block_info info = block_info_of(block_of_word(f->word), &f->head);
        if (m->read[i])
            check_tail(f->word, info, &f->head,
                       m->tails[i] + BLOCK_TAIL_MOST - block_tail_bytes(info.size, info.step));
    }
}

// `bytes`: how many were read, from the head on.
static void check_live(struct monitor *m, uint64_t word, const struct block_head *h, size_t bytes)
{
    const char *block = block_of_word(word);
    struct block_info info = block_info_of(block, h);
    uint64_t end = info.size + block_tail_bytes(info.size, info.step);
    m->live++;
    if (info.size < bytes && BLOCK_HEAD + end <= bytes) {
        check_tail(word, info, h, (const char *)h + BLOCK_HEAD + info.size);
    } else {
        m->far[m->nfar] = (struct far){word, *h};
        m->at[m->nfar++] = block + end - BLOCK_TAIL_MOST;
    }
}

// Returns whether a freed block's head has a size and a place that we may have written. The canary of a freed
// block does not cover them (block.h). In a span nobody else writes there, and whatever the block was, is, or
// is being made into has its room and belongs to a thread. The head of a block that was never live is known
// in full: its size is the first that changes.
static bool is_plausible(const char *block, const struct block_head *h)
{
    uint64_t thread = h->place >> 48, packed = block_packed(block, h);
    size_t room = span_room(block);
    if (!room)
        return true;
    if (packed == BLOCK_FRESH ? !block_is_fresh(block, h) : !span_may_hold(room, block_unpack(packed)))
        return false;
    return h->place == PRODUCER_UNWATCHED || (thread && thread < PRODUCER_MOST && h->place == thread << 48);
}

static void check_piece(struct monitor *m, uint64_t word, const struct safe_read_piece *p)
{
    struct block_head alone;
    const struct block_head *h = (const struct block_head *)(const void *)p->at;
    const char *block = block_of_word(word);
    // A piece may reach into unmapped memory or follow such a piece; a head does not, unless its notice is on
    // the way.
    if (p->bytes < BLOCK_HEAD) {
        if (!safe_read_one(block - BLOCK_HEAD, BLOCK_HEAD, &alone))
            return;
        h = &alone;
    }
    if (m->visit)
        m->visit(m->ctx, word, h);
    else if (block_is_live(block, h))
        check_live(m, word, h, p->bytes < BLOCK_HEAD ? BLOCK_HEAD : p->bytes);
    else if (!block_is_freed(block, h) || !is_plausible(block, h))
        suspect(m, word, h);
}

static void check_batch(struct monitor *m)
{
    for (size_t i = 0; i < m->count; i++)
        m->pieces[i].from = block_of_word(m->words[i]) - BLOCK_HEAD;
    m->nfar = 0;
    for (size_t i = 0, end; i < m->count;) {
        end = i + safe_read_near(m->pieces + i, m->count - i, PIECE, m->bytes, sizeof m->bytes);
        for (; i < end; i++)
            check_piece(m, m->words[i], &m->pieces[i]);
    }
    check_far_tails(m);
    m->known += m->count;
}

static uint64_t get(_Atomic uint64_t *word)
{
    // Relaxed: block_list_pass has read the count that covers it.
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void clear(_Atomic uint64_t *word)
{
    atomic_store_explicit(word, 0, memory_order_relaxed);  // relaxed: only the monitor writes below the count
}

// Removes the notices from a node, and the words that notices are for; the other words become the next batch.
static void absorb(struct monitor *m, _Atomic uint64_t *words, size_t count)
{
    uint64_t matched = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t word = get(&words[i]);
        if (word & BLOCK_NOTICE && word_bag_add(&m->dead, word & ~BLOCK_NOTICE) == 0)
            clear(&words[i]);
    }
    m->count = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t word = get(&words[i]);
        if (!word || word & BLOCK_NOTICE)
            continue;
        if (m->dead.count && word_bag_take(&m->dead, word)) {
            clear(&words[i]);
            acquit(m, word);
            matched++;
        } else {
            m->words[m->count++] = word;
        }
    }
    matched += atomic_load_explicit(&m->matched, memory_order_relaxed);
    // Release: with the acquire in monitor_backlog; the deliverer counted these notices before.
    atomic_store_explicit(&m->matched, matched, memory_order_release);
}

static bool may_go_on(void)
{
    return !atomic_load_explicit(&hurry, memory_order_relaxed) && !producer_closed();
}

static bool visit_node(void *ctx, _Atomic uint64_t *words, size_t count)
{
    absorb(ctx, words, count);
    check_batch(ctx);
    return may_go_on();
}

static bool sweep_node(void *ctx, _Atomic uint64_t *words, size_t count)
{
    absorb(ctx, words, count);
    return may_go_on();
}

void monitor_sweep(unsigned list)
{
    checked_assert(is_locked(list));
    block_list_pass(monitors[list]->list, sweep_node, monitors[list]);
    checked_assert(monitor_valid(list));
}

uint64_t monitor_backlog(unsigned list)
{
    // Acquire, and first: with the release in absorb. Matched notices were counted before, so the difference
    // is not negative.
    uint64_t matched = atomic_load_explicit(&monitors[list]->matched, memory_order_acquire);
    return deliver_notices(list) - matched;
}

bool monitor_once(unsigned list)
{
    struct monitor *m = monitors[list];
    checked_assert(is_locked(list));
    m->round = deliver_exact_done();
    m->known = m->live = 0;
    m->passes++;
    bool whole = block_list_pass(m->list, visit_node, m);
    if (whole) {
        atomic_store_explicit(&m->seen_known, m->known, memory_order_relaxed);
        atomic_store_explicit(&m->seen_live, m->live, memory_order_relaxed);
        atomic_store_explicit(&m->seen_passes, m->passes, memory_order_relaxed);
        forget_suspects(m);
    } else {
        m->nsuspects = 0, m->suspect_bits = 0;  // a notice may lie where this pass did not get to
    }
    checked_assert(monitor_valid(list));
    return whole;
}

struct monitor_stats monitor_stats(unsigned list)
{
    struct monitor *m = monitors[list];
    return (struct monitor_stats){atomic_load_explicit(&m->seen_passes, memory_order_relaxed),
                                  atomic_load_explicit(&m->seen_known, memory_order_relaxed),
                                  atomic_load_explicit(&m->seen_live, memory_order_relaxed)};
}

bool monitor_has_suspects(unsigned list)
{
    return monitors[list]->nsuspects;
}

static bool suspects_are_valid(const struct monitor *m)
{
    for (unsigned i = 0; i < m->nsuspects; i++) {
        const struct suspect *s = &m->suspects[i];
        if (!s->word)
            continue;  // cleared or reported, and not yet dropped
        if (!(m->suspect_bits & bit_of(s->word)) || s->seen > m->passes)
            return false;
        for (unsigned k = 0; k < i; k++)
            if (m->suspects[k].word == s->word)
                return false;
    }
    return m->nsuspects <= SUSPECTS;
}

bool monitor_valid(unsigned list)
{
    const struct monitor *m = monitors[list];
    struct monitor_stats last = monitor_stats(list);
    uint64_t matched = atomic_load_explicit(&m->matched, memory_order_relaxed);  // the holder writes it
    return is_locked(list) && suspects_are_valid(m) && last.live <= last.known && last.passes <= m->passes &&
           word_bag_valid(&m->dead) && m->dead.count + matched <= deliver_notices(list);
}

static uint64_t notices_in(const struct block_list *w)
{
    uint64_t notices = 0;
    // Relaxed, all: nobody is at work.
    struct block_list_node *n = atomic_load_explicit(&w->head.next, memory_order_relaxed);
    for (; n; n = atomic_load_explicit(&n->next, memory_order_relaxed))
        for (size_t i = 0; i < atomic_load_explicit(&n->count, memory_order_relaxed); i++)
            notices += !!(get(&n->words[i]) & BLOCK_NOTICE);
    return notices;
}

bool monitor_all_valid(void)
{
    bool valid = deliver_valid();
    for (unsigned i = 0; i < deliver_lists(); i++) {
        const struct monitor *m = monitors[i];
        valid = valid && monitor_valid(i) && block_list_valid(m->list);
        // After producer_close words may have been lost.
        valid = valid && (producer_closed() || m->dead.count + notices_in(m->list) == monitor_backlog(i));
    }
    return valid;
}

// A visit is never stopped by monitor_hurry.
static bool show_node(void *ctx, _Atomic uint64_t *words, size_t count)
{
    absorb(ctx, words, count);
    check_batch(ctx);
    return true;
}

void monitor_visit(unsigned list, monitor_visitor *visit, void *ctx)
{
    struct monitor *m = monitors[list];
    checked_assert(is_locked(list) && !m->visit);
    m->visit = visit;
    m->ctx = ctx;
    block_list_pass(m->list, show_node, m);
    m->visit = NULL;
}

// --- all at once ---

static bool patient_lock(bool (*trylock)(unsigned), unsigned list)
{
    struct timespec t = {.tv_nsec = 50000};
    for (int i = 0; i < PATIENCE_MS * 20; i++) {
        if (trylock(list))
            return true;
        cancel_hold();
        nanosleep(&t, NULL);
        cancel_release();
    }
    return false;
}

bool monitor_await_lock(unsigned list)
{
    monitor_hurry(true);
    bool got = patient_lock(monitor_trylock, list);
    monitor_hurry(false);
    return got;
}

static bool trylock_deliverer(unsigned unused)
{
    return deliver_trylock();
}

static bool round_now(void)
{
    if (!patient_lock(trylock_deliverer, 0))
        return false;
    deliver_ask_exact();
    deliver_round(true);
    deliver_unlock();
    return true;
}

static bool monitor_list_now(unsigned list)
{
    bool done = round_now();
    if (!done || !patient_lock(monitor_trylock, list))
        return false;
    // Up to three passes while something is unresolved: a notice can lie behind its word, and a suspect must
    // be seen twice.
    for (int i = 0; i < 3 && done; i++) {
        monitor_hurry(false);
        monitors[list]->list->unsorted = true;
        monitor_once(list);
        monitors[list]->list->unsorted = false;
        if (!monitors[list]->nsuspects && !monitors[list]->dead.count)
            break;
        // Not while holding the list's lock: round_now takes the deliverer's, which has the lower rank.
        monitor_unlock(list);
        done = round_now() && patient_lock(monitor_trylock, list);
    }
    monitor_hurry(false);
    if (done)
        monitor_unlock(list);
    return done;
}

bool monitor_all_now(void)
{
    bool all = true;
    for (unsigned i = 0; i < deliver_lists(); i++) {
        monitor_hurry(true);
        all &= monitor_list_now(i);
    }
    return all;
}
