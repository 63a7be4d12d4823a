/* SPDX-License-Identifier: MIT */
/* src/heap/ring.c: a producer that never waits, a consumer, rings of 1, 2, 4 and 8 slots. In all
 * interleavings words come out once and in order, none is lost, and no ring is used after the consumer
 * freed it. A statement is one read or write of shared memory; the order is the one that acquire and
 * release in the C code guarantee. */
#define WORDS 6
#define RINGS 4

byte size[RINGS] = 1;
byte put[RINGS], taken[RINGS], next[RINGS];  /* next: 0 none, else its number + 1 */
byte slots[RINGS * 8];
bool freed[RINGS];
byte expected = 1;

active proctype producer()
{
    byte in = 0, word = 1, seen = 0;
    do
    :: word <= WORDS ->
        if
        :: put[in] - seen >= size[in] -> seen = taken[in]
        :: else
        fi;
        if
        :: put[in] - seen >= size[in] ->
            assert(in + 1 < RINGS);
            size[in + 1] = 2 * size[in];
            next[in] = in + 2;
            in = in + 1;
            seen = 0
        :: else
        fi;
        assert(!freed[in]);
        slots[in * 8 + put[in] % size[in]] = word;
        put[in] = put[in] + 1;
        word++
    :: else -> break
    od
}

active proctype consumer()
{
    byte out = 0, successor, count, at;
    do
    :: expected <= WORDS ->
        assert(!freed[out]);
        successor = next[out];
        count = put[out];
        at = taken[out];
        do
        :: at < count ->
            assert(slots[out * 8 + at % size[out]] == expected);
            expected++;
            at++
        :: at < count -> break
        :: at == count -> break
        od;
        taken[out] = at;
        if
        :: at == count && successor -> freed[out] = true; out = successor - 1
        :: else
        fi
    :: else -> break
    od
}
