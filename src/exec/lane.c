// SPDX-License-Identifier: MIT
#include "exec/lane.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "exec/exec.h"
#include "exec/lanes_row.h"

// --- the tables --------------------------------------------------------------------------------------------

#define LANES_TABLES "exec/lanes_all.def"

enum lane_row {
#define ROW(name, ...) ROW_##name,
#include LANES_TABLES
#undef ROW
    ROW_COUNT,
};

// The modifiers of an instruction, as a set.
enum have {
#define ROUND(mod) HAVE_##mod,
#define FLAG(mod) HAVE_##mod,
#define QUIET(mod) HAVE_##mod,
#include "exec/lanes_flags.def"
    HAVE_SOURCE,
    HAVE_COUNT,
};
_Static_assert(HAVE_COUNT <= 32 && (int)PTX_TYPE_COUNT <= 64, "sets of modifiers and types are words");

#define H(mod) (UINT32_C(1) << HAVE_##mod)
#define ROUND4 (H(RN) | H(RZ) | H(RM) | H(RP))
#define ROUND9 (ROUND4 | H(RNI) | H(RZI) | H(RMI) | H(RPI) | H(RNA))
#define LOGIC (H(AND) | H(OR) | H(XOR) | H(SOURCE))
#define EXTREME (H(FTZ) | H(NAN_RESULT) | H(XORSIGN) | H(ABS) | H(SOURCE))

#define T(type) (UINT64_C(1) << PTX_##type)
#define NO 0
#define I16 (T(U16) | T(S16))
#define I32 (T(U32) | T(S32))
#define I64 (T(U64) | T(S64))
#define I16X2 (T(U16X2) | T(S16X2))
#define ANY16 (I16 | T(B16) | T(F16) | T(BF16))
#define ANY32 (I32 | T(B32) | T(F32) | T(F16X2) | T(BF16X2))
#define ANY64 (I64 | T(B64) | T(F64))
#define HALVES (T(F16) | T(BF16) | T(F16X2) | T(BF16X2))
#define SCALARS (ANY16 | I32 | T(B32) | T(F32) | ANY64)
#define CVT_TYPES (T(U8) | T(S8) | I16 | I32 | I64 | T(F16) | T(BF16) | T(F32) | T(F64))
#define PAIRS (T(F16X2) | T(BF16X2) | T(E4M3X2) | T(E5M2X2))
#define PACKED (I16 | T(U8) | T(S8) | T(U4) | T(S4) | T(U2) | T(S2))

// A row's variant may be a modifier, or one of these: no modifier; any comparison.
#define PTX_MOD_NONE PTX_MOD_UNKNOWN
#define PTX_MOD_COMPARISON PTX_MOD_COUNT

