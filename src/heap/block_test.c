// SPDX-License-Identifier: MIT
// Heads, tails, and small parts without a test file of their own: word bags, quarantine, safe reads.
#include "heap/block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/cycle.h"
#include "heap/safe_read.h"
#include "heap/heap_quarantine.h"
#include "heap/thread_cache.h"
#include "heap/word_bag.h"

enum { SIZE = 100 };

static _Alignas(16) char memory[BLOCK_HEAD + SIZE + BLOCK_TAIL + 16];
static char *const block = memory + BLOCK_HEAD;

static void make_live(void)
{
    block_make_live(block, (struct block_info){SIZE, 5, BLOCK_CALLOC, 0}, 77, block_ticket(5, 1234, 42));
}

// Arithmetic on a word next to the block must change it: base/canary_shape.h.
static void good_canaries_have_the_shape(void **state)
{
    make_live();
    uint64_t canary = block_head_of(block)->canary, tail = block_tail(block, SIZE);
    assert_int_equal(canary, canary_shape(canary));
    assert_int_equal(tail, canary_shape(tail));
    assert_int_equal(heap_key.word[HEAP_KEY_FILLER], canary_shape(heap_key.word[HEAP_KEY_FILLER]));
}

static void good_head_says_what_was_put_in(void **state)
{
    make_live();
    struct block_head *h = block_head_of(block);
    assert_true(block_is_live(block, h));
    assert_false(block_is_freed(block, h));
    assert_int_equal(block_info_of(block, h).size, SIZE);
    assert_int_equal(block_info_of(block, h).lead_log2, 5);
    assert_int_equal(block_info_of(block, h).kind, BLOCK_CALLOC);
    assert_int_equal(block_made_at(h->ticket), 1234);
    assert_true(block_tail_intact(block, SIZE, 0, h->canary));
    assert_ptr_equal(block_of_word(block_word(block, h->ticket)), block);
    assert_int_not_equal(block_word(block, h->ticket), block_word(block, block_ticket(6, 1234, 42)));
    assert_int_equal(block_word(block, h->ticket), block_word(block, block_ticket(5, 99, 43)));
    assert_int_equal(block_generation_of_word(block_word(block, h->ticket)), 5);
    assert_int_not_equal(block[SIZE], 0);
    block_mark_freed(block, 4321);
    assert_true(block_is_freed(block, h));
    assert_false(block_is_live(block, h));
    assert_int_equal(block_freed_at(block, h), 4321);
}

// A freed block is made live again: after any prefix of the stores, its head is valid and says that it is
// freed.
static void good_freed_until_dressed(void **state)
{
    make_live();
    struct block_head *h = block_head_of(block), old = *h;
    block_mark_freed(block, 7);
    uint64_t freed = h->canary;
    block_make_live(block, (struct block_info){50, 5, BLOCK_MALLOC, 0}, 78, block_ticket(5, 999, 43));
    struct block_head now = *h;
    assert_true(block_is_live(block, &now));
    for (int parts = 0; parts < 8; parts++) {
        struct block_head between = {parts & 1 ? now.size : old.size, parts & 2 ? now.place : old.place,
                                     parts & 4 ? now.ticket : old.ticket, freed};
        assert_true(block_is_freed(block, &between));
        assert_false(block_is_live(block, &between));
    }
}

// A block is resized in place: after any prefix of the stores, its head is valid and says that it is freed.
static void good_freed_until_resized(void **state)
{
    make_live();
    uint64_t address = (uint64_t)(uintptr_t)block;
    struct block_head *h = block_head_of(block), old = *h;
    struct block_info to = {60, 5, BLOCK_REALLOC, 3};
    block_change(block, old, block_constant(address, old.place),
                 block_pack(block_info_of(block, h)) ^ block_pack(to), 60, false, 999, 43);
    struct block_head now = *h;
    assert_true(block_is_live(block, &now));
    assert_false(block_is_freed(block, &now) || block_is_resized(block, &now));
    assert_true(block_tail_intact(block, 60, 3, now.canary));
    assert_int_equal(block_info_of(block, &now).size, 60);
    assert_int_equal(block_info_of(block, &now).lead_log2, 5);
    assert_int_equal(block_info_of(block, &now).kind, BLOCK_REALLOC);
    assert_int_equal(block_info_of(block, &now).step, 3);
    assert_int_equal(now.place, old.place);
    assert_int_equal(now.ticket, block_ticket(5, 999, 43));
    for (int parts = 0; parts < 4; parts++) {
        struct block_head between = {parts & 1 ? now.size : old.size, now.place,
                                     parts & 2 ? now.ticket : old.ticket,
                                     block_resized_canary(address) ^ 999};
        assert_true(block_is_freed(block, &between) && block_is_resized(block, &between));
        assert_false(block_is_live(block, &between));
        assert_int_equal(block_freed_at(block, &between), 999);
        for (int bit = BLOCK_SITE_BITS; bit < 64; bit++) {
            between.canary ^= 1ull << bit;
            assert_false(block_is_live(block, &between) || block_is_freed(block, &between));
            between.canary ^= 1ull << bit;
        }
    }
}

