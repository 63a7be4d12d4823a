// SPDX-License-Identifier: MIT
// Lays the values of a launch that a person wrote (launch_text.h) out as the parameters of a kernel.
#ifndef MOAT_FLOW_LAUNCH_BIND_H
#define MOAT_FLOW_LAUNCH_BIND_H

#include "flow/launch_text.h"
#include "flow/proof.h"
#include "ptx/ptx.h"

enum { LAUNCH_BIND_PARAMS = 32764 };  // most bytes of parameters

// A buffer that a pointer among the parameters points into.
struct launch_bind_buffer {
    uint32_t at;  // byte of the pointer in the parameters
    bool sized;
    uint64_t size, into;
};

struct launch_bind {
    struct proof_launch launch;  // its params are the bytes below
    uint32_t nbuffers;
    struct launch_bind_buffer buffers[LAUNCH_TEXT_VALUES];
    _Alignas(16) char params[LAUNCH_BIND_PARAMS];
};

// Lays the values out as parameters of a kernel. Pointers get addresses that differ, are aligned to 256 bytes
// and are not 0; launch_bind_buffer_at finds what they stand for. Returns 0, or -EINVAL after a report.
int launch_bind(const struct launch_text *t, const struct ptx_module *m, const struct ptx_func *f,
                struct diag_sink *sink, struct launch_bind *out);

// Returns NULL if the bytes at `at` are no pointer to a buffer.
const struct launch_bind_buffer *launch_bind_buffer_at(const struct launch_bind *b, uint32_t at);

// Where a function's parameter `n` begins and how many bytes it takes; `at` is where the one before ends.
struct launch_bind_slot {
    uint32_t offset, size;
};
struct launch_bind_slot launch_bind_slot(const struct ptx_var *param, uint32_t at);

#endif
