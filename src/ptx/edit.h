// SPDX-License-Identifier: MIT
// Edits a module: what a rewriting pass needs.
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
// Statements are written as PTX. %0 to %15 stand for the arguments that follow the text: registers, numbers,
// symbols and labels, wherever the grammar allows one, also as a guard and inside [brackets]. Our own parser
// reads a text when it is first used; from then on an insertion is one lookup and a copy. Labels in a text
// are local to it: each insertion gets fresh ones. A text declares nothing: registers come from edit_new_reg,
// and every insertion may reuse them; ptxas accepts that.
//
// Statements are named by their index before the edit, so a pass can walk f->stmts and query any analysis
// while it edits: nothing moves until edit_func of the next function, or edit_close. Then the statements are
// laid out anew in one sweep, insertions at one place in the order in which they were made, and labels get
// their new indices. Analyses of the function and pointers to its statements become invalid; indices of
// registers and symbols stay valid, struct ptx_sym pointers do not.
//
// The first failure is kept: later calls do nothing, and edit_close returns it. After a failure the module
// must be freed. Memory grows in proportion to what is inserted, beyond the limit that the module was parsed
// with.
#ifndef MOAT_PTX_EDIT_H
#define MOAT_PTX_EDIT_H

#include "ptx/ptx.h"

struct edit;

enum { EDIT_MOST_ARGS = 16 };

// Starts an edit of m. Returns 0 or -ENOMEM. Texts that cannot be parsed are reported to sink; they are bugs
// of the pass.
int edit_open(struct ptx_module *m, struct diag_sink *sink, struct edit **out);
int edit_error(const struct edit *e);
int edit_close(struct edit *e);  // 0, -ENOMEM, -EINVAL for a bad text, -EEXIST for a name that is taken

// --- operands ----------------------------------------------------------------------------------------------

static inline struct ptx_operand edit_reg(uint32_t reg)
{
    return (struct ptx_operand){.kind = PTX_REG, .id = reg};
}

static inline struct ptx_operand edit_imm(int64_t value)
{
    return (struct ptx_operand){.kind = PTX_IMM, .sub = PTX_IMM_INT, .value = value};
}

// A variable, function or label; in brackets or as a value, with a byte offset.
static inline struct ptx_operand edit_sym_at(uint32_t sym, int64_t offset)
{
    return (struct ptx_operand){.kind = PTX_SYM, .id = sym, .value = offset};
}

static inline struct ptx_operand edit_sym(uint32_t sym)
{
    return edit_sym_at(sym, 0);
}

// [reg + offset], for a text that has brackets around the argument and nothing else in them.
static inline struct ptx_operand edit_addr(uint32_t reg, int64_t offset)
{
    return (struct ptx_operand){.kind = PTX_ADDR, .sub = PTX_BASE_REG, .id = reg, .value = offset};
}

// Returns the guard as an argument: "@%0 ..." runs when the statement does, "@!%0 ..." when it does not. The
// statement must have a guard.
struct ptx_operand edit_guard(const struct ptx_stmt *s);

// Returns what an address is based on: a register, a symbol, or 0. The offset is addr->value.
struct ptx_operand edit_base(const struct ptx_operand *addr);

// --- the module --------------------------------------------------------------------------------------------

// Adds variables and functions, written as PTX outside of functions, without a header. They are placed before
// the module's own. If the module or the text only declares a symbol that both have, the two become one
// symbol. The text is copied.
void edit_add(struct edit *e, struct str text);
// The same behind the module's own items, which the text's initialisers may name.
void edit_add_last(struct edit *e, struct str text);
uint32_t edit_find(struct edit *e,
                   struct str name);  // a symbol at module scope; a missing one is -EINVAL

// Adds a last parameter to every declaration of f: ".param .u64", or with ".align 8 .b8" an array of `count`.
// Returns its symbol in the body of f.
uint32_t edit_add_param(struct edit *e, struct ptx_func *f, enum ptx_type type, uint32_t align,
                        uint64_t count);

// Adds a copy of f under another name, behind the module's functions, and returns it. f must not be the
// function that is being edited. Everything that is declared in f, static variables too, is copied; the
// copy's labels get new names. A copy that is no entry is declared before the module's own
// items. NULL after a failure; a name that is taken is -EEXIST.
struct ptx_func *edit_clone_func(struct edit *e, const struct ptx_func *f, struct str name);
// Declares a function before the module's own items.
void edit_declare(struct edit *e, const struct ptx_func *f);

// Names that begin with this prefix are ours; edit_name returns one that is not in use.
#define EDIT_PREFIX "__moat_"
struct str edit_name(struct edit *e, const char *before);

// --- a function --------------------------------------------------------------------------------------------

void edit_func(struct edit *e, struct ptx_func *f);  // requires a body; ends the edit of the function before

