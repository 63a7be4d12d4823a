// SPDX-License-Identifier: MIT
// A thread of moat's own in the program's process: it takes none of the program's signals, and nobody waits for it.
#ifndef MOAT_CORE_OWN_THREAD_H
#define MOAT_CORE_OWN_THREAD_H

#include <stdbool.h>

bool own_thread(void *(*run)(void *));

#endif
