// SPDX-License-Identifier: MIT
// A PTX module as plain data.
//
//   module ── items, in source order: variables, functions, files, sections, ...
//               function ── statements, in source order: instructions, labels, declarations, scopes, ...
//                             instruction ── form ("ld.global.v4.f32", interned) + operands
//
// Everything in a module lives in its arena and refers to the source text, which the caller keeps alive as
// long as the module. What the parser does not interpret (initialisers, debug sections, attributes) is kept
// as slices of that text, so printing loses nothing.
#ifndef MOAT_PTX_PTX_H
#define MOAT_PTX_PTX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/out.h"
#include "base/str.h"
#include "ptx/op.h"

#define PTX_NONE UINT32_MAX

// --- operands ----------------------------------------------------------------------------------------------

enum ptx_operand_kind {
    PTX_REG,    // id: register of the function, see ptx_reg_var
    PTX_SREG,   // id: enum ptx_sreg
    PTX_SYM,    // id: symbol; value: byte offset from it
    PTX_IMM,    // value: the bits; see enum ptx_imm_kind
    PTX_SINK,   // _
    PTX_ADDR,   // [base + value]; base: see enum ptx_base_kind
    PTX_VEC,    // { items }
    PTX_LIST,   // ( items )
    PTX_PAIR,   // a|b
    PTX_TUPLE,  // [ items ]: textures, tensor maps
};

enum ptx_base_kind { PTX_BASE_NONE, PTX_BASE_REG, PTX_BASE_SYM };
enum ptx_imm_kind { PTX_IMM_INT, PTX_IMM_F32, PTX_IMM_F64 };
enum ptx_select {  // a part of a register
    PTX_SEL_NONE,
    PTX_SEL_X,
    PTX_SEL_Y,
    PTX_SEL_Z,
    PTX_SEL_W,
    PTX_SEL_R,
    PTX_SEL_G,
    PTX_SEL_B,
    PTX_SEL_A,
    PTX_SEL_B0,
    PTX_SEL_B1,
    PTX_SEL_B2,
    PTX_SEL_B3,
    PTX_SEL_H0,
    PTX_SEL_H1,
    // Several parts, for video instructions: .b7654 or .h10. value: the digits, as if hexadecimal; span: how
    // many.
    PTX_SEL_BYTES,
    PTX_SEL_HALVES,
};

// Operands of a statement lie in one array, depth first. A group (VEC, LIST, PAIR, TUPLE) is followed by its
// `span` slots: its items and theirs. So a loop over all slots visits every leaf, and the next operand on the
// same level is 1 + span further (ptx_next).
struct ptx_operand {
    uint8_t kind : 5;     // enum ptx_operand_kind
    uint8_t negated : 1;  // !p; -a of a video instruction
    uint8_t unified : 1;  // ADDR: [x].unified
    // IMM: print text[id .. id + span) of the module's source instead of the value. SYM, ADDR: print the
    // offset even if it is 0, because for debug targets ptxas makes other code from [x+0] than from [x].
    uint8_t spelled : 1;
    uint8_t sub;  // ptx_base_kind, ptx_imm_kind or ptx_select, by kind
    uint16_t span;
    uint32_t id;
    int64_t value;  // groups: the number of items
};
_Static_assert(sizeof(struct ptx_operand) == 16, "millions of these are kept");

static inline bool ptx_is_group(const struct ptx_operand *o)
{
    return o->kind >= PTX_VEC;
}

static inline const struct ptx_operand *ptx_next(const struct ptx_operand *o)
{
    return o + 1 + (ptx_is_group(o) ? o->span : 0);
}

// --- statements --------------------------------------------------------------------------------------------

enum ptx_stmt_kind {
    PTX_INSN,
    PTX_LABEL,      // sym
    PTX_DECL,       // var
    PTX_OPEN,       // {
    PTX_CLOSE,      // }
    PTX_LOC,        // loc
    PTX_PRAGMA,     // text: everything between .pragma and ;
    PTX_TARGETS,    // targets: name: .branchtargets or .calltargets
    PTX_PROTOTYPE,  // proto:   name: .callprototype
    PTX_VERBATIM,   // text: a statement that we do not understand, without its ;
};

struct ptx_stmt {
    uint8_t kind;
    bool guard_negated;
    uint16_t nslots;  // INSN: length of operands, groups' items included
    uint32_t pos;     // offset in the source text; PTX_NONE for statements that a pass made
    uint32_t guard;   // INSN: register, PTX_NONE without a guard
    uint32_t sym;     // LABEL: the label
    union {
        const struct ptx_form *form;
        struct ptx_var *var;
        struct ptx_loc *loc;
        struct ptx_targets *targets;
        struct ptx_proto *proto;
        struct str *text;
    };
    struct ptx_operand *operands;
};
_Static_assert(sizeof(struct ptx_stmt) == 32, "millions of these are kept");

