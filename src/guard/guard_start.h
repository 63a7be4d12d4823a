// SPDX-License-Identifier: MIT
#ifndef MOAT_GUARD_GUARD_START_H
#define MOAT_GUARD_GUARD_START_H

// Starts the guard, at the first call of the driver API in a process; later calls return at once.
void guard_start(void);

#endif
