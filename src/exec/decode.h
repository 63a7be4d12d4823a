// SPDX-License-Identifier: MIT
// Decodes the statements of a function into instructions. Internal to src/exec: decode.c drives, decode_*.c
// decode one kind of instruction each.
#ifndef MOAT_EXEC_DECODE_H
#define MOAT_EXEC_DECODE_H

#include <setjmp.h>

#include "base/vec.h"
#include "exec/load.h"
#include "exec/slots.h"
#include "flow/cfg.h"
#include "flow/loops.h"

struct decode_fixup {
    uint32_t insn;
    uint32_t block;
};

struct decode {
    struct load *load;
    struct exec_func *func;
    struct exec_module *module;
    const struct ptx_func *f;
    jmp_buf fail;
    struct cfg *cfg;
    struct dom *dom;
    struct loops *loops;
    struct regs *regs;
    struct live *live;
    uint32_t *order, norder;
    uint32_t *slot;       // indexed like regs
    uint32_t *block_at;   // per block: index of its first instruction
    uint32_t *block_loc;  // per block: index in load->locs of the .loc that comes next in the text
    bool *join;           // per block: starts with a control_join
    uint8_t *loop_fuel;   // per loop header: fuel that each iteration takes; see loop_cost
    VEC(struct exec_insn) code;
    VEC(uint32_t) pos;
    VEC(uint32_t) loc;
    VEC(struct decode_fixup) fixups;
    VEC(struct exec_const) consts;
    VEC(struct exec_func *) callees;
    VEC(struct control_table *) tables;
    uint32_t *const_table, const_mask;  // open addressing hash table: index in consts + 1
    uint32_t regs_size;
    uint32_t args_at;  // frame offset of arguments passed in registers, for all calls; see decode_control.c
    uint32_t temps[SLOTS_CLASSES][8];
    unsigned ntemps[SLOTS_CLASSES];  // used by the current statement
    uint32_t stmt_pos, stmt_loc;
    uint32_t block;  // the block being decoded
    const struct ptx_stmt *stmt;
};

// Reports an error at the current statement and makes decode_func return err.
_Noreturn void decode_fail(struct decode *d, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void decode_unsupported(struct decode *d);  // the report names the instruction

struct exec_insn *decode_emit(struct decode *d, exec_fn *fn);  // valid until the next one
void decode_jump(struct decode *d, uint32_t block);            // sets the last instruction's target
#define DECODE_RETURN UINT32_MAX                               // as block: the end of the function

uint32_t decode_const(struct decode *d, unsigned bits, uint64_t value);  // returns a slot
// Returns a slot that is free again after the statement.
uint32_t decode_temp(struct decode *d, unsigned bits);

// --- operands (decode_operand.c) ---------------------------------------------------------------------------

// decode_reg returns the slot of a register, or of the element of a vector register that the operand selects.
// decode_reg_bits returns that slot's bits: 1, 16, 32, 64 or 128.
uint32_t decode_reg(struct decode *d, const struct ptx_operand *o);
unsigned decode_reg_bits(struct decode *d, const struct ptx_operand *o);
uint32_t decode_guard(struct decode *d);        // the slot of the statement's guard
unsigned decode_slot_bits(unsigned type_bits);  // bits of the slot that a value of type_bits takes

// decode_items lists an operand's values: those in braces, the elements of a vector register, or the operand
// alone. Returns how many there are.
enum { DECODE_ITEMS = 8 };
bool decode_is_vector(struct decode *d, const struct ptx_operand *o);
unsigned decode_items(struct decode *d, const struct ptx_operand *o, struct ptx_operand out[DECODE_ITEMS]);

// Returns a slot that holds the source as that type. Wider registers are truncated.
uint32_t decode_source(struct decode *d, const struct ptx_operand *o, enum ptx_type type);
// The same for any type of that size.
uint32_t decode_source_bits(struct decode *d, const struct ptx_operand *o, unsigned bits);
uint32_t decode_pred(struct decode *d, const struct ptx_operand *o);

// A destination of a type: emit the instruction that writes `slot`, then call decode_finish, which extends
// the value if the register is wider.
struct decode_dest {
    uint32_t slot;  // the slot to write to
    uint32_t to;    // the register's slot
    uint16_t from_bits, to_bits;
    bool is_signed, extend;
};
struct decode_dest decode_dest(struct decode *d, const struct ptx_operand *o, enum ptx_type type);
struct decode_dest decode_dest_bits(struct decode *d, const struct ptx_operand *o, unsigned bits);
void decode_finish(struct decode *d, const struct decode_dest *dest);

const struct ptx_operand *decode_operand(struct decode *d, unsigned i);  // the operand must exist

// A memory operand, in the slots and flags of an access (access.h).
struct decode_address {
    uint32_t slot, flags;
    uint64_t imm;
};
// decode_address decodes a memory operand. Its space is the n-th that the instruction spells, generic if it
// spells fewer; or the one named by n, if n is DECODE_SHARED, DECODE_GLOBAL or DECODE_GENERIC.
enum { DECODE_SHARED = 1000, DECODE_GLOBAL, DECODE_GENERIC };
struct decode_address decode_address(struct decode *d, const struct ptx_operand *o, unsigned n);

// --- kinds of instruction ----------------------------------------------------------------------------------

void decode_mov(struct decode *d);
// ld, st, atom, red, cp.async; the storing part of st.async and red.async
void decode_memory(struct decode *d);
// Emit moves of a value of that variable's type from an operand to the frame's local memory, and from there
// to an operand.
void decode_put_local(struct decode *d, const struct ptx_operand *from, const struct ptx_var *type,
                      uint32_t offset);
void decode_get_local(struct decode *d, const struct ptx_operand *to, const struct ptx_var *type,
                      uint32_t offset);
void decode_control(struct decode *d);     // bra, brx, call, ret, exit, trap
void decode_enter(struct decode *d);       // loads parameters declared as registers, at the function's start
void decode_leave(struct decode *d);       // stores results declared as registers, at its end
void decode_collective(struct decode *d);  // warp collectives and barriers
void decode_special(struct decode *d);     // cvta, isspacep, alloca, ...
void decode_video(struct decode *d);       // vadd to vset4
void decode_texture(struct decode *d);     // tex, tld4, txq, suld, sust, suq
void decode_cluster(struct decode *d);     // mbarrier, bulk copies, addresses in clusters
void decode_tensor(struct decode *d);
void decode_matrix(struct decode *d);  // mma, wmma, ldmatrix, ...
void decode_wgmma(struct decode *d);
void decode_lane(struct decode *d);
bool decode_pair(struct decode *d);  // f32x2, and f32 with halves; returns false for other instructions

// Appends an instruction that carries an address, as for a load or a store.
void decode_put_address(struct decode *d, const struct decode_address *a, bool stores);

// Emit a branch around an instruction that must not run with a mask reduced by a guard. decode_skip_begin
// returns the value that decode_skip_end takes.
uint32_t decode_skip_begin(struct decode *d);
void decode_skip_end(struct decode *d, uint32_t at);

#endif