struct ptx_loc {
    uint32_t file, line, column;
    struct str inlined;  // ", function_name ..., inlined_at ...", verbatim; empty if none
};

struct ptx_targets {
    uint32_t sym;
    bool calls;  // .calltargets
    uint32_t ntargets;
    uint32_t *targets;  // symbols
};

struct ptx_proto {
    uint32_t sym;
    uint32_t nrets, nparams;
    struct ptx_var *rets, *params;
    struct str directives;  // verbatim
};

// --- declarations ------------------------------------------------------------------------------------------

enum ptx_linkage { PTX_LINK_NONE, PTX_VISIBLE, PTX_EXTERN, PTX_WEAK, PTX_COMMON };

// A variable, parameter or register, or a range of registers: .reg .b32 %r<10> declares %r0 to %r9.
struct ptx_var {
    uint32_t sym;  // PTX_NONE for '_' in a prototype
    uint32_t pos;
    uint8_t space, type;  // enum ptx_space, enum ptx_type
    uint8_t linkage;
    uint8_t vec;         // elements of a vector type, 1 if none
    uint32_t align;      // 0: the type's own
    uint32_t range;      // registers: N of name<N>, 0 if not a range
    uint32_t first_reg;  // registers: number of the first
    bool is_ptr;         // .ptr on an entry's parameter
    uint8_t ptr_space;
    uint32_t ptr_align;
    uint32_t ndims;
    uint64_t *dims;        // 0: not given, as in x[]
    struct str attribute;  // ".attribute(.managed)", verbatim; empty if none
    struct str init;       // what follows '=', verbatim; walk it with ptx_init_next
};

// A directive between a function's parameters and its body: .maxntid 256, 1, 1
struct ptx_directive {
    struct str name;  // with its dot
    struct str args;  // verbatim
};

struct ptx_func {
    uint32_t sym;
    uint32_t pos;
    uint8_t linkage;
    bool is_entry;
    bool has_body;
    struct str attribute;
    uint32_t nrets, nparams, ndirectives, nstmts;
    struct ptx_var *rets, *params;
    struct ptx_directive *directives;
    struct ptx_stmt *stmts;
    // Registers are numbered from 0 to nregs - 1 in order of declaration; the module's own come first:
    //   reg_vars[i]->first_reg + max(reg_vars[i]->range, 1) == reg_vars[i + 1]->first_reg
    uint32_t nregs, nreg_vars;
    struct ptx_var **reg_vars;
    uint32_t nunknown;  // instructions not in ops.def, or with modifiers not in mods.def
    uint32_t nedits;    // number of edits; analyses made before the last one are invalid
};

enum ptx_sym_kind {
    PTX_SYM_UNDEFINED,  // remains only if none but unknown instructions use it
    PTX_SYM_VAR,        // var: variable, parameter or register
    PTX_SYM_FUNC,       // func: the definition, or a declaration if there is none
    PTX_SYM_LABEL,      // stmt: index of the label in its function
    PTX_SYM_TARGETS,
    PTX_SYM_PROTO,
    PTX_SYM_ALIAS,  // target: symbol that it stands for
};

struct ptx_sym {
    struct str name;
    uint8_t kind;
    bool needed;  // UNDEFINED: an instruction in ops.def uses it
    uint32_t pos;
    union {
        struct ptx_var *var;
        struct ptx_func *func;
        uint32_t stmt;
        struct ptx_targets *targets;
        struct ptx_proto *proto;
        uint32_t target;
    };
};

enum ptx_item_kind {
    PTX_ITEM_VAR,
    PTX_ITEM_FUNC,
    PTX_ITEM_FILE,
    PTX_ITEM_SECTION,
    PTX_ITEM_PRAGMA,
    PTX_ITEM_ALIAS,
    PTX_ITEM_VERBATIM
};

struct ptx_item {
    uint8_t kind;
    uint32_t pos;
    union {
        struct ptx_var *var;
        struct ptx_func *func;
        struct str *text;  // all others, verbatim, from the directive to its end
    };
};

struct ptx_source_file {
    uint32_t number;
    struct str name;
};

struct ptx_module {
    struct arena arena;
    struct diag_source source;
    unsigned version_major, version_minor;
    struct str target;      // "sm_90a, debug", verbatim
    unsigned address_size;  // 32 or 64; 0: not given
    uint32_t nitems, nsyms, nforms, nfiles;
    struct ptx_item *items;
    struct ptx_sym *syms;
    const struct ptx_form **forms;  // each spelling once
    struct ptx_source_file *files;  // what .file declares, by number
    struct map globals;             // names at module scope, to symbols
    struct map debug_strings;       // labels in .debug_str, to the offsets behind them in the text
    struct ptx_module *added;       // modules that edit_add parsed; this one refers to their contents
};

