// SPDX-License-Identifier: MIT
// From the statements of a function to instructions. Internal to src/exec: decode.c has the frame, decode_*.c the
// kinds of instruction.
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
    uint32_t *slot;       // by index of regs
    uint32_t *block_at;   // by block: its first instruction
    uint32_t *block_loc;  // by block: the .loc that comes next in the text, as index of load->locs
    bool *join;           // by block: starts with a control_join
    uint8_t *spin;        // by block, of a loop's header: fuel for each round; see loop_cost
    VEC(struct exec_insn) code;
    VEC(uint32_t) pos;
    VEC(uint32_t) loc;
    VEC(struct decode_fixup) fixups;
    VEC(struct exec_const) consts;
    VEC(struct exec_func *) callees;
    VEC(struct control_table *) tables;
    uint32_t *const_table, const_mask;  // open addressing: index of consts + 1
    uint32_t regs_size;
    uint32_t args_at;  // where arguments in registers lie in the frame, of all calls; see decode_control.c
    uint32_t temps[SLOTS_CLASSES][8];
    unsigned ntemps[SLOTS_CLASSES];  // in use by the current statement
    uint32_t stmt_pos, stmt_loc;
    uint32_t block;  // being decoded
    const struct ptx_stmt *stmt;
};

// Reports at the current statement and leaves decode_func with err.
_Noreturn void decode_fail(struct decode *d, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void decode_unsupported(struct decode *d);  // names the instruction

struct exec_insn *decode_emit(struct decode *d, exec_fn *fn);  // valid until the next one
void decode_jump(struct decode *d, uint32_t block);            // the last instruction's target
#define DECODE_RETURN UINT32_MAX                               // as block: the end of the function

uint32_t decode_const(struct decode *d, unsigned bits, uint64_t value);  // a slot
uint32_t decode_temp(struct decode *d, unsigned bits);                   // free again after the statement

// --- operands (decode_operand.c) ------------------------------------------------------------------------------

// A register, or the part of a vector register that the operand selects: its slot, and the slot's bits, which are 1,
// 16, 32, 64 or 128.
uint32_t decode_reg(struct decode *d, const struct ptx_operand *o);
unsigned decode_reg_bits(struct decode *d, const struct ptx_operand *o);
uint32_t decode_guard(struct decode *d);        // the slot of the statement's
unsigned decode_slot_bits(unsigned type_bits);  // of a value's slot

// The values of an operand: what stands in braces, the parts of a vector register, or it alone. How many.
enum { DECODE_ITEMS = 8 };
bool decode_is_vector(struct decode *d, const struct ptx_operand *o);
unsigned decode_items(struct decode *d, const struct ptx_operand *o, struct ptx_operand out[DECODE_ITEMS]);

// A source as a slot of that type. Registers that are wider are cut to it.
uint32_t decode_source(struct decode *d, const struct ptx_operand *o, enum ptx_type type);
uint32_t decode_source_bits(struct decode *d, const struct ptx_operand *o,
                            unsigned bits);  // any type of that size
uint32_t decode_pred(struct decode *d, const struct ptx_operand *o);

// A destination of that type: emit what fills the slot, then decode_finish, which extends it to a wider register.
struct decode_dest {
    uint32_t slot;  // to write to
    uint32_t to;    // the register's
    uint16_t from_bits, to_bits;
    bool is_signed, extend;
};
struct decode_dest decode_dest(struct decode *d, const struct ptx_operand *o, enum ptx_type type);
struct decode_dest decode_dest_bits(struct decode *d, const struct ptx_operand *o, unsigned bits);
void decode_finish(struct decode *d, const struct decode_dest *dest);

const struct ptx_operand *decode_operand(struct decode *d, unsigned i);  // must be there

// Where a memory operand lies: as the slots and flags of an access (access.h).
struct decode_address {
    uint32_t slot, flags;
    uint64_t imm;
};
// In the n-th space that the instruction spells, generic if it spells fewer; or, with n of DECODE_SHARED,
// DECODE_GLOBAL or DECODE_GENERIC, there.
enum { DECODE_SHARED = 1000, DECODE_GLOBAL, DECODE_GENERIC };
struct decode_address decode_address(struct decode *d, const struct ptx_operand *o, unsigned n);

// --- kinds of instruction -------------------------------------------------------------------------------------

void decode_mov(struct decode *d);
void decode_memory(
    struct decode *d);  // ld, st, atom, red, cp.async; the storing part of st.async and red.async
// A value of that variable's type, from an operand to the frame's local memory, and from there to an operand.
void decode_put_local(struct decode *d, const struct ptx_operand *from, const struct ptx_var *type,
                      uint32_t offset);
void decode_get_local(struct decode *d, const struct ptx_operand *to, const struct ptx_var *type,
                      uint32_t offset);
void decode_control(struct decode *d);  // bra, brx, call, ret, exit, trap
void decode_enter(struct decode *d);    // parameters that are registers, at a function's start
void decode_leave(struct decode *d);    // results that are registers, at its end
void decode_meet(struct decode *d);     // what lanes do together, and barriers
void decode_special(struct decode *d);  // cvta, isspacep, alloca, ...
void decode_video(struct decode *d);    // vadd to vset4
void decode_texture(struct decode *d);  // tex, tld4, txq, suld, sust, suq
void decode_cluster(struct decode *d);  // mbarrier, bulk copies, addresses in clusters
void decode_tensor(struct decode *d);
void decode_matrix(struct decode *d);  // mma, wmma, ldmatrix, ...
void decode_wgmma(struct decode *d);
void decode_lane(struct decode *d);
bool decode_pair(struct decode *d);  // f32x2, and f32 with halves; false: it is neither

// Behind an instruction: an address, as of a load or a store.
void decode_put_address(struct decode *d, const struct decode_address *a, bool stores);

// Around an instruction that must not run with a mask cut by a guard: a branch over it.
uint32_t decode_skip_begin(struct decode *d);
void decode_skip_end(struct decode *d, uint32_t at);

#endif
