// SPDX-License-Identifier: MIT
// Private to the pass_check*.c files.
#ifndef MOAT_PASS_PASS_CHECK_STATE_H
#define MOAT_PASS_PASS_CHECK_STATE_H

#include "base/vec.h"
#include "flow/multiples.h"
#include "kcheck/kcheck.h"
#include "kcheck/kcheck_shadow.h"
#include "pass/pass.h"
#include "pass/pass_check.h"

// A pointer in a parameter of a function; whoever calls the function passes its bounds too.
struct check_slot {
    uint32_t param, offset;  // index of the parameter, byte in it
    uint32_t base, size;     // symbols of the parameters that were added for its bounds
};
enum { CHECK_MOST_SLOTS = 24 };
struct check_slots {
    uint32_t n;
    uint32_t returned;  // index of the slot whose pointer, or one computed from it, the function always
                        // returns; CHECK_MOST_SLOTS if there is none
    struct check_slot at[CHECK_MOST_SLOTS];
};

// The module.
struct checking {
    struct pass_context *c;
    uint32_t variable;     // symbol of KCHECK_VARIABLE
    uint32_t call, enter;  // those of functions that call KCHECK_ACCESS and KCHECK_ENTER
    uint32_t find;         // symbol: the function that calls KCHECK_BOUNDS; PTX_NONE: no kernel calls malloc
    uint32_t made;         // symbol: the table of maps that kernels make; PTX_NONE: none does
    uint32_t frees;        // symbol: what kernels call to free memory, PTX_NONE
    bool *may_free;        // by index of result->funcs: the function may call it
    struct ptx_func **children;  // by index of result->funcs: what checked code launches; NULL: it is not
    struct ptx_func **copies;    // by index of result->funcs: what checked code calls; NULL: unchanged
    struct check_slots **slots;  // by index of result->funcs: NULL if the function's callers pass no bounds
    struct map by_sym;           // names of the program's functions, to indices
    bool *disturbs;  // by index of result->funcs: it may free memory, or order what other threads have freed
    bool *taken;     // by symbol: the function's address is taken; of `disturbs`
    bool joined;     // functions of other texts may be called through pointers
    uint32_t tag;    // of the text
    bool foreign;    // pass_check.h
    // Accesses are compared with the shadow (pass_check_shadow.c) in place of bounds; shift 0: they are not.
    struct {
        unsigned shift;
        bool unloaded;  // the byte of the shadow is not loaded, and nothing is found
        bool roots;     // what is inside the buffer of a parameter is not compared with it
    } shadow;
    uint32_t counted_to, lines;  // the text before counted_to has so many line breaks
    VEC(struct pass_check_site) sites;
    VEC(struct pass_check_kernel) kernels;
    VEC(struct pass_check_func) funcs;
};

// An access that is checked: row `row` of ptx_stmt_mem.
struct check_access {
    uint32_t stmt, site;
    uint32_t align;  // what its address must be a multiple of
    uint8_t row;
    uint8_t level;  // of its range; CHECK_UNCHECKED: it has none
    struct ptx_mem mem;
    struct roots_of root;
    // Of a copy of a box: index of the first pair of its tensor map; CHECK_MADE if it is no parameter;
    // PTX_NONE if nothing is known of it. mem.addr is a PTX_TUPLE on the side of the tensor, which has no
    // root.
    uint32_t map;
};
#define CHECK_MADE (PTX_NONE - 1)

// How many checks of a segment there may be whose addresses depend on each other's accesses.
enum { CHECK_LEVELS = 4, CHECK_UNCHECKED = UINT8_MAX };

// An index that is compared in place of an address (pass_check_index.c): the address is the root's parameter
// plus scale times the index, widened, plus `at`, where the range begins.
struct check_index {
    uint32_t value;
    uint32_t scale;  // 0: the address is compared
    bool is_signed;
    int64_t at;
};

