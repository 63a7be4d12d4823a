// SPDX-License-Identifier: MIT
// A thread of moat's own in the program's process. It is detached and has all signals blocked. Returns false
// if the thread could not be created.
#ifndef MOAT_CORE_OWN_THREAD_H
#define MOAT_CORE_OWN_THREAD_H

#include <stdbool.h>

bool own_thread(void *(*run)(void *));

#endif
