// SPDX-License-Identifier: MIT
// Answers about launches, remembered: what is known of a launch is known of one with the same shape and
// parameters too, as long as nothing else has changed that the answer depends on. Most launches of a program
// are like earlier ones, and buffers change less often than kernels are launched.
//
// The caller names what the answer depends on by a version: a number that is loaded, with acquire, before
// anything is looked up, and that grows, with release, after each change. An answer that is kept under a
// version was found after that version's changes, so a launch that follows a change, on whatever thread, does
// not get the answer from before it.
//
// The table has a fixed size and belongs to all threads; an answer makes room for a later one. Nothing waits
// and nothing is allocated. A launch is remembered when it is made for the second time, so that those that
// are made once cost little and take no other's place. After some that were new in a row most are not looked
// at, until one comes again.
#ifndef MOAT_LAUNCH_LAUNCH_MEMO_H
#define MOAT_LAUNCH_LAUNCH_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct launch_call;

enum {
    LAUNCH_MEMO_ENTRIES = 4096,  // a power of two
    LAUNCH_MEMO_ANSWER = 13,     // words of an answer, at most
    LAUNCH_MEMO_BYTES = 160,     // of parameters; launches with more are not remembered
    LAUNCH_MEMO_HEAD = 6,        // words of a key before the parameters
};

// What is asked: filled in by launch_memo_ask.
struct launch_memo_key {
    uint32_t words;  // of `word`; 0: the launch is not remembered
    uint64_t hash;   // of all but the version
    uint64_t word[LAUNCH_MEMO_HEAD + LAUNCH_MEMO_BYTES / 8];
};

// what: whom the answer is about and for; it must not be freed as long as the process lives. bytes: the
// program's parameters.
void launch_memo_ask(struct launch_memo_key *key, const void *what, uint64_t version,
                     const struct launch_call *l, const void *bytes, size_t size);

// Copies the answer, LAUNCH_MEMO_ANSWER words at most, and returns how many there are; 0: it is not known.
uint32_t launch_memo_find(const struct launch_memo_key *key, uint64_t *answer);
// Keeps an answer of one word or more, if such a launch was asked for before.
void launch_memo_keep(const struct launch_memo_key *key, const uint64_t *answer, uint32_t words);

#endif
