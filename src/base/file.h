// SPDX-License-Identifier: MIT
// Writes files inside somebody else's process.
#ifndef MOAT_BASE_FILE_H
#define MOAT_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

// Writes all parts; the array is modified. Returns 0, or a negative code after which some bytes may have been
// written.
int file_write_all(int fd, struct iovec *parts, int n);

// Returns whether a file may grow to so many bytes. A write beyond RLIMIT_FSIZE not only fails but raises a
// signal that ends the process.
bool file_may_have(uint64_t bytes);

#endif
