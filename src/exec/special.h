// SPDX-License-Identifier: MIT
// Values that are not in memory or registers: special registers, addresses in the frame.
// Internal to src/exec.
#ifndef MOAT_EXEC_SPECIAL_H
#define MOAT_EXEC_SPECIAL_H

#include "exec/warp.h"

enum {
    SPECIAL_WIDE = 1,
    SPECIAL_NARROW = 2
};  // the register (isspacep, alloca: the operand) has 64 or 16 bits

// Returns the function that reads a component of a special register; lo: enum ptx_sreg, hi: component.
exec_fn *special_fn(uint32_t id, uint32_t component, uint32_t flags);
exec_fn special_predicate;   // lo: enum ptx_sreg of one bit
exec_fn special_local;       // imm: offset in the frame's local memory
exec_fn special_param;       // imm: offset in the kernel's parameters
exec_fn special_param_cvta;  // a: an address in them, of which a compiler may have kept only 32 bits
exec_fn special_shared;      // imm: offset in the block's shared memory
exec_fn special_dynamic;     // imm: offset in dynamic shared memory
exec_fn special_isspacep;    // d, a, lo: enum ptx_space
exec_fn special_alloca;      // d, a: bytes, imm: alignment
exec_fn special_stacksave;
exec_fn special_stackrestore;

#endif
