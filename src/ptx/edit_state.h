// SPDX-License-Identifier: MIT
// Private to the edit_*.c files.
#ifndef MOAT_PTX_EDIT_STATE_H
#define MOAT_PTX_EDIT_STATE_H

#include "base/vec.h"
#include "ptx/edit.h"

// A parsed text to insert. In its statements, register n is the n-th argument and symbol n its n-th label.
struct edit_text {
    struct ptx_module *m;
    const struct ptx_stmt *stmts;
    uint32_t nstmts, nlabels;
    unsigned nargs;  // number of arguments that it uses
};

// One change: made[first .. first + count) is inserted, or a statement is deleted.
//   key: 4 * statement + EDIT_KEY_*
enum { EDIT_KEY_ENTRY, EDIT_KEY_BEFORE, EDIT_KEY_DELETE, EDIT_KEY_AFTER };
struct edit_change {
    uint64_t key;
    uint32_t first, count;
};

struct edit {
    struct ptx_module *m;
    struct diag_sink *sink;
    int error;             // the first one; it is kept
    uint64_t named;        // larger than every number in names of ours
    uint32_t syms_cap;     // capacity of m->syms
    uint32_t forms_cap;    // capacity of m->forms
    struct arena scratch;  // freed by edit_close
    struct map texts;      // from text to index of `parsed`
    VEC(struct edit_text) parsed;
    VEC(struct ptx_item) items;  // to be placed before the module's items
    // Copies of functions: declarations, to be placed before the module's own items, and definitions, behind
    // them, with what is added last.
    VEC(struct ptx_item) declared, defined;

    // The function being edited, NULL if there is none. Changes made in the order of statements are in
    // `changes`, all others in `late`. Both are sorted by key when they are merged; of equal keys, the late
    // one was made later.
    struct ptx_func *f;
    uint32_t nregs;
    bool set;                    // an operand was changed in place
    VEC(struct ptx_var *) vars;  // new registers
    VEC(struct ptx_stmt) made;
    VEC(struct edit_change) changes, late;
};

// edit.c
void edit_fail(struct edit *e, int error);
void *edit_alloc(struct edit *e, size_t count, size_t size);  // in the module; NULL after a failure
uint32_t edit_new_sym(struct edit *e, struct ptx_sym sym, bool global);  // 0 after a failure
void edit_change_at(struct edit *e, uint64_t key, uint32_t first, uint32_t count);

// edit_text.c
const struct edit_text *edit_text_find(struct edit *e, const char *text);       // NULL after a failure
const struct ptx_form *edit_form(struct edit *e, const struct ptx_form *form);  // the module's own
void edit_unspell(struct ptx_operand *o);  // detaches it from its source text

// edit_item.c
void edit_place_items(struct edit *e);

#endif