// --- reading -----------------------------------------------------------------------------------------------

struct ptx_limits {
    size_t memory;  // bytes that parsing may take; 0: 32 times the text, at least 64 MiB
};

// Parses a text, which must be shorter than 2 GiB; like PTX in a fatbin, it may end in NUL. text and name
// must outlive the module. Returns 0, -EINVAL (reported to sink with its place) or -ENOMEM (reported too).
int ptx_parse(const char *name, struct str text, struct diag_sink *sink, const struct ptx_limits *limits,
              struct ptx_module **out);
void ptx_free(struct ptx_module *m);

static inline struct ptx_sym *ptx_sym(const struct ptx_module *m, uint32_t id)
{
    return &m->syms[id];
}

// Returns the declaration that register reg belongs to. ptx_print_reg prints its name.
const struct ptx_var *ptx_reg_var(const struct ptx_func *f, uint32_t reg);

// Returns the size of a variable in bytes; 0 if the declaration does not give it.
uint64_t ptx_var_size(const struct ptx_var *var);

struct str ptx_func_name(const struct ptx_module *m, const struct ptx_func *f);
// Returns the symbol itself, or the function that it is an alias of.
const struct ptx_sym *ptx_sym_behind_alias(const struct ptx_module *m, uint32_t id);
struct ptx_sym *ptx_find(const struct ptx_module *m, struct str name);  // at module scope; NULL if absent

// --- what a statement does ---------------------------------------------------------------------------------

// One access of an instruction to a register. The roles come from the signature in ops.def. A register inside
// an address is read, whatever the address is used for. A write under a guard, or through a selector, may
// keep (part of) the old value: `partial`. An instruction that is not in ops.def may read and write, or not,
// every register that it names.
struct ptx_access {
    uint32_t reg;
    bool reads, writes, partial;
};

// Calls fn for each register that an instruction accesses, guard first; for a register that occurs twice,
// twice.
typedef void ptx_access_fn(void *ctx, struct ptx_access access);
void ptx_stmt_regs(const struct ptx_stmt *s, ptx_access_fn *fn, void *ctx);

// Returns the i-th top-level operand, NULL if there are fewer.
const struct ptx_operand *ptx_operand(const struct ptx_stmt *s, unsigned i);
// Returns whether a statement has at least the operands that its operation needs. The parser accepts fewer.
bool ptx_stmt_is_whole(const struct ptx_stmt *s);

// How many bytes from its address on an access touches.
enum ptx_extent {
    // The instruction does not give the size: textures, tensor memory, prefetches, and modifiers that are not
    // in mods.def.
    PTX_EXTENT_UNSIZED,
    // Each executing thread touches `bytes` bytes from the address on; 0: none. If there is an `unless` and
    // that predicate is true, the thread touches none.
    PTX_EXTENT_PLAIN,
    // Each thread touches as many bytes as the register `size` holds, of 32 or 64 bits. They are at most
    // `bytes`, if that is not 0: cp.async may read less than it writes.
    PTX_EXTENT_COUNTED,
    // ldmatrix, stmatrix. A row of a matrix is `bytes` bytes at the address in a lane below `lanes`; the
    // addresses in the other lanes are not used (but must be valid before sm_80). The last `padding` bytes of
    // a row hold no elements.
    PTX_EXTENT_ROWS,
    // wmma. All lanes have the same address. `lines` runs of `length` elements of `element_bits` bits lie
    // from there on; each run starts `stride` elements after the one before: an immediate or a register of 32
    // bits, NULL for `length`.
    //   `bytes` == ((lines - 1) * stride + length) * element_bits / 8, or 0 if the stride is in a register
    PTX_EXTENT_TILE,
    // A copy of a box. The first item of the tuple `map` is a tensor map with the size of the box; the second
    // item is the box's coordinates. On the tensor's side addr == map, and bytes outside of the tensor are
    // not touched. On the other side, in shared memory, the box starts at addr, and all of it is touched.
    PTX_EXTENT_TENSOR,
    // wgmma, tcgen05. addr is no address but a register of 64 bits, which describes a matrix in shared
    // memory: its bits 0 to 13 are bits 4 to 17 of the address.
    PTX_EXTENT_DESCRIPTOR,
};

