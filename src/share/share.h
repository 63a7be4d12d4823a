// SPDX-License-Identifier: MIT
// Shares buffers for which the driver's cuIpcGetMemHandle does not work: mapped ones, and those between
// canaries. The handle that the program gets names this process and an offer; whoever opens it under moat
// asks for that over a local socket.
//
//   share_offer ── handle ──▶ the program's own way ──▶ another process: share_ask
//   a thread, from the first offer on  ◀──── socket ────┘
//
// Only processes of the same user or of root are answered, and only if they know the key in the handle.
#ifndef MOAT_SHARE_SHARE_H
#define MOAT_SHARE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

enum { SHARE_MORE = 252 };  // a message has at most 253 descriptors

struct share_memory {
    uint64_t offset, size;  // of the buffer, in the memory of the descriptors or of the driver's handle
    uint64_t bytes;         // of that memory; 0: not known
    int fd;                 // for cuMemImportFromShareableHandle; -1: use `handle` with cuIpcOpenMemHandle
    CUipcMemHandle handle;
    // Memory in several adjacent pieces has a descriptor for each; these follow fd, with the bytes of each.
    unsigned more;
    int fds[SHARE_MORE];
    uint64_t parts[SHARE_MORE];
    // If not NULL, called for each request to fill in all the rest, so that no descriptor is kept open.
    // Returns false if that fails.
    bool (*on_request)(uint64_t buffer, uint64_t size, struct share_memory *memory);
};
void share_close_fds(const struct share_memory *memory);

// Offers a buffer. *handle is that of the existing offer for this address, or of a new one. The descriptors
// are taken over in any case. Returns 0, -ENOMEM, or another negative errno.
int share_offer(uint64_t buffer, const struct share_memory *memory, CUipcMemHandle *handle);
bool share_offered(uint64_t buffer, CUipcMemHandle *handle);
// Withdraws the offer of a buffer that is freed. Cheap as long as there was no offer.
void share_withdraw(uint64_t buffer);
void share_withdraw_within(uint64_t base, uint64_t bytes);  // of all buffers that start in the range
void share_after_fork(void);

// Returns whether a handle was made by moat, and whether this process made it.
bool share_is_ours(const CUipcMemHandle *handle);
bool share_is_own(const CUipcMemHandle *handle);
// Asks the process that made the handle. Returns 0, or a negative errno if the offer or the process no longer
// exists. The caller owns the descriptors.
int share_ask(const CUipcMemHandle *handle, struct share_memory *memory);

#endif