static const struct row {
    const char *name;
    uint16_t op, variant;  // enum ptx_op_id, enum ptx_mod
    uint32_t may, must;
    uint64_t types[2];
} rows[ROW_COUNT] = {
#define ROW(name_, op_, variant_, types0_, types1_, may_, must_, ...) \
    [ROW_##name_] = {#name_, PTX_OP_##op_, PTX_MOD_##variant_, may_, must_, {types0_, types1_}},
#include LANES_TABLES
#undef ROW
};

// --- instruction sets --------------------------------------------------------------------------------------

// An instruction set that is not built has no functions.
#ifdef LANES_HAVE_plain
#define ROW(name, ...) exec_fn lanes_##name##_plain;
#include LANES_TABLES
#undef ROW
static exec_fn *const fns_plain[ROW_COUNT] = {
#define ROW(name, ...) lanes_##name##_plain,
#include LANES_TABLES
#undef ROW
};
#else
#define fns_plain NULL
#endif

#ifdef LANES_HAVE_avx2
#define ROW(name, ...) exec_fn lanes_##name##_avx2;
#include LANES_TABLES
#undef ROW
static exec_fn *const fns_avx2[ROW_COUNT] = {
#define ROW(name, ...) lanes_##name##_avx2,
#include LANES_TABLES
#undef ROW
};
#else
#define fns_avx2 NULL
#endif

#ifdef LANES_HAVE_avx512
#define ROW(name, ...) exec_fn lanes_##name##_avx512;
#include LANES_TABLES
#undef ROW
static exec_fn *const fns_avx512[ROW_COUNT] = {
#define ROW(name, ...) lanes_##name##_avx512,
#include LANES_TABLES
#undef ROW
};
#else
#define fns_avx512 NULL
#endif

static bool has_plain(void)
{
    return true;
}

// Every processor with AVX2 has f16c and lzcnt.
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

// Best first.
static const struct isa {
    const char *name;
    exec_fn *const *fns;
    bool (*here)(void);
} isas[] = {
    {"avx512", fns_avx512, has_avx512}, {"avx2", fns_avx2, has_avx2}, {"plain", fns_plain, has_plain}};
enum { ISA_COUNT = sizeof isas / sizeof *isas };

// NULL: not chosen yet, the best will be. Threads that choose store the same pointer, so relaxed order
// suffices.
static _Atomic(const struct isa *) chosen;

static const struct isa *isa_get(void)
{
    const struct isa *isa = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (isa)
        return isa;
    for (isa = isas; !isa->fns || !isa->here(); isa++)
        assert(isa + 1 < isas + ISA_COUNT);
    atomic_store_explicit(&chosen, isa, memory_order_relaxed);
    return isa;
}

const char *exec_lanes_name(void)
{
    return isa_get()->name;
}

int exec_lanes_force(const char *name)
{
    if (!name) {
        atomic_store_explicit(&chosen, NULL, memory_order_relaxed);
        return 0;
    }
    const struct isa *isa = isas;
    while (strcmp(isa->name, name) != 0)
        if (++isa == isas + ISA_COUNT)
            return -EINVAL;
    if (!isa->fns || !isa->here())
        return -ENOTSUP;
    atomic_store_explicit(&chosen, isa, memory_order_relaxed);
    return 0;
}

exec_fn *lane_fn(uint16_t row)
{
    assert(row < ROW_COUNT);
    return isa_get()->fns[row];
}

unsigned lane_rows(void)
{
    return ROW_COUNT;
}

const char *lane_name(uint16_t row)
{
    assert(row < ROW_COUNT);
    return rows[row].name;
}

// --- picking -----------------------------------------------------------------------------------------------

// The rows of an operation, chained in table order: row number + 1, 0 at the end.
static uint16_t first_row[PTX_OP_COUNT], next_row[ROW_COUNT];

static void chain_rows(void)
{
    for (unsigned r = ROW_COUNT; r-- > 0;) {
        next_row[r] = first_row[rows[r].op];
        first_row[rows[r].op] = (uint16_t)(r + 1);
    }
}

// What a form's modifiers amount to.
struct mods {
    uint32_t have, flags;
    enum ptx_mod variant;
};

// Returns false for a second variant or a second rounding.
static bool add_mod(struct mods *m, enum ptx_mod mod)
{
    switch (mod) {
#define ROUND(mod)               \
    case PTX_MOD_##mod:          \
        if (m->have & ROUND9)    \
            return false;        \
        m->have |= H(mod);       \
        m->flags |= LANES_##mod; \
        return true;
#define FLAG(mod)                \
    case PTX_MOD_##mod:          \
        m->have |= H(mod);       \
        m->flags |= LANES_##mod; \
        return true;
#define QUIET(mod)         \
    case PTX_MOD_##mod:    \
        m->have |= H(mod); \
        return true;
#include "exec/lanes_flags.def"
    default: break;
    }
    if ((int)mod < PTX_TYPE_COUNT)
        return true;
    if (m->variant != PTX_MOD_NONE)
        return false;
    m->variant = mod;
    return true;
}

static int compare_of(enum ptx_mod mod)
{
    switch (mod) {
    case PTX_MOD_EQ: return LANES_EQ;
    case PTX_MOD_NE: return LANES_NE;
    case PTX_MOD_LT: return LANES_LT;
    case PTX_MOD_LE: return LANES_LE;
    case PTX_MOD_GT: return LANES_GT;
    case PTX_MOD_GE: return LANES_GE;
    case PTX_MOD_EQU: return LANES_EQU;
    case PTX_MOD_NEU: return LANES_NEU;
    case PTX_MOD_LTU: return LANES_LTU;
    case PTX_MOD_LEU: return LANES_LEU;
    case PTX_MOD_GTU: return LANES_GTU;
    case PTX_MOD_GEU: return LANES_GEU;
    case PTX_MOD_NUM: return LANES_NUM;
    case PTX_MOD_NAN: return LANES_NAN;
    default: return -1;
    }
}

// Unsigned comparisons have alternative names. Returns the common one.
static enum ptx_mod plain_compare(enum ptx_mod mod, const struct ptx_form *form)
{
    enum ptx_type_class class = ptx_type_class((enum ptx_type)form->types[form->ntypes - 1]);
    if (class != PTX_CLASS_UINT || (form->id != PTX_OP_SET && form->id != PTX_OP_SETP))
        return mod;
    switch (mod) {
    case PTX_MOD_LO: return PTX_MOD_LT;
    case PTX_MOD_LS: return PTX_MOD_LE;
    case PTX_MOD_HI: return PTX_MOD_GT;
    case PTX_MOD_HS: return PTX_MOD_GE;
    default: return mod;
    }
}

static unsigned type_of(enum ptx_type type)
{
    static const uint8_t types[PTX_TYPE_COUNT] = {
        [PTX_U8] = LANES_U8,         [PTX_S8] = LANES_S8,         [PTX_U16] = LANES_U16,
        [PTX_B16] = LANES_U16,       [PTX_S16] = LANES_S16,       [PTX_U32] = LANES_U32,
        [PTX_B32] = LANES_U32,       [PTX_S32] = LANES_S32,       [PTX_U64] = LANES_U64,
        [PTX_B64] = LANES_U64,       [PTX_S64] = LANES_S64,       [PTX_F16] = LANES_F16,
        [PTX_BF16] = LANES_BF16,     [PTX_TF32] = LANES_TF32,     [PTX_F32] = LANES_F32,
        [PTX_F64] = LANES_F64,       [PTX_F16X2] = LANES_F16X2,   [PTX_BF16X2] = LANES_BF16X2,
        [PTX_E4M3X2] = LANES_E4M3X2, [PTX_E5M2X2] = LANES_E5M2X2, [PTX_U2] = LANES_U2,
        [PTX_S2] = LANES_S2,         [PTX_U4] = LANES_U4,         [PTX_S4] = LANES_S4,
    };
    return types[type];
}

// Returns whether the instruction has a source beyond those that its operation needs (LANES_SOURCE).
static bool has_extra(const struct ptx_form *form, unsigned nsources)
{
    switch (form->id) {
    case PTX_OP_SET:
    case PTX_OP_SETP:
    case PTX_OP_MIN:
    case PTX_OP_MAX:
    case PTX_OP_CVT_PACK: return nsources > 2;
    default: return false;
    }
}

// Returns whether the comparison exists for the type: bits have equality, integers an order, floats also NaN.
static bool compares(enum ptx_mod variant, const struct ptx_form *form)
{
    int compare = compare_of(variant);
    switch (ptx_type_class((enum ptx_type)form->types[form->ntypes - 1])) {
    case PTX_CLASS_BITS: return compare == LANES_EQ || compare == LANES_NE;
    case PTX_CLASS_UINT:
    case PTX_CLASS_SINT: return compare >= LANES_EQ && compare <= LANES_GE;
    default: return compare >= 0;
    }
}

static bool fits(const struct row *row, const struct ptx_form *form, const struct mods *m)
{
    if (row->variant == PTX_MOD_COMPARISON ? !compares(m->variant, form) : row->variant != m->variant)
        return false;
    if (m->have & ~row->may || row->must & ~m->have)
        return false;
    uint64_t type1 = form->ntypes > 1 ? UINT64_C(1) << form->types[1] : 0;
    return row->types[0] >> form->types[0] & 1 && (row->types[1] ? row->types[1] & type1 : !type1);
}

int lane_pick(const struct ptx_form *form, unsigned nsources, struct lane_op *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, chain_rows);
    struct mods m = {.variant = PTX_MOD_NONE};
    if (form->odd || form->id == PTX_OP_UNKNOWN || form->vec != 1 || form->nspaces || !form->ntypes)
        return -ENOTSUP;
    for (unsigned k = 0; k < form->nmods; k++)
        if (!add_mod(&m, (enum ptx_mod)form->mods[k]))
            return -ENOTSUP;
    m.variant = plain_compare(m.variant, form);
    if (has_extra(form, nsources)) {
        m.have |= H(SOURCE);
        m.flags |= LANES_SOURCE;
    }
    int compare = compare_of(m.variant);
    m.flags |= type_of(form->types[0]) << LANES_TYPE0_SHIFT;
    m.flags |= form->ntypes > 1 ? type_of(form->types[1]) << LANES_TYPE1_SHIFT : 0;
    m.flags |= compare > 0 ? (uint32_t)compare << LANES_COMPARE_SHIFT : 0;
    for (unsigned r = first_row[form->id]; r; r = next_row[r - 1])
        if (fits(&rows[r - 1], form, &m)) {
            *out = (struct lane_op){.row = (uint16_t)(r - 1), .flags = m.flags};
            return 0;
        }
    return -ENOTSUP;
}

