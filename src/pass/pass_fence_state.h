// SPDX-License-Identifier: MIT
// Private to the pass_fence*.c files.
#ifndef MOAT_PASS_PASS_FENCE_STATE_H
#define MOAT_PASS_PASS_FENCE_STATE_H

#include "flow/multiples.h"
#include "kfence/kfence.h"
#include "pass/pass_check_state.h"

#define FENCE_FIND EDIT_PREFIX "fence_find"
#define FENCE_NOTE EDIT_PREFIX "fence_note"
#define FENCE_SHARED EDIT_PREFIX "fence_shared"
#define FENCE_TOOK EDIT_PREFIX "fence_took"
#define FENCE_OBJECT EDIT_PREFIX "fence_object"
#define FENCE_MAP EDIT_PREFIX "fence_map"
#define FENCE_STACK EDIT_PREFIX "fence_stack"
#define FENCE_CALLABLE EDIT_PREFIX "fence_callable_"  // followed by the number of a shape

// An access that the variant with the mask only masks: of global memory, by an address that the kernel
// computes from a parameter, or of the block's shared memory.
struct fence_masked {
    uint32_t stmt;
    unsigned row;  // of ptx_stmt_mem
    uint32_t reg;  // of its address; PTX_NONE: the address is a variable's in shared memory, and `start`
    uint32_t sym;  // that variable
    int32_t start, width;
    uint32_t align;   // what the address must be a multiple of; 1 if that is certain
    uint32_t offset;  // global: of the parameter
    uint32_t asked;   // and what that must be a multiple of
    bool shared;
    bool generic;       // by a generic address of the shared memory of a block of the cluster
    uint32_t variable;  // the access is meant for this variable of the module in global memory; PTX_NONE
    uint8_t lanes;      // only lanes below make the access; 0: all
    int32_t low, high;  // shared, or of a variable: bytes from the register on that are compared
    uint8_t known;      // by what flow/multiples.h says, the register is a multiple of 2^known
    // By pass_fence_near.c: shared, in place: what the register is to be a multiple of 2^power of.
    uint8_t power;
    // By pass_fence_near.c: what code the access needs, and whether that may change the register itself.
    // notes: an address outside of the partition is noted; masks: and changed.
    // often: it is in a loop; shares: other accesses would profit from a change.
    bool notes, masks, aligns, in_place, often, shares;
};
typedef VEC(struct fence_masked) fence_plan;

// Returns whether the address is made from a parameter, at which the host looks.
static inline bool fence_is_of_param(const struct fence_masked *m)
{
    return !m->shared && !m->generic && m->variable == PTX_NONE;
}

// An access of local memory.
struct fence_local {
    uint32_t stmt;
    uint32_t decl;  // statement that declares the variable that the pointer was made from; PTX_NONE: unknown
    uint8_t row;    // of ptx_stmt_mem
    bool inside;    // of the variable, for certain
    bool aligned;   // for certain
};
typedef VEC(struct fence_local) fence_locals;

// An access by an address that was made from that of a variable of the module in global memory, or from a
// pointer that the function has loaded or got, or by a generic address of shared memory.
struct fence_variable {
    uint32_t stmt;
    uint32_t sym;  // of the variable; PTX_NONE: a pointer
    uint8_t row;   // of ptx_stmt_mem
    bool shared;   // made from the generic address of a shared variable, or by mapa
};
typedef VEC(struct fence_variable) fence_variables;

// An access: its statement, and its place in ptx_stmt_mem.
struct fence_row {
    uint32_t stmt;
    uint8_t row;
};
typedef VEC(struct fence_row) fence_rows;

// A statement that uses a texture or surface whose handle is a parameter of the kernel.
struct fence_handle {
    uint32_t stmt;
    uint32_t offset;  // of the parameter
    bool surface;
};
typedef VEC(struct fence_handle) fence_handles;

// Calls through pointers with parameters of the same sizes.
struct fence_shape {
    const struct ptx_proto *proto;  // NULL: any
    uint32_t sym;                   // the function that returns whether a pointer may be called
};

