// SPDX-License-Identifier: MIT
// The vocabulary of PTX: operations, modifiers, types, spaces, special registers. It is expanded from tables.
#ifndef MOAT_PTX_OP_H
#define MOAT_PTX_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum ptx_op_id {
#define OP(id, ...) PTX_OP_##id,
#include "ptx/ops.def"
    PTX_OP_COUNT,
};

enum ptx_type_class {
    PTX_CLASS_NONE,
    PTX_CLASS_BITS,
    PTX_CLASS_UINT,
    PTX_CLASS_SINT,
    PTX_CLASS_FLOAT,
    PTX_CLASS_PRED,
    PTX_CLASS_PACKED,
    PTX_CLASS_OPAQUE
};

enum ptx_type {
    PTX_TYPE_NONE,
#define TYPE(id, ...) PTX_##id,
#include "ptx/mods.def"
    PTX_TYPE_COUNT,
};

enum ptx_space {
    PTX_SPACE_GENERIC,
#define SPACE(id, ...) PTX_SPACE_##id,
#include "ptx/mods.def"
    PTX_SPACE_COUNT,
};

enum ptx_mod {
    PTX_MOD_UNKNOWN,
#define TYPE(id, ...) PTX_MOD_##id,
#define SPACE(id, ...) PTX_MOD_SPACE_##id,
#define MOD(id, ...) PTX_MOD_##id,
#include "ptx/mods.def"
    PTX_MOD_COUNT,
};

enum ptx_sreg {
#define SREG(id, ...) PTX_SREG_##id,
#include "ptx/sregs.def"
    PTX_SREG_COUNT,
};

// What an operand is used for.
enum ptx_role {
    PTX_ROLE_NONE,
    PTX_ROLE_WRITE,       // d
    PTX_ROLE_READ,        // s
    PTX_ROLE_BOTH,        // b
    PTX_ROLE_MEM_READ,    // R
    PTX_ROLE_MEM_WRITE,   // W
    PTX_ROLE_MEM_ATOMIC,  // X: read and written as one
    PTX_ROLE_ADDRESS,     // A: an address that is not dereferenced
    PTX_ROLE_DESCRIPTOR,  // D: describes a matrix in shared memory, which is read; in brackets, same as R
    PTX_ROLE_LABEL,       // L
    PTX_ROLE_TARGETS,     // T: name of a .branchtargets list
    PTX_ROLE_CALLEE,      // F
    PTX_ROLE_RETS,        // r: list of return parameters
    PTX_ROLE_ARGS,        // a: list of arguments
    PTX_ROLE_PROTO,       // q: prototype or .calltargets list
};

// The type that an operand must fit. 0 to 3: that type of the form, counted as spelled.
enum ptx_fit {
    PTX_FIT_TYPE0,
    PTX_FIT_TYPE1,
    PTX_FIT_TYPE2,
    PTX_FIT_TYPE3,
    PTX_FIT_PRED,
    PTX_FIT_32,
    PTX_FIT_64,
    PTX_FIT_WIDE,
    PTX_FIT_LOOSE0,
    PTX_FIT_LOOSE1,
    PTX_FIT_ANY
};

struct ptx_operand_rule {
    uint8_t role, fit;
};

enum ptx_width {
    PTX_WIDTH_NONE,
    PTX_WIDTH_TYPE,
    PTX_WIDTH_OPERAND1,
    PTX_WIDTH_OPERAND2,
    PTX_WIDTH_OPERAND3,
    PTX_WIDTH_COPY,
    PTX_WIDTH_FIXED4,
    PTX_WIDTH_FIXED8,
    PTX_WIDTH_FIXED16,
    PTX_WIDTH_FIXED128,
    PTX_WIDTH_ROWS,
    PTX_WIDTH_TILE,
    PTX_WIDTH_TENSOR,
    PTX_WIDTH_OPAQUE
};

enum ptx_control { PTX_FALLS, PTX_BRANCH, PTX_SWITCH, PTX_CALL, PTX_RETURN, PTX_EXIT, PTX_TRAP, PTX_BARRIER };

enum ptx_op_flags {
    PTX_CC_READ = 1,   // carry flag
    PTX_CC_WRITE = 2,  // by .cc
    PTX_WARP = 4,      // lanes of a warp take part together
    PTX_EFFECT = 8,    // must not be removed, moved or repeated even if its result is unused
    PTX_IS_ATOMIC = 16,
    PTX_ASYNC = 32,  // memory is touched after the instruction has retired
};

struct ptx_op {
    struct str name;
    const char *signature;
    uint8_t width, space, control, flags;
};

enum { PTX_MAX_MODS = 20, PTX_MAX_TYPES = 6, PTX_MAX_RULES = 16 };

// An operation with its modifiers, as spelled. Forms are interned per module: equal spelling, equal pointer.
struct ptx_form {
    struct str name;  // "ld.global.v4.f32"
    const struct ptx_op *op;
    uint32_t pos;   // first use in the source text; UINT32_MAX: not in it
    uint16_t id;    // enum ptx_op_id; PTX_OP_UNKNOWN if ops.def has no such row
    bool odd;       // has a modifier that is not in mods.def
    uint8_t vec;    // 1 without .v2, .v4, .v8
    uint8_t flags;  // enum ptx_op_flags: the row's, and those that .cc, .volatile, .acquire and the like add
    uint8_t nmods, ntypes, nspaces;
    uint8_t nrules, nneeded;  // operands that may be and that must be there
    uint8_t types[PTX_MAX_TYPES], spaces[PTX_MAX_TYPES];
    uint16_t mods[PTX_MAX_MODS];  // enum ptx_mod
    struct ptx_operand_rule rules[PTX_MAX_RULES];
};

extern const struct ptx_op ptx_ops[PTX_OP_COUNT];

// Fills *form from its spelling, which must outlive it. Never fails: unknown parts are marked as such.
void ptx_form_decode(struct str spelling, struct ptx_form *form);
bool ptx_form_has(const struct ptx_form *form, enum ptx_mod mod);

// Finds the dimensions in a form's spelling: .m16n8k16, or .m8n8 with k == 0. Returns false if there are
// none.
struct ptx_dims {
    uint16_t m, n, k;
};
bool ptx_form_dims(const struct ptx_form *form, struct ptx_dims *out);

enum ptx_mod ptx_mod_find(struct str name);      // without its dot
enum ptx_type ptx_type_find(struct str name);    // PTX_TYPE_NONE if it is none
enum ptx_space ptx_space_find(struct str name);  // PTX_SPACE_GENERIC if it is none
enum ptx_space ptx_space_is(enum ptx_space s);   // .shared::cta is .shared
struct str ptx_type_name(enum ptx_type t);
struct str ptx_space_name(enum ptx_space s);
unsigned ptx_type_bits(enum ptx_type t);
enum ptx_type_class ptx_type_class(enum ptx_type t);
struct str ptx_sreg_name(enum ptx_sreg s);
int ptx_sreg_find(struct str name);  // -1 if it is none

#endif