// A check of a segment: bytes [low, high) from a base on, for accesses with one guard.
struct check_range {
    uint32_t at;    // the statement before which it is made
    uint8_t level;  // 0: where the segment starts, or where another of its accesses need not be made before
    struct roots_of root;
    uint32_t value;  // of the base's register, REACH_NONE if the base is a symbol
    uint32_t sym;
    uint32_t reg;          // the base's register where the value is read
    uint32_t guard;        // register, PTX_NONE without
    uint32_t guard_value;  // what it holds
    bool guard_negated;
    int64_t low, high;
    uint32_t first_width, last_width;  // of the accesses at both ends
    // 0: aligned whenever it is inside. Else the byte at `aligned_at` from the base on must be at a multiple
    // of `align`; by_host: the pair accepts nothing unless it is.
    uint32_t align;
    int64_t aligned_at;
    bool by_host;
    bool known;     // it is inside a range of the segment's `known`
    bool joined;    // an earlier range's comparison is that of its index too
    uint32_t pair;  // index of the kernel's pairs, PTX_NONE: it is compared with none
    struct check_index index;
};

// Statements [first, last] of a block; ranges and accesses are slices of the function's lists.
//
// If all checks are made where it starts, the branch to the slow copy stands there. In a `late` segment some
// addresses are known only after other accesses have been made. There the branch stands before statement
// `branch`. Accesses before it, all of them loads, are made only where no check has failed of those that
// their level depends on, and until there nothing is written that the slow copy reads when it starts anew. In
// a loop with a slow copy a further branch stands at the start, for the checks of level 0.
struct check_segment {
    uint32_t first, last;
    uint32_t branch;
    bool late;
    uint32_t first_range, nranges;
    uint32_t first_access, naccesses;
    uint32_t end;  // where its slow copy is put: the end of the function, or of the inner scope it is in
    // Some of its ranges, or all, were checked before: by the segment of this index, unless that has failed,
    // or with PTX_NONE by one that has not.
    uint32_t known;
    bool all_known;
    bool asked;           // another one's `known` is this one
    uint32_t bad;         // then the register that says whether a check has failed
    uint32_t loop;        // that is copied, PTX_NONE if it is in none
    uint32_t slow, back;  // labels; back: PTX_NONE in such a loop
};

// A loop with a slow copy.
struct check_loop {
    uint32_t number, end;       // its index; as in struct check_segment
    uint32_t nblocks, *blocks;  // ascending
    bool emitted;
};

// What is known of a block on account of copied loops.
struct check_copied {
    uint32_t loop;   // that it is in, PTX_NONE
    uint32_t slow;   // label of its copy there
    uint32_t begin;  // label of the block itself, if a copy of the block before it goes there; PTX_NONE
};

// An instruction with accesses that is performed or left out as a whole; a slice of k->whole_accesses.
struct check_whole {
    uint32_t stmt, first, n;
    uint32_t end;                  // as in struct check_segment
    uint32_t slow, perform, past;  // labels
};

// How the bounds of a root are kept: registers for base and size. If its block is not live, base is the
// pointer itself and size is 0.
struct check_bounds {
    uint32_t base, size;  // registers
    bool needed;
    // Most checks of a root are of as many bytes. For these a register has what their distance from the base
    // must be less than; span 0: none has it.
    uint32_t span, limit;
};

// Registers with the bounds of the pointer that was looked up last, and the pointer.
struct check_memo {
    uint32_t last, base, size;
};

// Whether a DEF can be computed at the statement `first`.
struct check_asked {
    uint32_t first;
    bool can;
};

struct ranges;

// What a proof may spare of a kernel. It is built with the variant that checks everything, and used by the
// one that checks the rest.
struct check_proof {
    struct ranges *ranges;  // NULL: nothing
    struct arena arena;
    bool *may_cover;    // by access of the proof: a usual launch bounds it
    uint8_t *powers;    // by access of the proof: of two, of which a usual launch makes distances multiples
    bool depends;       // what a usual launch does not bound, others may
    uint32_t *site_at;  // by statement: the site of its first access, PTX_NONE
    // By statement: its first access of the proof, PROOF_NONE. Those of one statement stand together.
    uint32_t *access_at;
};