// How variants keep an access inside the partition. By check there is no variant for launches without proof:
// the kernel itself checks.
enum fence_way { FENCE_BY_MASK, FENCE_BY_MODULO, FENCE_BY_CHECK };

// The module.
struct fencing {
    struct checking all;  // for sites, which are described as those of pass_check
    uint32_t variable;    // symbols: KFENCE_VARIABLE, and the functions above
    uint32_t find, note, shared, object, map;
    fence_plan *plans;           // by index of result->funcs
    fence_locals *locals;        // by index of result->funcs
    fence_variables *variables;  // by index of result->funcs
    fence_handles *handles;      // by index of result->funcs
    fence_rows *grid_words;      // by index of result->funcs: accesses of them, as flow/grid_words.h says
    struct ptx_func **variants;  // NULL: none
    bool *bare;                  // by index of result->funcs: a copy without a fence is kept
    // By index of result->funcs: the variants in which the accesses in `covered` have no fence. NULL: none.
    struct ptx_func **rests;
    fence_rows *covered;
    fence_plan *rest_plans;
    enum fence_way way;
    bool watchdog;    // loops look at the clock
    bool has_window;  // the module has variables in global memory
    // A special register has the bytes of shared memory with those of the system, and blocks may be in
    // clusters: that is so from sm_90 on.
    bool exact_shared;
    uint32_t taker[2], instead[2];  // malloc and its kin, and what is called in their place; PTX_NONE
    // Calls.
    uint32_t nsyms;     // of the module before it is edited
    bool *taken;        // by symbol: the function's address is taken
    uint32_t *func_of;  // by symbol: index of result->funcs, PTX_NONE
    bool *deep;         // by index of result->funcs: a recursive function, or one that such functions lead to
    bool recursive;     // there is one
    bool open;          // functions of other texts may be called through pointers
    uint32_t stack;     // symbol of KFENCE_STACK, if there is a recursive function
    VEC(struct fence_shape) shapes;
};

// Bytes that alignments may take off an address beside what pass_fence_far.c finds.
enum { FENCE_FAR_SLACK = 8 << 20 };
enum { FENCE_FRAME = 8 };  // bytes of a variable of ours whose address says where the frame is
// What a thread notes, in a register each in which bits are set: the pointer was outside of the partition, in
// bits that k->outside has; was not aligned; was outside of shared memory. FENCE_APART is a predicate: the
// pointer was outside of its variable.
enum fence_note { FENCE_MASKED, FENCE_SKEWED, FENCE_OUTSIDE, FENCE_APART, FENCE_NOTES };
enum { FENCE_MOST_SHARED = 128 };  // bytes of a masked access
enum { FENCE_ROWS = 3 };           // most memory operands of one instruction that are fenced

// Accesses by one register that are compared together: pass_fence_group.c.
struct fence_group {
    uint32_t reg, end;  // they are made before this statement; 0: there is no such group
    uint32_t good;      // predicate: bytes [low, high) from the register on are inside, and it is aligned
    int64_t low, high;
    uint32_t align;
};
enum { FENCE_GROUPS = 4 };  // at a time

