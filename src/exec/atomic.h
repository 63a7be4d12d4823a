// SPDX-License-Identifier: MIT
// atom and red. Internal to src/exec.
#ifndef MOAT_EXEC_ATOMIC_H
#define MOAT_EXEC_ATOMIC_H

#include "exec/warp.h"
#include "ptx/op.h"

// d: old value, a: address, b and c: operands; flags: those of an access (access.h); e: operation and type.
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
    ATOMIC_GLOBAL = 1 << 17,     // in global memory: sums of f32 flush subnormals, sums of f64 propagate NaNs
};

exec_fn *atomic_fn(enum atomic_op op, enum ptx_type type);  // the function that executes the combination
exec_fn atomic_fence;

// Returns whether i, which may be any instruction, is one of these.
bool atomic_is(const struct exec_insn *i);

// For use outside instructions; `what` is encoded as in e. atomic_log returns log2 of an element's bytes;
// atomic_apply performs the operation on an element in host memory.
unsigned atomic_log(uint32_t what);
void atomic_apply(char *at, uint32_t what, const void *operand);

// Returns the operation that the statement's modifiers name (decode_mem.c).
struct decode;
enum atomic_op decode_atomic_op(struct decode *d);

// Returns whether the combination exists.
bool atomic_knows(enum atomic_op op, enum ptx_type type);

#endif