// Bounds that a call passes. They are put into registers behind the statement that stores the pointer into
// the argument, or before the call if a register is the argument.
struct check_pass {
    uint32_t call, store;        // statements
    struct ptx_operand pointer;  // register or number; kind PTX_SINK if it is not known
    struct roots_of root;
    uint32_t base, size;  // registers
};

// Registers of a function whose accesses are compared with the shadow.
struct check_shadow_regs {
    uint32_t base, zero;  // upper half of the shadow's address; kcheck_module.zero
    uint32_t there;       // the base is known, PTX_NONE where it always is
    uint32_t at, low, high, byte, next, offset, rest;
};

// What is saved while KCHECK_ACCESS runs for a statement: registers that live there, a slice of k->saved.
struct check_saved {
    uint32_t first, n;
};

// Where a register is, in the slow copy of a segment.
struct check_kept {
    bool has_slot;
    bool stored;  // memory has its value
    bool only;    // the register has not
    uint32_t slot;
};

// A call of free: `store` puts the pointer, a register, into the argument.
struct check_free {
    uint32_t call, store, site;
    struct ptx_operand pointer;
};

// The function that is rewritten.
struct check_func {
    struct checking *k;
    struct ptx_func *f;
    struct str name;            // the program's
    struct check_proof *proof;  // NULL in functions that are no kernels
    bool rest;                  // checks only what the proof cannot cover
    bool child;                 // a kernel that kernels launch
    bool in_place;              // a function that is no copy: its address is taken
    struct flow flow;
    const struct cfg *cfg;
    const struct reach *reach;
    const struct roots *roots;
    struct multiples multiples;
    struct arena arena;
    VEC(struct check_access) accesses;
    VEC(struct check_range) ranges;
    VEC(struct check_segment) segments;
    VEC(struct check_loop) loops;
    struct check_copied *copied;  // by block
    VEC(struct check_access) whole_accesses;
    VEC(struct check_whole) wholes;
    // Of maps that it makes (pass_check_made.c): symbol of the memory of a thread's notes, and a register.
    bool makes_maps;
    uint32_t noted, place;
    VEC(struct pass_check_pair) pairs;
    uint32_t most_pairs;
    struct pass_check_func left;
    struct check_bounds *bounds;  // by value
    struct check_bounds *shadow;  // by register index: bounds of what the register holds
    bool *feeds;                  // by DEF: it sets the shadow of its register
    uint8_t *levels;              // by DEF in the open segment: the level of an access that depends on it
    uint32_t *read_from;          // by register index: the start of a segment that reads what it held before
    uint32_t *joins_at;           // by block: its first JOIN, REACH_NONE
    uint32_t *next_join;          // by value - ndefs: the next JOIN of the block
    VEC(uint32_t) params;         // offsets of parameters whose bounds are looked up at the entry
    VEC(struct check_bounds) param_bounds;
    struct check_asked *asked;        // by DEF
    uint32_t *renamed;                // by DEF: register of its copy in the current segment, PTX_NONE
    uint32_t *renamed_in;             // by DEF: number of the segment that it was copied for
    const struct check_slots *slots;  // pointers that come with their bounds; NULL: none
    struct check_bounds slot_bounds[CHECK_MOST_SLOTS];
    VEC(struct check_memo) memos;
    uint32_t *memo_of;  // by value: index of the memo that has its bounds, PTX_NONE
    VEC(struct check_free) frees;
    VEC(struct check_pass) passes;  // those of a call together, in the order of the callee's slots
    VEC(uint32_t) declared;         // symbols that the function's outermost scope declares
    uint32_t hidden;                // symbol of the hidden parameter, PTX_NONE in functions
    VEC(uint32_t) saved;            // numbers of registers
    struct check_saved *saved_at;   // by statement; NULL: nothing is saved
    uint32_t frame;                 // symbol of the memory where they are saved
    struct check_kept *kept;        // by index of the register
    bool keeps;                     // code is in the slow copy of a segment
    // Scratch registers.
    uint32_t t, base, limit, size, root, what, verdict, bad, other;
    uint32_t word, first, slot, x, ok, any, at_frame;
    uint32_t narrow, narrow_base, narrow_limit;  // of 32 bits
    uint32_t bad_at[CHECK_LEVELS];               // by level: some check has failed
    struct check_shadow_regs shadow_regs;
};

