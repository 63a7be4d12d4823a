// SPDX-License-Identifier: MIT
// What a fenced process says of itself in the folder of a share (--share-dir, mps/client_file.h).
#ifndef MOAT_FENCE_FENCE_CLIENT_H
#define MOAT_FENCE_FENCE_CLIENT_H

void fence_client_start(void);
void fence_client_after_fork(void);
// Writes the file if a number in it has changed.
void fence_client_write(void);

#endif
