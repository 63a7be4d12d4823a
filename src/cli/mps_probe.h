// SPDX-License-Identifier: MIT
// Whether the MPS server takes a new client: a process of its own makes a context and ends.
#ifndef MOAT_CLI_MPS_PROBE_H
#define MOAT_CLI_MPS_PROBE_H

#include <stddef.h>

enum mps_probe {
    MPS_ACCEPTS,
    MPS_REFUSES,  // the device is unavailable or in error, as after a client whose kernel was endless
    MPS_FULL,     // it has as many clients as it may have
    MPS_UNKNOWN,  // neither can be said; why has a sentence
};

// driver: a path, or NULL for the machine's.
enum mps_probe mps_probe(const char *driver, char *why, size_t size);

#endif