// pass_check_plan.c: finds accesses, segments and pairs. 0 or a negative code.
int check_plan(struct check_func *k);
bool check_is_pure(const struct check_func *k, const struct ptx_stmt *s);
bool check_is_memory(enum ptx_space space);
// With a shadow, whether accesses of a space are checked, and whether it is the shadow that is asked about
// those with a root: for variables, whose bounds are constants, it is not.
bool check_is_shadowed(const struct check_func *k, struct roots_of root, enum ptx_space space);
bool check_by_shadow(const struct check_func *k, struct roots_of root);
// Returns why an access of a space has no bounds.
enum pass_check_left check_why_unknown(enum ptx_space space);
// Whether the value is defined at or after a statement of the statement's block.
bool check_is_later(const struct check_func *k, uint32_t value, uint32_t first);
// Whether a value is there before the statement `first`, or can be computed there.
bool check_is_available(struct check_func *k, uint32_t value, uint32_t first);

// pass_check_index.c: chooses the pair that a range is compared with, if it has one, and whether by an index.
void check_choose_pair(struct check_func *k, struct check_range *r);

// pass_check.c: whether a loop around the statement can see what other kernels write meanwhile.
bool check_waits(const struct ptx_stmt *s);

// Whether a statement may be executed in one place by some lanes of a warp and in another by others.
bool check_may_copy(const struct check_func *k, const struct ptx_stmt *s);

// pass_check_loop.c: loops with a slow copy. check_find_loops requires the segments; 0 or a negative code.
int check_find_loops(struct check_func *k);
void check_open_loops(struct check_func *k);  // makes their labels
bool check_is_bra(const struct ptx_stmt *s);
// Whether control may go from a block to the next one, other than by a branch.
bool check_falls(const struct check_func *k, uint32_t block);
// Returns the index of the first segment that starts at the statement or behind it.
uint32_t check_first_segment(const struct check_func *k, uint32_t stmt);

// pass_check_known.c: segments whose checks another one has made. Requires check_find_loops; 0 or a negative
// code.
int check_find_known(struct check_func *k);

// pass_check_space.c: variables of every space.
bool check_is_variable(struct roots_of root);
bool check_is_global(enum ptx_space space);  // or generic
// Whether the root is the shared memory whose size the launch gives.
bool check_is_dynamic(const struct check_func *k, struct roots_of root);
// Returns whether the root is an address in another block's shared memory, made by mapa. *variable is what it
// was made from; OTHER if that is not known.
bool check_is_mapped(const struct check_func *k, struct roots_of root, struct roots_of *variable);
// Returns the variable that an address in another block's shared memory was made from; else the root itself.
struct roots_of check_variable_of(const struct check_func *k, struct roots_of root);
// Code that sets registers of 64 bits to the bounds of such an address, the value v, behind the mapa.
void check_mapped_bounds(struct check_func *k, enum edit_place place, uint32_t at, uint32_t v, uint32_t base,
                         uint32_t size);
int check_find_declared(struct check_func *k);                     // fills k->declared; 0 or -ENOMEM
bool check_is_anywhere(const struct check_func *k, uint32_t sym);  // it can be named at any place
bool check_is_narrow(const struct check_func *k, uint32_t reg);    // it has 32 bits
// Whether accesses of a space can be compared with the bounds of a root.
bool check_reaches(const struct check_func *k, struct roots_of root, enum ptx_space space);
// Finds the offset of an access in its variable, if that is a constant.
bool check_offset(const struct check_func *k, const struct check_access *a, int64_t *offset);
// Whether the access is inside its variable whatever the program does.
bool check_is_inside(const struct check_func *k, const struct check_access *a);
// Sets the range's alignment for an access whose place in the range is known.
void check_alignment(const struct check_func *k, const struct check_access *a, struct check_range *range);
// Code that sets registers of 64 bits to the address of a variable, and to its size; both are 0 where the
// variable cannot be named.
void check_variable_base(struct check_func *k, enum edit_place place, uint32_t at, struct roots_of root,
                         uint32_t base);
