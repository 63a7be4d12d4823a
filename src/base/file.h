// SPDX-License-Identifier: MIT
// Writing files inside somebody else's process.
#ifndef MOAT_BASE_FILE_H
#define MOAT_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

// Writes all parts, which it changes. 0, or a negative code: some of them may have been written.
int file_write_all(int fd, struct iovec *parts, int n);

// Whether a file may have so many bytes. Beyond RLIMIT_FSIZE a process gets not only an error but a signal that ends it.
bool file_may_have(uint64_t bytes);

#endif
