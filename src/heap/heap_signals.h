// SPDX-License-Identifier: MIT
// On request only (--heap-signals): a handler of ours for SIGSEGV, SIGBUS and SIGABRT, in front of the
// program's own, checks the heap once more, because an overflow is often followed by such a signal before the
// monitor gets there. Then what the program has set for the signal happens: its handler is called, or the
// process ends by the signal, with the same core dump. The program that queries its handlers
// gets what it has set.
#ifndef MOAT_HEAP_SIGNALS_H
#define MOAT_HEAP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

// `look` checks the heap of a process that may go on, `end` that of one that ends by the signal.
void heap_signals_start(void (*look)(void), void (*end)(void));

// Returns whether the program's action for this signal is kept here and our handler is in its place.
bool heap_signals_has(int sig);
// sigaction for the program.
int heap_signals_action(int sig, const struct sigaction *act, struct sigaction *old);

#endif