void check_variable_bounds(struct check_func *k, enum edit_place place, uint32_t at, struct roots_of root,
                           uint32_t base, uint32_t size);

// pass_check_variables.c: adds the table of the module's variables.
int check_variables(struct checking *k, struct pass_check *to);

// pass_check_bounds.c: which bounds are needed, and code for them.
int check_need(struct check_func *k);
void check_bounds_registers(struct check_func *k);
void check_bounds_entry(struct check_func *k);
// Code at the start of a block, before statement `at`.
void check_bounds_block(struct check_func *k, uint32_t block, uint32_t at);
// Returns the statement before which code is put that every path into the block executes.
uint32_t check_block_start(const struct check_func *k, uint32_t block);
void check_bounds_after(struct check_func *k, uint32_t stmt, enum edit_place place, uint32_t at);
// Code for the lookup of a pointer, before statement `at`.
void check_lookup(struct check_func *k, enum edit_place place, uint32_t at, struct ptx_operand pointer,
                  uint32_t base, uint32_t size);
// Code that sets a limit to what accesses of `span` bytes must be less than, from the size of a buffer.
void check_set_limit(struct check_func *k, enum edit_place place, uint32_t at, uint32_t limit, uint32_t size,
                     uint32_t span);
const struct check_bounds *check_bounds_of(struct check_func *k, struct roots_of root);
uint32_t check_pair(struct check_func *k, uint32_t offset, uint32_t span);
// Returns the first of the pairs in a row of the tensor map at the offset; PTX_NONE if there is no room.
uint32_t check_map_pairs(struct check_func *k, uint32_t offset);

// Sets two registers to the bounds of a root, or to 0.
void check_set_bounds(struct check_func *k, enum edit_place place, uint32_t at, struct roots_of root,
                      uint32_t base, uint32_t size);

// pass_check_memo.c: lookups that are kept. check_find_disturbing fills k->disturbs; it requires that no
// function has been edited. check_find_memos requires check_need. Both return 0 or a negative code.
// check_memo_entry makes registers, and code at the entry; check_memo_after makes code behind a statement.
int check_find_disturbing(struct checking *k);
// Whether a call through a pointer may reach one of the functions `of`, by index, or one that is not known.
bool check_reaches_any(const struct checking *k, const struct ptx_stmt *s, const bool *of);
int check_find_memos(struct check_func *k);
void check_memo_entry(struct check_func *k);
void check_memo_after(struct check_func *k, uint32_t stmt, enum edit_place place, uint32_t at);

// pass_check_calls.c: bounds that calls pass.
// Lists the functions that are called by their names, each behind those that it calls, except in cycles.
// order has room for all. 0 or a negative code.
int check_call_order(struct checking *k, uint32_t *order);
// Returns the index of the function that a statement calls by its name, PTX_NONE if it does not.
uint32_t check_callee(const struct checking *k, const struct ptx_stmt *s);
// Finds the bounds that calls pass. Requires the slots of the functions that are called. 0 or -ENOMEM.
int check_find_passes(struct check_func *k);
// Finds what a call passes for a pointer of the function that it calls.
struct check_pass check_find_pass(const struct check_func *k, uint32_t call, const struct check_slot *slot);
// Returns the index of the slot that a value is loaded from; CHECK_MOST_SLOTS if it is loaded from none.
uint32_t check_slot_of(const struct check_func *k, uint32_t value);
// Returns the call whose first 8 bytes of result the value holds; PTX_NONE if there is none.
uint32_t check_call_of(const struct check_func *k, uint32_t value);
// Returns what was passed for the pointer that a call has returned and the value holds; NULL if the value is
// something else or that is not known.
const struct check_pass *check_pass_of(const struct check_func *k, uint32_t value);
// Chooses slots: the parameters whose bounds are needed. Requires check_need. 0 or -ENOMEM.
int check_find_slots(struct check_func *k, struct check_slots **out);
void check_add_slots(struct checking *k, struct ptx_func *f, struct check_slots *slots);
// Code for the bounds of a call's arguments; `first` is the call's first item of k->passes. Returns that of
// the next call.
size_t check_emit_passes(struct check_func *k, size_t first);
// Whether a function that a text only declares is one of the device's system.
bool check_is_systems(struct str name);
// Whether the function may call checked functions; and whether it is a kernel that does: they are to know its
// launch.
bool check_calls_checked(const struct check_func *k);
bool check_enters(const struct check_func *k);