static void good_queue_of_waiting_blocks(void **state)
{
    static struct heap_quarantine w;
    struct heap_quarantine_entry e;
    uint64_t next = 0;
    for (uint64_t i = 0; i < 5000; i++) {
        struct heap_quarantine_entry put = {(char *)(uintptr_t)(i + 1), i % 700, 0};
        while (heap_quarantine_evict(&w, 100000, heap_quarantine_cost(put.packed), &e)) {
            assert_int_equal((uintptr_t)e.block, next + 1);
            assert_int_equal(e.packed, next % 700);
            next++;
        }
        assert_int_equal(heap_quarantine_add(&w, put), 0);
        assert_true(w.bytes <= 100000 && w.put - w.taken <= HEAP_QUARANTINE_BLOCKS);
    }
    assert_true(next > 4000);
    assert_true(heap_quarantine_entry_at(&w, next, &e) && heap_quarantine_is_queued(&w, next));
    assert_int_equal((uintptr_t)e.block, next + 1);
    assert_false(heap_quarantine_entry_at(&w, 5000, &e));
    while (heap_quarantine_evict(&w, 0, 1, &e))
        next++;
    assert_int_equal(next, 5000);
    assert_int_equal(w.bytes, 0);
    assert_false(heap_quarantine_is_queued(&w, 4999));
}

static uint64_t length(const struct heap_quarantine_lane *l)
{
    return (uint64_t)(l->end - l->first);
}

static struct heap_quarantine_entry waiting(uint64_t number)
{
    return (struct heap_quarantine_entry){(char *)(uintptr_t)number, 64, ~number};
}

// A new entry replaces the oldest; each bin has a lane of its own.
static void good_lanes_of_waiting_blocks(void **state)
{
    static struct heap_quarantine w;
    enum { LIMIT = 256 << 10 };
    struct heap_quarantine_entry e;
    struct heap_quarantine_lane *lanes = heap_quarantine_lanes(&w, LIMIT), *l = &lanes[4];
    uint64_t held = 0, room = length(l);
    assert_true(lanes && lanes == heap_quarantine_lanes(&w, LIMIT));
    for (size_t i = 0; i < HEAP_QUARANTINE_LANES; i++) {
        assert_true(length(&lanes[i]) >= 1 && length(&lanes[i]) <= HEAP_QUARANTINE_LANE);
        assert_ptr_equal(lanes[i].first, i ? lanes[i - 1].end : lanes[0].first);
        held += length(&lanes[i]) * heap_quarantine_cost(i * 16);
    }
    assert_true(held > LIMIT / 2 && held < 2 * LIMIT);
    for (uint64_t i = 1; i <= 1000; i++) {
        struct heap_quarantine_slot *next = l->next;
        assert_int_equal(heap_quarantine_entry_in(next, &e), i > room);
        uint64_t old = (uintptr_t)heap_quarantine_replace_oldest(l, waiting(i)).block;
        assert_int_equal(old, i <= room ? 0 : i - room);
        // The replaced entry is gone, the youngest is there, and so are all others.
        assert_false(old && heap_quarantine_is_in_slot(next, &e));
        assert_true(heap_quarantine_entry_in(next, &e) && heap_quarantine_is_in_slot(next, &e));
        assert_int_equal((uintptr_t)e.block, i);
        assert_true(e.packed == 64 && e.sum == ~i);
        assert_int_equal(heap_quarantine_entry_in(l->next, &e), i >= room);
    }
    heap_quarantine_forget(&w);
    for (uint64_t i = 0; i < room; i++)
        assert_null(heap_quarantine_replace_oldest(l, waiting(0)).block);
}