// A function that is rewritten.
struct fence_func {
    struct fencing *k;
    struct check_func site;  // for check_site: its name and statements
    struct ptx_func *f;
    const fence_plan *plan;  // NULL: nothing is masked
    size_t next;             // item of the plan
    const fence_locals *locals;
    size_t next_local;
    const fence_variables *variables;
    size_t next_variable;
    const fence_handles *handles;
    const fence_rows *grid_words;  // NULL: they are fenced
    const fence_rows *covered;     // accesses that have no fence; NULL: there is none
    bool deep;                     // calls look whether the stack has room
    uint32_t frame;                // symbol of a local variable of ours; PTX_NONE: there is none
    // Registers.
    uint32_t noted[FENCE_NOTES];           // whether masks had to change something
    uint32_t pages, base64;                // for modulo
    uint32_t base, outside;                // the upper halves of the module's variable
    uint32_t top;                          // the upper half of the partition's last address
    uint32_t rounded[MULTIPLES_MOST + 1];  // `end`, made a multiple of 2^i; 0: not yet
    uint32_t limit;                        // bytes of shared memory
    uint32_t own, end;        // where the block's shared memory begins and ends; without clusters 0 and limit
    uint32_t to[FENCE_ROWS];  // fenced pointers
    uint32_t narrow[FENCE_ROWS];  // and those into shared memory
    uint32_t low, high, bits, bad, what;
    // Of pointers that the function has loaded: the ends of the heap of malloc in kernels, as they were when
    // it looked last. 0: it has none.
    uint32_t heap_low, heap_high;
    struct fence_group groups[FENCE_GROUPS];
    unsigned next_group;
    uint32_t last[2];  // the texture and the surface that were found last; 0: the function has none
    uint32_t size;     // bytes of the access that fence_size has looked at
    uint32_t own_size, wide[2];
    uint32_t leave;          // label to which a copy that is wrong branches; PTX_NONE: the statement is none
    uint32_t ends;           // predicate: whether the thread ends there; PTX_NONE: it goes on
    uint32_t start, rounds;  // for loops: when the function began; 0: it has none
};
enum { FENCE_WIDEST = 1 << 24 };               // bytes of an access
enum { FENCE_MBARRIER_MOST = (1 << 20) - 1 };  // arrivals, or bytes, that an mbarrier can wait for

// pass_fence_params.c: has a kernel load its parameters by their names. Requires that nothing has been
// analysed. 0 or -ENOMEM.
int fence_name_params(struct ptx_func *f);

// Whether an access of parameters has its address in a register; puts code in front of it. 0 or a negative
// code.
bool fence_is_loose_param(const struct ptx_mem *mem);
int fence_param(struct fence_func *k, uint32_t at, const struct ptx_mem *mem);

// pass_fence.c: calls of malloc in a statement become calls of ours.
void fence_redirect(struct fencing *k, struct ptx_func *f, uint32_t at);

// pass_fence_emit.c: rewrites a function, that of the index or a copy of it. covered: what has no fence;
// NULL: nothing. 0 or a negative code.
int fence_func(struct fencing *k, uint32_t index, struct ptx_func *f, const fence_plan *plan,
               const fence_rows *covered);

// What is recorded of an access.
unsigned fence_flags(const struct ptx_mem *mem, uint32_t align);
// Describes a statement. 0 or -ENOMEM.
int fence_site(struct fence_func *k, uint32_t at, uint32_t *site);
// Jumps over what follows, to the label that it returns, if the statement's guard is false.
uint32_t fence_unless_guarded(struct fence_func *k, uint32_t at);
// Records `what` (KFENCE_WHAT) with the register `value`, of 64 bits but not k->what, and ends the thread, or
// branches to k->leave.
void fence_end(struct fence_func *k, uint32_t at, uint64_t what, enum kfence_kind kind, uint32_t value);

// Puts code in front of an access of global or shared memory. row: its registers; number: of ptx_stmt_mem.
// Returns 0 or a negative code.
int fence_row(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, unsigned row, unsigned number);
// Sets a register of 32 bits to an address in shared memory, with its offset.
void fence_load_shared(struct fence_func *k, uint32_t at, const struct ptx_operand *addr, uint32_t to);

// pass_fence_copy.c: whether a statement copies bytes asynchronously, by an instruction whose wrong twin is
// left out. fence_copy_mem is its ptx_stmt_mem.
bool fence_is_copy(const struct ptx_stmt *s);
unsigned fence_copy_mem(const struct ptx_func *f, const struct ptx_stmt *s, struct ptx_mem mem[PTX_MAX_MEM]);
int fence_copy(struct fence_func *k, uint32_t at);

// pass_fence_local.c: finds a function's accesses of local memory. Requires that nothing has been edited.
int fence_find_locals(struct fencing *k, uint32_t index, fence_locals *to);
// Sets a register of 64 bits to an address, with its offset.
void fence_load_address(struct fence_func *k, uint32_t at, const struct ptx_operand *addr, uint32_t to);
// Puts code in front of an access, or none if it is certain to be right. Returns false if it is none of
// those.
bool fence_local(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, unsigned row, int *err);