// pass_check_child.c: kernels that kernels launch. Requires k->copies; 0 or a negative code.
int check_child_copies(struct checking *k);
// Lets a copy take the addresses of the children.
void check_child_redirect(const struct checking *k, struct ptx_func *f);
// Whether the text is the device's runtime, which is not the program's: it launches kernels itself.
bool check_is_runtime(const struct checking *k);
bool check_launches(const struct check_func *k);  // the function takes the address of one
// Whether a pointer is to the memory where a launch's parameters are put, which the runtime has.
bool check_is_buffer_of_launch(const struct check_func *k, struct roots_of root);

// pass_check.c: Returns NULL if out of memory.
struct ptx_func *check_copy(struct checking *k, const struct ptx_func *f, struct str prefix);

// pass_check_free.c: fills k->may_free; finds a function's calls of free; code that judges what they are
// given, before statement `store`; and code behind a call that may free memory.
int check_find_frees(struct checking *k);
int check_find_calls_of_free(struct check_func *k);
void check_emit_free(struct check_func *k, const struct check_free *f);
void check_drop_freed(struct check_func *k, uint32_t stmt, enum edit_place place, uint32_t at);

// pass_check_emit.c
void check_emit(struct check_func *k);
// Sets k->limit, and returns the operand that is the base. address: a register that holds the address of the
// range's first byte, for ranges without a root.
struct ptx_operand check_range_bounds(struct check_func *k, uint32_t at, const struct check_range *r,
                                      uint32_t address);

// pass_check_slow.c
void check_place_slow(struct check_func *k);
// Code before statement `at`. check_address: k->t is an address. check_prepare: k->what and k->root describe
// an access to KCHECK_ACCESS; k->ok is set if it is inside, if `known`. check_call: asks about k->t;
// k->bad is then set if the access, which is one of `stmt`, is to be skipped. check_clear: what a statement
// would have written is 0 where the predicate is set; PTX_NONE: always.
void check_address(struct check_func *k, uint32_t at, const struct ptx_operand *addr);
void check_prepare(struct check_func *k, uint32_t at, const struct check_access *a, bool known);
void check_call(struct check_func *k, uint32_t at, uint32_t stmt);
void check_clear(struct check_func *k, uint32_t at, const struct ptx_stmt *s, uint32_t predicate);

// pass_check_whole.c: returns the operand that says which blocks of the cluster a copy is made to, NULL if it
// says none.
const struct ptx_operand *check_copy_blocks(const struct ptx_stmt *s, const struct ptx_mem *barrier);
// pass_check_wgmma.c: makes a kernel PASS_CROWDED if its products leave too few registers. Requires that
// nothing has been edited. 0 or -ENOMEM.
int check_find_crowded(struct pass_context *c, uint32_t index);

// pass_check_save.c: registers that are kept in memory while KCHECK_ACCESS runs.
int check_find_saved(struct check_func *k);  // 0 or a negative code
void check_save_open(struct check_func *k);  // declares the memory
void check_save(struct check_func *k, uint32_t at, uint32_t stmt);
void check_restore(struct check_func *k, uint32_t at, uint32_t stmt);
// In the slow copy of a segment: at its start and end; before a register is read; and before a statement.
void check_save_begin(struct check_func *k, const struct check_segment *g);
void check_save_end(struct check_func *k, uint32_t at, const struct check_segment *g);
void check_save_need(struct check_func *k, uint32_t at, uint32_t reg);
void check_save_stmt(struct check_func *k, uint32_t at, uint32_t stmt);

// pass_check_whole.c: instructions that are performed or left out as a whole. check_plan_whole finds the
// accesses of one that is no plain access; 0 or -ENOMEM.
int check_plan_whole(struct check_func *k, uint32_t stmt);
void check_emit_whole(struct check_func *k, struct check_whole *w);
void check_place_wholes(struct check_func *k);

