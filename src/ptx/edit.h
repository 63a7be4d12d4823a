// SPDX-License-Identifier: MIT
// Changing a module: what a rewriting pass needs.
//
//   struct edit *e;
//   if (edit_open(m, sink, &e)) ...
//   edit_add(e, STR(".global .u64 hits;"));
//   edit_func(e, f);
//   uint32_t n = edit_new_reg(e, PTX_U64);
//   edit_entry(e, "mov.u64 %0, 0;", edit_reg(n));
//   edit_before(e, 17, "@%0 add.u64 %1, %1, %2;", edit_guard(&f->stmts[17]), edit_reg(n), edit_imm(4));
//   edit_exits(e, "red.global.add.u64 [%0], %1;", edit_sym(edit_find(e, STR("hits"))), edit_reg(n));
//   err = edit_close(e);
//
// Statements are written as PTX. %0 to %15 stand for the operands behind the text: registers, numbers, symbols,
// labels, wherever the grammar allows for one, also as a guard and inside [brackets]. A text is parsed by our own
// parser when it is first met; from then on an insertion is one lookup and a copy. Labels in a text are its own:
// each insertion gets fresh ones. A text declares nothing: registers come from edit_new_reg, and may be used again
// by every insertion, for ptxas does not mind.
//
// Statements are called by their index before the edit, so a pass can walk f->stmts and ask any analysis while it
// edits: nothing moves until edit_func of the next function, or edit_close. Insertions at one place stand in the
// order in which they were made. Then the statements are laid out anew in one sweep, and labels know their new
// places. Analyses of the function are void, and pointers to its statements too; indices of registers and symbols
// stay valid, struct ptx_sym pointers do not.
//
// The first failure sticks: later calls do nothing, edit_close returns it. After one the module must be freed.
// Memory grows in proportion to what is inserted, beyond the limit that the module was parsed with.
#ifndef MOAT_PTX_EDIT_H
#define MOAT_PTX_EDIT_H

#include "ptx/ptx.h"

struct edit;

enum { EDIT_MOST_ARGS = 16 };

// 0 or -ENOMEM. sink hears of texts that cannot be parsed, which is the pass's fault.
int edit_open(struct ptx_module *m, struct diag_sink *sink, struct edit **out);
int edit_error(const struct edit *e);
int edit_close(struct edit *e);  // 0, -ENOMEM, -EINVAL for a bad text, -EEXIST for a name that is taken

// --- operands -----------------------------------------------------------------------------------------------

static inline struct ptx_operand edit_reg(uint32_t reg)
{
    return (struct ptx_operand){.kind = PTX_REG, .id = reg};
}

static inline struct ptx_operand edit_imm(int64_t value)
{
    return (struct ptx_operand){.kind = PTX_IMM, .sub = PTX_IMM_INT, .value = value};
}

// A variable, function, label; in brackets or as a value, with a byte offset.
static inline struct ptx_operand edit_sym_at(uint32_t sym, int64_t offset)
{
    return (struct ptx_operand){.kind = PTX_SYM, .id = sym, .value = offset};
}

static inline struct ptx_operand edit_sym(uint32_t sym)
{
    return edit_sym_at(sym, 0);
}

// [reg + offset], to be put where a text has brackets around the argument and nothing else.
static inline struct ptx_operand edit_addr(uint32_t reg, int64_t offset)
{
    return (struct ptx_operand){.kind = PTX_ADDR, .sub = PTX_BASE_REG, .id = reg, .value = offset};
}

// Requires a guard. "@%0 ..." runs when the statement does, "@!%0 ..." when it does not.
struct ptx_operand edit_guard(const struct ptx_stmt *s);

// What stands in an address, without the offset: a register, a symbol, or 0. The offset is addr->value.
struct ptx_operand edit_base(const struct ptx_operand *addr);

// --- the module ---------------------------------------------------------------------------------------------

// Variables and functions, as PTX outside of functions, without a header. They stand in front of the module's own.
// External declarations of what the module declares too are the same thing. The text is copied.
void edit_add(struct edit *e, struct str text);
uint32_t edit_find(struct edit *e,
                   struct str name);  // a symbol at module scope; one that is missing is -EINVAL