// A change of any part of an entry is detected.
static void bad_slot_written_anew(void **state)
{
    static struct heap_quarantine_slot s;
    struct heap_quarantine_entry e, one = waiting(1);
    assert_false(heap_quarantine_entry_in(&s, &e));
    heap_quarantine_write_slot(&s, one);
    assert_true(heap_quarantine_entry_in(&s, &e) && heap_quarantine_is_in_slot(&s, &e));
    heap_quarantine_write_slot(&s, (struct heap_quarantine_entry){one.block + 16, one.packed, one.sum});
    assert_false(heap_quarantine_is_in_slot(&s, &e));
    heap_quarantine_write_slot(&s, (struct heap_quarantine_entry){one.block, one.packed + 1, one.sum});
    assert_false(heap_quarantine_is_in_slot(&s, &e));
    heap_quarantine_write_slot(&s, (struct heap_quarantine_entry){one.block, one.packed, one.sum + 1});
    assert_false(heap_quarantine_is_in_slot(&s, &e));
}

// A change of head or tail of a freed block changes the sum, even if all its bytes are overwritten with the
// same value.
static void bad_sum(void **state)
{
    make_live();
    block_mark_freed(block, 5);
    struct block_head *h = block_head_of(block);
    uint64_t sum = block_sum(h, block_tail(block, SIZE));
    for (int at = -BLOCK_HEAD; at < SIZE + BLOCK_TAIL; at = at == -1 ? SIZE : at + 1)
        for (int bit = 0; bit < 8; bit++) {
            block[at] ^= (char)(1 << bit);
            assert_true(block_sum(h, block_tail(block, SIZE)) != sum);
            block[at] ^= (char)(1 << bit);
        }
    for (int first = -BLOCK_HEAD; first < 0; first += 8)
        for (int value = 0; value < 256; value++) {
            struct block_head changed;
            memset(block + first, value, (size_t)-first);
            changed = *h;
            assert_true(block_sum(&changed, block_tail(block, SIZE)) != sum);
            make_live();
            block_mark_freed(block, 5);
        }
}

// A change of any bit of the head or the tail is detected.
static void bad_any_bit(void **state)
{
    for (int at = -BLOCK_HEAD; at < SIZE + BLOCK_TAIL; at++) {
        if (at == 0)
            at = SIZE;
        for (int bit = 0; bit < 8; bit++) {
            make_live();
            block[at] ^= (char)(1 << bit);
            struct block_head *h = block_head_of(block);
            if (at < 0)
                assert_false(block_is_live(block, h) || block_is_freed(block, h));
            else
                assert_false(block_tail_intact(block, SIZE, 0, h->canary));
        }
    }
}

enum { WIDE_ROOM = BLOCK_HEAD + BLOCK_WIDEST + BLOCK_TAIL };
static _Alignas(16) char wide_memory[WIDE_ROOM];

// All bytes from the end of a small block to the end of its bin's room are canary, and none that is the
// program's or the next block's is written or looked at.
static void good_wide_tail(void **state)
{
    char *const p = wide_memory + BLOCK_HEAD;
    for (size_t size = 0; size <= BLOCK_WIDEST; size += 1 + size / 50) {
        size_t end = thread_cache_room(size) + BLOCK_TAIL;
        memset(wide_memory, 'x', sizeof wide_memory);
        block_make_live(p, (struct block_info){size, 5, BLOCK_MALLOC, 0}, 77, block_ticket(5, 6, 7));
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 'x');
        for (size_t i = end; i < WIDE_ROOM - BLOCK_HEAD; i++)
            assert_int_equal(p[i], 'x');
        for (size_t i = size; i < end; i++)
            assert_int_equal((unsigned char)p[i] & 0xc1, 0x80);
        assert_int_equal(size + block_tail_bytes(size, 0), end);
        assert_int_equal(size + block_tail_bytes(size, 1), size + BLOCK_TAIL);
        assert_true(block_tail_bytes(size, 0) < BLOCK_TAIL_MOST);
        memset(p, 'y', size);
        memset(p + end, 'y', WIDE_ROOM - BLOCK_HEAD - end);
        assert_true(block_tail_intact(p, size, 0, block_head_of(p)->canary));
    }
}