// --- rows for the decoder ----------------------------------------------------------------------------------

uint16_t lane_mov(unsigned bits)
{
    switch (bits) {
    case 1: return ROW_mov_pred;
    case 16: return ROW_mov_16;
    case 32: return ROW_mov_32;
    case 64: return ROW_mov_64;
    default: assert(bits == 128); return ROW_mov_128;
    }
}

uint16_t lane_resize(unsigned from, unsigned to, bool is_signed)
{
    if (from == to)
        return lane_mov(to);
    if (to == 16)
        return from == 32 ? ROW_resize_32_16 : ROW_resize_64_16;
    if (from == 64)
        return ROW_resize_64_32;
    if (from == 32)
        return is_signed ? ROW_resize_32_64_s : ROW_resize_32_64_u;
    if (to == 32)
        return is_signed ? ROW_resize_16_32_s : ROW_resize_16_32_u;
    return is_signed ? ROW_resize_16_64_s : ROW_resize_16_64_u;
}

uint16_t lane_extend(unsigned bits, unsigned slot, bool is_signed)
{
    if (bits == slot)
        return lane_mov(slot);
    if (bits == 32)
        return is_signed ? ROW_extend_32_64_s : ROW_extend_32_64_u;
    if (bits == 16 && slot == 32)
        return is_signed ? ROW_extend_16_32_s : ROW_extend_16_32_u;
    if (bits == 16)
        return is_signed ? ROW_extend_16_64_s : ROW_extend_16_64_u;
    if (slot == 16)
        return is_signed ? ROW_extend_8_16_s : ROW_extend_8_16_u;
    if (slot == 32)
        return is_signed ? ROW_extend_8_32_s : ROW_extend_8_32_u;
    return is_signed ? ROW_extend_8_64_s : ROW_extend_8_64_u;
}

uint16_t lane_add(void)
{
    return ROW_add_64;
}

uint16_t lane_pred_not(void)
{
    return ROW_not_pred;
}

int lane_special(enum ptx_sreg id, unsigned component, uint16_t *row)
{
    static const uint16_t known[PTX_SREG_COUNT] = {
        [PTX_SREG_TID] = ROW_special_tid,       [PTX_SREG_LANEID] = ROW_special_laneid,
        [PTX_SREG_NTID] = ROW_special_ntid,     [PTX_SREG_CTAID] = ROW_special_ctaid,
        [PTX_SREG_NCTAID] = ROW_special_nctaid,
    };
    _Static_assert(ROW_special_tid > 0 && ROW_special_laneid > 0 && ROW_special_ntid > 0 &&
                       ROW_special_ctaid > 0 && ROW_special_nctaid > 0,
                   "row 0 is for registers that have none");
    *row = id < PTX_SREG_COUNT ? known[id] : 0;
    return *row && component < 3 ? 0 : -ENOTSUP;
}