// pass_check_tensor.c: copies of boxes, whose tensor maps are parameters of the kernel.
// Whether the access is the one of the tensor.
bool check_is_box(const struct check_access *a);
// Whether a statement copies a box of a kind that is known.
bool check_copies_box(const struct ptx_stmt *s);
// Returns `map` of struct check_access for the tensor map that a statement uses.
uint32_t check_find_map(struct check_func *k, uint32_t stmt);
// Code that sets `size` to the bytes of a box in shared memory, 0 if they are not known.
void check_box_bytes(struct check_func *k, uint32_t at, const struct check_access *a, uint32_t size);
// Code that sets k->bad if something has to be compared on the tensor's side; and code that compares, as
// check_one of pass_check_whole.c does.
void check_box_quickly(struct check_func *k, uint32_t at, const struct check_access *a);
void check_box(struct check_func *k, uint32_t at, const struct check_access *a);
// Code that lets k->root and k->what describe the tensor's side to KCHECK_ACCESS.
void check_prepare_box(struct check_func *k, uint32_t at, const struct check_access *a);

// pass_check_made.c: maps that the kernel makes. Whether it makes any; code for them at the entry, and before
// a statement.
bool check_makes_maps(struct check_func *k);
void check_open_made(struct check_func *k);
void check_emit_made(struct check_func *k, uint32_t stmt);
// Code that sets k->place to the address of the struct kcheck_map of a map, and `there` if it is one of that
// map, of which something has to be compared. It changes k->t, k->word and k->first.
void check_find_place(struct check_func *k, uint32_t at, const struct ptx_operand *map, uint32_t there);

// pass_check_wgmma.c: matrices in shared memory that a descriptor in a register gives the place of.
// Whether the access is one of a wgmma whose matrices have a known size.
bool check_is_described(const struct check_func *k, const struct check_access *a);
// Code that compares it with the block's shared memory, as check_one of pass_check_whole.c does; and code
// that lets k->root and k->what describe it to KCHECK_ACCESS.
void check_described(struct check_func *k, uint32_t at, const struct check_access *a);
void check_prepare_described(struct check_func *k, uint32_t at, const struct check_access *a);

// pass_check_shadow.c: --mode=shadow.
// Code at the entry of a function.
void check_shadow_entry(struct check_func *k);
// Sets `bad` if the shadow forbids an access of `width` bytes at the address in a register of 64 bits;
// `more`: it may be set already. guard: kind PTX_SINK without.
void check_shadow_access(struct check_func *k, uint32_t at, uint32_t address, uint32_t width,
                         struct ptx_operand guard, uint32_t bad, bool more);
// The same for both ends of a range, whose first byte is at the address in k->t.
void check_shadow_range(struct check_func *k, uint32_t at, const struct check_range *r,
                        struct ptx_operand guard, bool more);

// pass_check.c: marks the functions whose addresses are taken, by symbol: an array of m->nsyms.
void check_find_taken(const struct ptx_module *m, bool *taken);
// The same file: rewrites a module whose `shadow` is set. 0 or a negative code.
int check_module(struct checking *k);

// pass_check_prove.c: proofs of kernels.
// Builds the proof, and says what it may cover; `p` is zero but for its arena. 0, -ENOMEM, or -E2BIG: there
// is none.
int check_prove_look(struct flow *flow, struct check_proof *p);
// Returns the number of an access in the proof, PROOF_NONE if it is not there.
uint32_t check_prove_find(const struct check_proof *p, uint32_t stmt, unsigned row);
// Builds the proof of a kernel whose checks are planned, and fills the proof of its row. 0 or -ENOMEM.
int check_prove(struct check_func *k, struct pass_check_kernel *row);
void check_prove_free(struct check_proof *p);
// Returns whether a proof may cover the access.
bool check_prove_covers(const struct check_proof *p, uint32_t stmt, unsigned row);

// pass_check_site.c: describes an access for reports. 0 or -ENOMEM.
int check_site(struct check_func *k, const struct check_access *a, uint32_t *number);

#endif