uint32_t edit_new_reg(struct edit *e, enum ptx_type type);
uint32_t edit_new_regs(struct edit *e, enum ptx_type type, uint32_t n);  // returns the first of n in a row
// Declares an array of bytes in local memory, aligned to 8 bytes. Returns its symbol.
uint32_t edit_new_local(struct edit *e, uint32_t bytes);
uint32_t edit_new_label(struct edit *e);  // returns a symbol; edit_place_label places it
void edit_place_label(struct edit *e, uint32_t stmt, uint32_t label);        // before the statement
void edit_place_label_after(struct edit *e, uint32_t stmt, uint32_t label);  // behind it

enum edit_place { EDIT_ENTRY, EDIT_BEFORE, EDIT_AFTER };

// Inserts a text at a statement's index; "before nstmts" is the end of the function. Text inserted before a
// label is reached only from the statement above. EDIT_ENTRY is behind the declarations that a function
// begins with, and before everything else that is inserted there; stmt is 0.
void edit_insert(struct edit *e, enum edit_place place, uint32_t stmt, const char *text, unsigned nargs,
                 const struct ptx_operand *args);
// Inserts a text before every ret and exit, and at the function's end if control may reach it. Before a
// guarded exit, the text runs under the same condition.
void edit_insert_exits(struct edit *e, const char *text, unsigned nargs, const struct ptx_operand *args);
// Inserts a copy of a statement, an instruction or a .loc, before the statement `to`.
void edit_copy_stmt(struct edit *e, uint32_t to, uint32_t stmt);
// The same for an instruction, with this register as its guard.
void edit_copy_guarded(struct edit *e, uint32_t to, uint32_t stmt, uint32_t guard);
// The same for an instruction without a guard, with other registers: those of its first operand, which it
// writes, and those that it reads.
typedef uint32_t edit_rename_fn(void *ctx, uint32_t reg, bool writes);
void edit_copy_renamed(struct edit *e, uint32_t to, uint32_t stmt, edit_rename_fn *rename, void *ctx);
// Deletes a statement; what was inserted around it stays. A label that is referred to must not be deleted.
void edit_delete(struct edit *e, uint32_t stmt);
// Replaces operands[slot], which must not be a group. The change is made at once, and in place.
void edit_set(struct edit *e, uint32_t stmt, unsigned slot, struct ptx_operand operand);
// Spells another state space in an instruction's form, in every place where the first one is spelled. The
// change is made at once.
void edit_set_space(struct edit *e, uint32_t stmt, enum ptx_space from, enum ptx_space to);
// Appends operands to the arguments of a call, which must have some. The change is made at once.
void edit_add_args(struct edit *e, uint32_t stmt, unsigned nargs, const struct ptx_operand *args);
bool edit_is_exit(const struct ptx_stmt *s);
bool edit_falls_off(const struct ptx_func *f);  // whether control may run into its end

#define EDIT_LIST(...) ((struct ptx_operand[]){{0}, ##__VA_ARGS__})
#define EDIT_ARGS(...) \
    sizeof EDIT_LIST(__VA_ARGS__) / sizeof(struct ptx_operand) - 1, EDIT_LIST(__VA_ARGS__) + 1

#define edit_before(e, stmt, text, ...) edit_insert((e), EDIT_BEFORE, (stmt), (text), EDIT_ARGS(__VA_ARGS__))
#define edit_after(e, stmt, text, ...) edit_insert((e), EDIT_AFTER, (stmt), (text), EDIT_ARGS(__VA_ARGS__))
#define edit_entry(e, text, ...) edit_insert((e), EDIT_ENTRY, 0, (text), EDIT_ARGS(__VA_ARGS__))
#define edit_exits(e, text, ...) edit_insert_exits((e), (text), EDIT_ARGS(__VA_ARGS__))
#define edit_replace(e, stmt, text, ...) \
    (edit_insert((e), EDIT_BEFORE, (stmt), (text), EDIT_ARGS(__VA_ARGS__)), edit_delete((e), (stmt)))

// --- the target --------------------------------------------------------------------------------------------

// Splits a target: "sm_120a, debug" has arch 120 and suffix 'a'. Returns false if the target is not of that
// form.
bool edit_target_parse(struct str target, unsigned *arch, char *suffix);

// Rewrites the target so that code for a GPU of architecture `arch` can be compiled from the module: lowers
// it to arch if it is newer; removes its suffix where the suffix excludes the GPU (sm_90a is sm_90 alone,
// sm_100f its family). *changed says whether it did. Whether the code uses features that arch lacks is left
// to the compiler. Returns 0, -ENOMEM, or -EINVAL for a target that cannot be parsed.
int edit_target(struct ptx_module *m, unsigned arch, bool *changed);

#endif