static void bad_wide_tail(void **state)
{
    char *const p = wide_memory + BLOCK_HEAD;
    struct block_head *h = block_head_of(p);
    for (size_t size = 0; size <= BLOCK_WIDEST; size += 1 + size / 50) {
        size_t end = thread_cache_room(size) + BLOCK_TAIL;
        for (size_t at = size; at < end; at++)
            for (int bit = 0; bit < 8; bit++) {
                block_make_live_as(p, (struct block_info){size, 5, BLOCK_MALLOC, 0}, 77,
                                   block_ticket(5, 6, 7), true);
                assert_true(block_tail_intact(p, size, 0, h->canary));
                p[at] ^= (char)(1 << bit);
                assert_false(block_tail_intact(p, size, 0, h->canary));
                assert_int_equal(block_tail_intact(p, size, 1, h->canary), at >= size + BLOCK_TAIL);
            }
    }
}

// A block that shrinks or grows in place has its whole tail behind its new size.
static void good_wide_tail_moves(void **state)
{
    char *const p = wide_memory + BLOCK_HEAD;
    uint64_t address = (uint64_t)(uintptr_t)p;
    for (size_t size = 41; size <= 56; size++) {
        struct block_info to = {size, 5, BLOCK_REALLOC, 0};
        block_make_live(p, (struct block_info){48, 5, BLOCK_MALLOC, 0}, 77, block_ticket(5, 6, 7));
        memset(p, 'x', 48);
        struct block_head old = *block_head_of(p);
        block_change(p, old, block_constant(address, old.place), block_packed(p, &old) ^ block_pack(to), size,
                     true, 999, 43);
        assert_true(block_tail_intact(p, size, 0, block_head_of(p)->canary));
        for (size_t i = 0; i < size && i < 48; i++)
            assert_int_equal(p[i], 'x');
    }
}

static void good_bag(void **state)
{
    enum { NUMBERS = 500 };
    struct word_bag b = {0};
    int counts[NUMBERS + 1] = {0};
    uint32_t seed = 3;
    size_t total = 0;
    for (int i = 0; i < 200000; i++) {
        seed = seed * 1664525 + 1013904223;
        uint64_t word = 1 + (seed >> 12) % NUMBERS;
        if (seed >> 31) {
            assert_int_equal(word_bag_add(&b, word << 33), 0);
            counts[word]++;
            total++;
        } else {
            assert_int_equal(word_bag_take(&b, word << 33), counts[word] > 0);
            total -= counts[word] > 0;
            counts[word] -= counts[word] > 0;
        }
        assert_int_equal(word_bag_has(&b, word << 33), counts[word] > 0);
        assert_int_equal(b.count, total);
    }
    word_bag_free(&b);
}

static void bad_write_to_waiting_block(void **state)
{
    for (uint64_t size = 1; size < 3000; size += size < 20 ? 1 : 97) {
        unsigned char *p = malloc(size);
        heap_quarantine_fill(p, size);
        assert_int_equal(heap_quarantine_first_change(p, size), -1);
        assert_true(heap_quarantine_is_filled(p, size));
        for (uint64_t at = 0; at < size; at += size < 20 ? 1 : 13) {
            bool filled = at < HEAP_QUARANTINE_FILLED || at >= size - HEAP_QUARANTINE_FILLED ||
                          size <= 2 * HEAP_QUARANTINE_FILLED;
            if (!filled)
                continue;
            p[at] ^= 1;
            assert_int_equal(heap_quarantine_first_change(p, size), at);
            assert_false(heap_quarantine_is_filled(p, size));
            unsigned char copy[HEAP_QUARANTINE_COPY];
            assert_true(heap_quarantine_copy(p, size, copy));
            assert_int_equal(heap_quarantine_copied_changed(copy, size), at);
            p[at] ^= 1;
        }
        free(p);
    }
}

// Each step is larger than the one before, by half at most.
static void good_room_in_steps(void **state)
{
    assert_int_equal(block_room(0), 0);
    assert_int_equal(block_room(1), 48);
    assert_int_equal(block_room(BLOCK_LAST_STEP), 3ull << 19);
    for (unsigned step = 2; step <= BLOCK_LAST_STEP; step++) {
        assert_true(block_room(step) > block_room(step - 1));
        assert_true(block_room(step) * 2 <= block_room(step - 1) * 3);
        assert_int_equal(block_room(step) % BLOCK_ALIGN, 0);
    }
}