// A parameter more, the last one, in every declaration of f: ".param .u64", or with ".align 8 .b8" an array of
// `count`. Its symbol as the body of f knows it.
uint32_t edit_add_param(struct edit *e, struct ptx_func *f, enum ptx_type type, uint32_t align,
                        uint64_t count);

// Names that begin with this are ours; edit_name makes one that nothing has.
#define EDIT_PREFIX "__moat_"
struct str edit_name(struct edit *e, const char *before);

// --- a function ---------------------------------------------------------------------------------------------

void edit_func(struct edit *e, struct ptx_func *f);  // has a body; ends the edit of the one before

uint32_t edit_new_reg(struct edit *e, enum ptx_type type);
uint32_t edit_new_regs(struct edit *e, enum ptx_type type, uint32_t n);  // the first of n in a row
uint32_t edit_new_label(struct edit *e);  // a symbol; stands where "%0:" would: see edit_place_label
void edit_place_label(struct edit *e, uint32_t stmt, uint32_t label);  // before a statement

enum edit_place { EDIT_ENTRY, EDIT_BEFORE, EDIT_AFTER };

// stmt: an index; before nstmts is at the end. Before a label is where only the statement above leads to. The entry
// is behind the declarations that a function begins with, and before whatever else is inserted there; stmt is 0.
void edit_insert(struct edit *e, enum edit_place place, uint32_t stmt, const char *text, unsigned nargs,
                 const struct ptx_operand *args);
// Before every ret and exit, and before the end if control may run into it. Where one is guarded, what is inserted
// runs under the same condition.
void edit_insert_exits(struct edit *e, const char *text, unsigned nargs, const struct ptx_operand *args);
// What was inserted around it stays. A label that is referred to must not be deleted.
void edit_delete(struct edit *e, uint32_t stmt);
// Puts another operand in place of one that is no group: operands[slot]. At once, and in place.
void edit_set(struct edit *e, uint32_t stmt, unsigned slot, struct ptx_operand operand);
bool edit_is_exit(const struct ptx_stmt *s);
bool edit_falls_off(const struct ptx_func *f);  // may control run into its end?

#define EDIT_LIST(...) ((struct ptx_operand[]){{0}, ##__VA_ARGS__})
#define EDIT_ARGS(...) \
    sizeof EDIT_LIST(__VA_ARGS__) / sizeof(struct ptx_operand) - 1, EDIT_LIST(__VA_ARGS__) + 1

#define edit_before(e, stmt, text, ...) edit_insert((e), EDIT_BEFORE, (stmt), (text), EDIT_ARGS(__VA_ARGS__))
#define edit_after(e, stmt, text, ...) edit_insert((e), EDIT_AFTER, (stmt), (text), EDIT_ARGS(__VA_ARGS__))
#define edit_entry(e, text, ...) edit_insert((e), EDIT_ENTRY, 0, (text), EDIT_ARGS(__VA_ARGS__))
#define edit_exits(e, text, ...) edit_insert_exits((e), (text), EDIT_ARGS(__VA_ARGS__))
#define edit_replace(e, stmt, text, ...) \
    (edit_insert((e), EDIT_BEFORE, (stmt), (text), EDIT_ARGS(__VA_ARGS__)), edit_delete((e), (stmt)))

// --- the target ---------------------------------------------------------------------------------------------

// "sm_120a, debug" has arch 120 and suffix 'a'; false if no sm_ stands there.
bool edit_target_parse(struct str target, unsigned *arch, char *suffix);

// Writes the target so that code for a GPU of architecture `arch` can be made from it: lowered to arch if it is
// newer; without its suffix where the GPU is not one of those that the suffix names (sm_90a is sm_90 alone, sm_100f
// its family). *changed tells. Whether the code uses what arch does not have, its compiler will say.
// 0, -ENOMEM, -EINVAL for a target that cannot be read.
int edit_target(struct ptx_module *m, unsigned arch, bool *changed);

#endif
