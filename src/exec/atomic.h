// SPDX-License-Identifier: MIT
// atom and red. Internal to src/exec.
#ifndef MOAT_EXEC_ATOMIC_H
#define MOAT_EXEC_ATOMIC_H

#include "exec/warp.h"
#include "ptx/op.h"

// d: old value, a: address, b and c: operands; flags as of an access (access.h); e: the operation and its type.
enum atomic_op {
    ATOMIC_ADD,
    ATOMIC_INC,
    ATOMIC_DEC,
    ATOMIC_MIN,
    ATOMIC_MAX,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_EXCH,
    ATOMIC_CAS,
};
enum {
    ATOMIC_TYPE_SHIFT = 8,       // enum ptx_type
    ATOMIC_NO_RESULT = 1 << 16,  // red
    ATOMIC_GLOBAL = 1 << 17,     // where sums of f32 flush subnormal numbers, and those of f64 keep NaNs
};

exec_fn *atomic_fn(enum atomic_op op, enum ptx_type type);  // what executes such a combination
exec_fn atomic_fence;

// Whether the instruction, which may be any, is one of these.
bool atomic_is(const struct exec_insn *i);

// Outside instructions: `what` as in e. Of an element its log2 of bytes, and the operation on one in the host's memory.
unsigned atomic_log(uint32_t what);
void atomic_apply(char *at, uint32_t what, const void *operand);

// What the statement's modifiers say (decode_mem.c).
struct decode;
enum atomic_op decode_atomic_op(struct decode *d);

// Whether there is such a combination.
bool atomic_knows(enum atomic_op op, enum ptx_type type);

#endif