// pass_fence_variable.c: returns the bytes of a variable in global memory that every module linked with this
// one sees as this one does; 0 for other symbols.
uint64_t fence_variable_bytes(const struct ptx_module *m, uint32_t sym);
// Returns the greatest n, up to 5, so that the variable's address is a multiple of 2^n, and how far an offset
// is behind a multiple of that.
unsigned fence_variable_power(const struct ptx_module *m, uint32_t sym);
int32_t fence_variable_skew(const struct ptx_module *m, uint32_t sym, int32_t low);
// Returns the variable that the access of an address with such a root may be compared with; PTX_NONE: none.
uint32_t fence_variable_of(const struct roots *r, struct roots_of root, const struct ptx_mem *mem);
// Returns whether the address was made from the generic one of a shared variable, or of another block's
// shared memory.
bool fence_is_generic_shared(const struct roots *r, struct roots_of root, const struct ptx_mem *mem);
// Finds a function's accesses of variables, and by pointers. Requires that nothing has been edited.
int fence_find_variables(struct fencing *k, uint32_t index, fence_variables *to);
// Returns what the access is compared with; NULL: none of these. Statements are asked for in order.
const struct fence_variable *fence_variable_at(struct fence_func *k, uint32_t at, unsigned row);
// Sets k->bits to 0 if the bytes from the pointer in the register `to` and the offset on are the variable's.
void fence_compare_variable(struct fence_func *k, uint32_t at, uint32_t sym, uint32_t to, int64_t offset,
                            uint32_t width);
// Code for a function that has loaded pointers: looks at where the heap of malloc in kernels is.
void fence_load_heap(struct fence_func *k);
// Adds to a predicate that bytes [low, high) from a pointer that was loaded are of the module's window of
// variables, or of the heap of malloc in kernels as it was.
void fence_add_near(struct fence_func *k, uint32_t at, uint32_t to, int64_t low, int64_t high, uint32_t good);
// Code that jumps to a label if an access, which is neither in the partition nor of a variable or not
// aligned, is aligned and of the module's window of variables, or of the heap of malloc in kernels. k->low is
// 0 if it is aligned.
void fence_look_near(struct fence_func *k, uint32_t at, uint32_t to, int64_t offset, uint32_t align,
                     uint32_t inside);
// Code that jumps to a label if an access is aligned and of the block's shared memory, or of that of another
// block of its cluster.
void fence_look_shared(struct fence_func *k, uint32_t at, uint32_t to, int64_t offset, uint32_t align,
                       uint32_t width, uint32_t inside);
// Code for an access of the plan to a variable.
void fence_mask_variable(struct fence_func *k, const struct fence_masked *m, const struct ptx_mem *mem);

// pass_fence_group.c: code for an access in front of all others, that jumps to a label if it is of a group
// that is inside. `to` has its pointer; v: what the access is compared with, besides the partition.
void fence_group(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, uint32_t to,
                 const struct fence_variable *v, uint32_t inside);

// pass_fence_call.c: finds out about the module's calls, before it is edited; adds functions that calls need.
int fence_find_calls(struct fencing *k);
int fence_add_calls(struct fencing *k);
// Code for a call; none for other statements.
int fence_call(struct fence_func *k, uint32_t at);

// pass_fence_barrier.c: whether a statement is a barrier whose number or count is in a register; code for it.
bool fence_is_loose_barrier(const struct ptx_stmt *s);
int fence_barrier(struct fence_func *k, uint32_t at);

// pass_fence_object.c: whether threads that execute the statement end; code for handles and tensor maps.
bool fence_is_refused(const struct ptx_stmt *s);
// Finds the handles that are a kernel's parameters. Requires that nothing has been edited.
int fence_find_handles(struct fencing *k, uint32_t index, fence_handles *to);
// Returns the handle that a statement uses; NULL: it uses none that is a parameter.
const struct fence_handle *fence_handle_at(const fence_handles *all, uint32_t at);
int fence_object(struct fence_func *k, uint32_t at);
// Code that sets a register to the bytes of the elements of the box that a statement copies, whose map has
// been found. Returns the register.
uint32_t fence_box_bytes(struct fence_func *k, uint32_t at);
int fence_descriptor(struct fence_func *k, uint32_t at, const struct ptx_mem *mem);