static void good_copy_around_holes(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p + page, page);
    const char *from[] = {p, p + page - 4, p + 8, p + page, p + 2 * page, NULL, p + 16};
    bool expected[] = {true, false, true, false, true, false, true}, read[7];
    char to[7][8];
    for (int i = 0; i < 3; i++)
        memset(p + 8 * i, 'a' + i, 8);
    memset(p + 2 * page, 'z', 8);
    assert_true(safe_read_works());
    safe_read_pieces(from, 7, 8, to[0], read);
    for (int i = 0; i < 7; i++)
        assert_int_equal(read[i], expected[i]);
    assert_int_equal(to[0][7], 'a');
    assert_int_equal(to[2][0], 'b');
    assert_int_equal(to[4][0], 'z');
    assert_int_equal(to[6][7], 'c');
    assert_false(safe_read_one(p + page, 1, to));
    munmap(p, page);
    munmap(p + 2 * page, page);
}

// Reads pieces near each other, one that lies before its predecessor, and some around a hole; the results do
// not depend on the size of the buffer.
static void good_read_what_lies_near(void **state)
{
    enum { LEAST = 64, PIECES = 9 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         to[PIECES * 1024];
    for (size_t i = 0; i < 3 * page; i++)
        p[i] = (char)(i * 7 + i / 256);
    munmap(p + page, page);
    size_t at[PIECES] = {0, 48, 300, 2000, 100, page - 100, page - 32, page + 200, 2 * page};
    for (size_t room = LEAST; room <= sizeof to; room *= 2) {
        struct safe_read_piece pieces[PIECES];
        for (int i = 0; i < PIECES; i++)
            pieces[i] = (struct safe_read_piece){p + at[i], NULL, 0};
        for (size_t done = 0, n; done < PIECES; done += n) {
            n = safe_read_near(pieces + done, PIECES - done, LEAST, to, room);
            assert_in_range(n, 1, PIECES - done);
            for (size_t i = done; i < done + n; i++) {
                size_t there = at[i] < page ? page - at[i] : at[i] < 2 * page ? 0 : page;
                assert_true(pieces[i].bytes >= (there < LEAST ? there : LEAST) && pieces[i].bytes <= there);
                assert_memory_equal(pieces[i].bytes ? pieces[i].at : "", p + at[i], pieces[i].bytes);
            }
        }
    }
    munmap(p, page);
    munmap(p + 2 * page, page);
}

static void good_quantiles(void **state)
{
    assert_int_equal(cycle_quantile(50), 0);
    for (uint64_t us = 0; us < 2000000; us += 1 + us / 3) {
        cycle_note(us * 1000);
        assert_true(cycle_quantile(100) >= us && cycle_quantile(100) <= us + us / 4);
        cycle_forget();
    }
    // Six tenths of the time in short cycles, many of them.
    for (int i = 0; i < 600; i++)
        cycle_note(1000000);
    for (int i = 0; i < 39; i++)
        cycle_note(10000000);
    cycle_note(12800000);
    assert_true(cycle_quantile(50) >= 1000 && cycle_quantile(50) < 1250);
    assert_true(cycle_quantile(70) >= 10000 && cycle_quantile(70) < 12500);
    assert_true(cycle_quantile(100) >= 12800);
    cycle_note(~UINT64_C(0));
}

int main(void)
{
    heap_key_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_canaries_have_the_shape),
        cmocka_unit_test(good_head_says_what_was_put_in),
        cmocka_unit_test(good_freed_until_dressed),
        cmocka_unit_test(good_freed_until_resized),
        cmocka_unit_test(bad_any_bit),
        cmocka_unit_test(good_wide_tail),
        cmocka_unit_test(bad_wide_tail),
        cmocka_unit_test(good_wide_tail_moves),
        cmocka_unit_test(good_bag),
        cmocka_unit_test(good_queue_of_waiting_blocks),
        cmocka_unit_test(good_lanes_of_waiting_blocks),
        cmocka_unit_test(bad_slot_written_anew),
        cmocka_unit_test(bad_sum),
        cmocka_unit_test(bad_write_to_waiting_block),
        cmocka_unit_test(good_room_in_steps),
        cmocka_unit_test(good_copy_around_holes),
        cmocka_unit_test(good_read_what_lies_near),
        cmocka_unit_test(good_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
