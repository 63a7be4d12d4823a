// SPDX-License-Identifier: MIT
// Memory that a program shares by cuIpcGetMemHandle and that lies elsewhere than the driver's handles can say: in pages of its
// own, or between canaries. The handle that the program gets names this process and an offer; whoever opens it under moat asks
// for that over a local socket.
//
//   share_offer ── handle ──▶ the program's own way ──▶ another process: share_ask
//   a thread, from the first offer on  ◀──── socket ────┘
//
// Only processes of the same user, and of root, are answered, and only if they know the key in the handle.
#ifndef MOAT_SHARE_SHARE_H
#define MOAT_SHARE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

enum { SHARE_MORE = 252 };  // a message has 253 descriptors at most

struct share_memory {
    uint64_t offset, size;  // of the buffer, in what the descriptor or the driver's handle stands for
    uint64_t bytes;         // of that; 0: not known
    int fd;                 // for cuMemImportFromShareableHandle; -1: the handle is for cuIpcOpenMemHandle
    CUipcMemHandle handle;
    // What lies in several pieces, one behind the other, has a descriptor for each, and their bytes: these follow fd's.
    unsigned more;
    int fds[SHARE_MORE];
    uint64_t parts[SHARE_MORE];
    // Not NULL: fills in all the rest for the buffer of that size whenever somebody asks for it, so that no descriptor is kept. False: it
    // cannot.
    bool (*later)(uint64_t buffer, uint64_t size, struct share_memory *memory);
};
void share_close_fds(const struct share_memory *memory);

// What the buffer at this address is shared as: the handle of the offer that there is, or of a new one. The descriptors are taken
// over, in any case. 0, -ENOMEM, or another error of the system's.
int share_offer(uint64_t buffer, const struct share_memory *memory, CUipcMemHandle *handle);
bool share_offered(uint64_t buffer, CUipcMemHandle *handle);
// The buffer is freed. Cheap as long as there is no offer.
void share_withdraw(uint64_t buffer);
void share_withdraw_within(uint64_t base, uint64_t bytes);  // all buffers that start there
void share_after_fork(void);

// Whether a handle is such a one, and whether this process made it.
bool share_is_ours(const CUipcMemHandle *handle);
bool share_is_own(const CUipcMemHandle *handle);
// 0, or an error: the offer, or the process, is no more. The descriptors are the caller's.
int share_ask(const CUipcMemHandle *handle, struct share_memory *memory);

#endif