// A memory access of an instruction: one row per operand that stands for memory. A row that neither reads nor
// writes names memory that is not accessed: it is prefetched, queried, fenced or given a cache policy.
struct ptx_mem {
    const struct ptx_operand *addr;        // PTX_ADDR or PTX_TUPLE; DESCRIPTOR: PTX_REG
    union {                                // NULL if there is none
        const struct ptx_operand *unless;  // PLAIN
        const struct ptx_operand *size;    // COUNTED
        const struct ptx_operand *stride;  // TILE
        const struct ptx_operand *map;     // TENSOR
    };
    uint32_t bytes;  // see enum ptx_extent; 0 for extents that do not use it
    // Bytes that each thread moves on average, every byte of a matrix counted once for the warp; 0 if only a
    // register or a tensor map has the size.
    uint32_t share;
    uint16_t lines, length;  // TILE
    uint8_t element_bits;    // TILE
    uint8_t lanes, padding;  // ROWS
    uint8_t space;           // enum ptx_space; PTX_SPACE_GENERIC if not spelled
    uint8_t extent;          // enum ptx_extent
    bool reads, writes, atomic;
    bool collective;  // the lanes of a warp execute it together, as one access
};
_Static_assert(sizeof(struct ptx_mem) <= 40, "passes ask for each instruction");
enum { PTX_MAX_MEM = 6 };
// Lists the memory accesses of a statement of f, in the order of the operands, and returns their number. An
// instruction that is not in ops.def has no rows; f->nunknown counts it.
unsigned ptx_stmt_mem(const struct ptx_func *f, const struct ptx_stmt *s, struct ptx_mem out[PTX_MAX_MEM]);

// Finds the source line of a .loc; returns false if it has none. A statement belongs to the last .loc before
// it in its function. For inlined code this is the line of the callee; the ptx_loc says where it was inlined.
struct ptx_source {
    struct str file;  // as .file has it
    uint32_t line, column;
};
bool ptx_loc_source(const struct ptx_module *m, const struct ptx_loc *loc, struct ptx_source *out);

// Finds the function whose inlined code a .loc belongs to, and the place where it was inlined, which is that
// of an earlier .loc in the same function. Returns false if the code was not inlined.
struct ptx_inlined {
    struct str function;  // for ptx_debug_text; empty if not known
    uint32_t file, line, column;
};
bool ptx_loc_inlined(const struct ptx_module *m, const struct ptx_loc *loc, struct ptx_inlined *out);

// Copies a string of a debug section, given as bytes: ".b8 95, 90, 0" is "_Z". At most size - 1 bytes and a
// NUL are written. Returns the number of bytes without the NUL.
size_t ptx_debug_text(struct str bytes, char *to, size_t size);

// --- initialisers ------------------------------------------------------------------------------------------

enum ptx_init_kind {
    PTX_INIT_OPEN,
    PTX_INIT_CLOSE,
    PTX_INIT_INT,
    PTX_INIT_F32,
    PTX_INIT_F64,
    PTX_INIT_SYM,
    PTX_INIT_STRING,
    PTX_INIT_OTHER
};

struct ptx_init {
    uint8_t kind;
    bool generic;     // SYM: generic(name)
    uint64_t mask;    // SYM: 0xFF00(name), 0 if none
    int64_t value;    // the bits, or SYM: byte offset
    struct str text;  // SYM: name; STRING: between the quotes; OTHER (sampler fields): all of it
};

// Walks an initialiser; rest starts as var->init. Returns 1 for an element, 0 at the end, or -EINVAL.
int ptx_init_next(struct str *rest, struct ptx_init *out);

// --- writing -----------------------------------------------------------------------------------------------

// ptx_print writes a module's header and its items; a function with a body is its head, its statements and
// "}\n".
void ptx_print(const struct ptx_module *m, struct out *to);
void ptx_print_header(const struct ptx_module *m, struct out *to);
void ptx_print_item(const struct ptx_module *m, const struct ptx_item *item, struct out *to);
void ptx_print_func_head(const struct ptx_module *m, const struct ptx_func *f, struct out *to);
void ptx_print_func(const struct ptx_module *m, const struct ptx_func *f, struct out *to);
void ptx_print_stmt(const struct ptx_module *m, const struct ptx_func *f, const struct ptx_stmt *s,
                    struct out *to);
void ptx_print_reg(const struct ptx_module *m, const struct ptx_func *f, uint32_t reg, struct out *to);

// --- checking ----------------------------------------------------------------------------------------------

// Reports as errors much of what the parser accepts and ptxas would not, and as warnings accesses to
// variables by name that are wrong whenever they run; *wrong_accesses (may be NULL) counts the latter.
// Returns 0, or -EINVAL if there were errors.
int ptx_verify(const struct ptx_module *m, struct diag_sink *sink, unsigned *wrong_accesses);

#endif