// pass_fence_loop.c: code for a branch that may close a loop.
int fence_loop(struct fence_func *k, uint32_t at);
bool fence_has_loop(const struct fencing *k, const struct ptx_func *f);

// pass_fence_size.c: puts code in front of a statement if the bytes of one of its accesses are not known:
// k->size gets them. fence_is_wide: the access is such a one. fence_add_size adds them to k->what.
bool fence_is_wide(const struct ptx_mem *mem);
int fence_size(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, unsigned n);
void fence_add_size(struct fence_func *k, uint32_t at);

// pass_fence_mask.c: returns whether a list of accesses, in order, has one.
bool fence_has_row(const fence_rows *all, uint32_t at, unsigned row);
// Finds a kernel's accesses of the words by which the blocks of a cooperative launch wait for each other.
// Only such launches run its variants, and these need no code for them.
int fence_find_grid_words(struct fencing *k, uint32_t index, fence_rows *to);

// pass_fence_mask.c: finds the accesses of a kernel that need only a mask. Requires that nothing has been
// edited.
int fence_find_masked(struct fencing *k, uint32_t index, fence_plan *plan);
// pass_fence_far.c: finds which numbers are added to pointers. Requires that nothing has been edited. 0 or
// -ENOMEM. *out is of the arena.
struct fence_far;
int fence_far_build(const struct ptx_func *f, const struct reach *reach, struct arena *arena,
                    struct fence_far **out);
// Returns the most that a statement's operand of 64 bits, or that of MAD's first two, adds or takes off, in
// bytes; UINT64_MAX: it is not known.
uint64_t fence_far_most(const struct fence_far *s, uint32_t stmt, unsigned operand);
// pass_fence_near.c: finds which accesses of the plan need no code. Requires that nothing has been edited.
// kept: by index of a register, which code may not change it; NULL: it may change all.
int fence_find_near(struct fencing *k, uint32_t index, fence_plan *plan, const bool *kept);
// pass_fence_rest.c: makes the plan of the variant in which some accesses have no fence.
int fence_find_rest(struct fencing *k, uint32_t index, const fence_plan *plan, const fence_rows *covered,
                    fence_plan *rest);
// Adds the kernel's variants to the result: which parameters must point into the partition.
int fence_add_kernel(struct fencing *k, uint32_t index, const fence_plan *plan, const fence_plan *rest,
                     const struct pass_check_kernel *bare);
// pass_fence_bare.c: finds whether a proof at the launch may show that a kernel needs no fence, and then
// fills the proof of its row; lists what the rest variant does not fence, if the kernel is to have one.
// Requires that nothing has been edited. 0 or a negative code.
int fence_find_bare(struct fencing *k, uint32_t index, struct pass_check_kernel *row, fence_rows *covered);
// Code that notes for an access of the plan, if it is made, that the register of 64 bits is above a number.
void fence_note_above(struct fence_func *k, const struct fence_masked *m, uint32_t reg, uint64_t number);
// Code for an access of the plan.
void fence_mask(struct fence_func *k, const struct fence_masked *m, const struct ptx_mem *mem);
// pass_fence_exit.c: code at the exits of a variant: what has noted something branches to a label. -E2BIG for
// what cfg_build says that of.
int fence_exits(struct fence_func *k, uint32_t end);
// Code at the entry and the exits of a variant.
int fence_mask_ends(struct fence_func *k);
bool fence_is_shared(const struct ptx_mem *mem);
bool fence_wants(const struct fence_func *k, const struct ptx_mem *mem);
uint32_t fence_alignment(const struct ptx_mem *mem);
#define FENCE_BEFORE(k, at, text, ...) edit_before((k)->k->all.c->edit, at, text, __VA_ARGS__)

#endif
