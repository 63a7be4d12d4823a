// SPDX-License-Identifier: MIT
#include "exec/tensor.h"

#include <string.h>

#include "exec/access.h"
#include "exec/atomic.h"
#include "exec/cluster.h"
#include "exec/mbarrier.h"
#include "exec/sched.h"

enum { PIECE = 16, MAP_BYTES = 128, SWIZZLES = 4, SHARED_ALIGN = 128 };

unsigned tensor_type_bytes(enum tensor_type type)
{
    static const uint8_t bytes[TENSOR_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return (unsigned)type < TENSOR_TYPES ? bytes[type] : 0;
}

// --- maps --------------------------------------------------------------------------------------------------

static bool read_map(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t at,
                     struct tensor_map *m)
{
    char bytes[MAP_BYTES];
    for (unsigned k = 0; k < MAP_BYTES; k += PIECE)
        if (!access_read(w, i, lane, at + k, bytes + k, PIECE))
            return false;
    memcpy(m, bytes, sizeof *m);
    return true;
}

// Kernels can write maps, so every field is checked.
static bool is_good(const struct tensor_map *m, unsigned rank)
{
    if (m->magic != TENSOR_MAGIC || m->rank != rank || m->type >= TENSOR_TYPES || m->swizzle >= SWIZZLES ||
        m->nan_fill > 1 || (m->by_columns && rank < 3))
        return false;
    for (unsigned k = 0; k < rank; k++) {
        unsigned most = !m->by_columns || !k ? TENSOR_BOX_MOST : k == 1 ? TENSOR_PIXELS_MOST : 1;
        if (!m->box[k] || m->box[k] > most || !m->step[k] || m->step[k] > TENSOR_STEP_MOST)
            return false;
    }
    return true;
}

// --- boxes -------------------------------------------------------------------------------------------------

struct box {
    struct tensor_map map;
    unsigned size;                       // bytes of an element
    int64_t at[TENSOR_RANK];             // the first element
    uint16_t offset[TENSOR_IMAGE_DIMS];  // im2col: pixel offsets
    uint32_t count[TENSOR_RANK];         // elements copied per dimension
    uint32_t bytes;                      // bytes of all elements
    uint32_t row, rows;                  // bytes of a row, and how many there are
    uint32_t pitch;                      // bytes between rows in shared memory
    uint64_t shared, barrier;
    uint32_t what;  // reduction, as in atomic.h
};

// Returns the swizzled address: bits 4 to 6 are xored with the bits three positions higher, as many as the
// span has.
static uint64_t swizzled(const struct box *b, uint64_t address)
{
    uint64_t mask = (1u << b->map.swizzle) - 1;
    return address ^ (address >> 7 & mask) << 4;
}

// Computes an element's address. Returns false if it is outside the tensor.
static bool locate(const struct box *b, const uint32_t index[TENSOR_RANK], uint64_t *address)
{
    *address = b->map.address;
    for (unsigned k = 0; k < b->map.rank; k++) {
        int64_t at = b->at[k] + (int64_t)index[k] * b->map.step[k];
        if (at < 0 || at > (int64_t)b->map.last[k])
            return false;
        *address += (uint64_t)at * b->map.stride[k];
    }
    return true;
}

static void fill(const struct box *b, char *to)
{
    static const uint16_t half = 0xfff7;
    static const uint32_t word = 0x7fffffff;
    memset(to, 0, b->size);
    if (!b->map.nan_fill)
        return;
    if (b->map.type == TENSOR_F16 || b->map.type == TENSOR_BF16)
        memcpy(to, &half, sizeof half);
    else if (b->size == 4)
        memcpy(to, &word, sizeof word);
}

static bool one(struct exec_warp *w, const struct exec_insn *i, unsigned lane, const struct box *b,
                enum tensor_kind kind, uint64_t address, char *bytes)
{
    if (kind == TENSOR_LOAD)
        return access_read(w, i + 3, lane, address, bytes, b->size);
    if (kind == TENSOR_STORE)
        return access_write(w, i + 3, lane, address, bytes, b->size);
    char *to = access_host(w, i + 3, lane, address, b->size, true);
    if (to)
        atomic_apply(to, b->what, bytes);
    return to;
}

// Copies 16 bytes of a row, starting at the index.
static bool piece(struct exec_warp *w, const struct exec_insn *i, unsigned lane, const struct box *b,
                  enum tensor_kind kind, uint32_t index[TENSOR_RANK], char bytes[PIECE])
{
    uint32_t first = index[0], n = PIECE / b->size;
    uint64_t address, end;
    index[0] = first + n - 1;
    bool whole = b->map.step[0] == 1 && locate(b, index, &end);
    index[0] = first;
    // All elements are inside, contiguous, and 16-byte aligned in global memory.
    if (whole && locate(b, index, &address) && address % PIECE == 0 && kind != TENSOR_REDUCE)
        return kind == TENSOR_LOAD ? access_read(w, i + 3, lane, address, bytes, PIECE)
                                   : access_write(w, i + 3, lane, address, bytes, PIECE);
    for (uint32_t k = 0; k < n && first + k < b->count[0]; k++) {
        char *at = bytes + k * b->size;
        index[0] = first + k;
        if (locate(b, index, &address)) {
            if (!one(w, i, lane, b, kind, address, at))
                return false;
        } else if (kind == TENSOR_LOAD) {
            fill(b, at);
        }
    }
    index[0] = first;
    return true;
}

static bool row(struct exec_warp *w, const struct exec_insn *i, unsigned lane, const struct box *b,
                enum tensor_kind kind, uint32_t index[TENSOR_RANK], uint64_t shared)
{
    for (uint32_t k = 0; k < b->count[0]; k += PIECE / b->size) {
        char bytes[PIECE] = {0};
        uint64_t at = swizzled(b, shared + (uint64_t)k * b->size);
        index[0] = k;
        if (kind != TENSOR_LOAD && !access_read(w, i + 1, lane, at, bytes, PIECE))
            return false;
        if (!piece(w, i, lane, b, kind, index, bytes))
            return false;
        if (kind == TENSOR_LOAD && !access_write(w, i + 1, lane, at, bytes, PIECE))
            return false;
    }
    return true;
}

static bool all_rows(struct exec_warp *w, const struct exec_insn *i, unsigned lane, const struct box *b,
                     enum tensor_kind kind)
{
    uint32_t index[TENSOR_RANK] = {0};
    for (uint32_t r = 0; r < b->rows; r++) {
        if (!row(w, i, lane, b, kind, index, b->shared + (uint64_t)r * b->pitch))
            return false;
        for (unsigned k = 1; k < b->map.rank && ++index[k] == b->count[k]; k++)
            index[k] = 0;
    }
    return true;
}

// Advances to the next pixel: along the image's innermost dimension first, the image itself last.
static void next_pixel(const struct tensor_map *m, int64_t at[TENSOR_RANK])
{
    unsigned k = 1;
    for (; k + 1 < m->rank; k++) {
        at[k] += m->step[k];
        if (at[k] <= (int64_t)m->last[k] + m->upper[k - 1])
            return;
        at[k] = m->lower[k - 1];
    }
    at[k] += m->step[k];
}

static bool all_pixels(struct exec_warp *w, const struct exec_insn *i, unsigned lane, const struct box *b,
                       enum tensor_kind kind)
{
    struct box shifted = *b;
    int64_t at[TENSOR_RANK];
    memcpy(at, b->at, sizeof at);
    for (uint32_t r = 0; r < b->rows; r++) {
        uint32_t index[TENSOR_RANK] = {0};
        for (unsigned k = 1; k < b->map.rank; k++)
            shifted.at[k] = at[k] + (k + 1 < b->map.rank ? b->offset[k - 1] : 0);
        if (!row(w, i, lane, &shifted, kind, index, b->shared + (uint64_t)r * b->pitch))
            return false;
        next_pixel(&b->map, at);
    }
    return true;
}

static enum ptx_type type_of(const struct tensor_map *m)
{
    static const uint8_t types[TENSOR_TYPES] = {PTX_U8,  PTX_U16, PTX_U32, PTX_S32, PTX_U64,
                                                PTX_S64, PTX_F16, PTX_F32, PTX_F64, PTX_BF16,
                                                PTX_F32, PTX_F32, PTX_F32};
    return (enum ptx_type)types[m->type];
}

// Returns whether boxes of elements of the type may be reduced. Fewer types than those of atomic instructions
// are; a GPU calls the instruction illegal for others.
static bool may_reduce(enum atomic_op op, enum ptx_type type)
{
    bool half = type == PTX_F16 || type == PTX_BF16;
    unsigned bits = ptx_type_bits(type);
    switch (op) {
    case ATOMIC_ADD: return half || (bits >= 32 && type != PTX_S64);
    case ATOMIC_MIN:
    case ATOMIC_MAX: return half || (bits >= 32 && ptx_type_class(type) != PTX_CLASS_FLOAT);
    case ATOMIC_INC:
    case ATOMIC_DEC: return type == PTX_U32;
    default: return type == PTX_U32 || type == PTX_S32 || type == PTX_U64;
    }
}

// Returns whether the box begins where the instruction allows. Boxes that begin in front of the tensor can be
// loaded; a GPU calls stores and reductions of them illegal, while those that leave the tensor at its other
// ends are right.
static bool may_begin(const struct box *b, enum tensor_kind kind)
{
    for (unsigned k = 0; k < b->map.rank && kind != TENSOR_LOAD; k++)
        if (b->at[k] < 0)
            return false;
    return true;
}

// Returns false if the map is invalid or does not match the instruction.
static bool make_box(const struct exec_warp *w, const struct tensor_lane *l, unsigned lane, struct box *b)
{
    if (!is_good(&b->map, l->rank) || l->by_columns != b->map.by_columns)
        return false;
    for (unsigned k = 0; k < l->noffsets; k++)
        b->offset[k] = ((const uint16_t *)(w->regs + l->offset[k]))[lane];
    b->size = tensor_type_bytes((enum tensor_type)b->map.type);
    uint64_t bytes = b->size;
    for (unsigned k = 0; k < l->rank; k++) {
        b->at[k] = ((const int32_t *)(w->regs + l->at[k]))[lane];
        b->count[k] = l->by_columns ? b->map.box[k] : (b->map.box[k] + b->map.step[k] - 1u) / b->map.step[k];
        bytes *= b->count[k];
        if (bytes > TENSOR_BYTES_MOST)
            return false;
    }
    b->row = b->count[0] * b->size;
    if (b->row % PIECE || !may_begin(b, (enum tensor_kind)l->kind))
        return false;
    b->bytes = (uint32_t)bytes;
    b->rows = b->bytes / b->row;
    // Rows that are shorter than the span of the swizzle have a span each; what is left of it is not touched.
    uint32_t span = b->map.swizzle ? (uint32_t)PIECE << b->map.swizzle : 0;
    b->pitch = b->row < span ? span : b->row;
    enum ptx_type type = type_of(&b->map);
    b->what = l->op | (uint32_t)type << ATOMIC_TYPE_SHIFT | ATOMIC_NO_RESULT | ATOMIC_GLOBAL;
    return l->kind != TENSOR_REDUCE || may_reduce((enum atomic_op)l->op, type);
}

static bool copy(struct exec_warp *w, const struct exec_insn *i, unsigned lane, const struct box *b)
{
    const struct tensor_lane *l = i->ptr;
    enum tensor_kind kind = (enum tensor_kind)l->kind;
    return (l->by_columns ? all_pixels(w, i, lane, b, kind) : all_rows(w, i, lane, b, kind)) &&
           (!l->signals || mbarrier_bytes(w, i + 4, lane, b->barrier, b->bytes));
}

static bool copy_to_all(struct exec_warp *w, const struct exec_insn *i, unsigned lane, struct box *b)
{
    const struct tensor_lane *l = i->ptr;
    uint64_t shared = b->shared, barrier = b->barrier;
    uint32_t left = ((const uint16_t *)(w->regs + l->blocks))[lane];
    if (left >> w->block->cluster->size)
        return fault_raise(w, i, EXEC_ILLEGAL_INSTRUCTION);
    for (; left; left &= left - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(left);
        b->shared = cluster_address(shared, rank);
        b->barrier = cluster_address(barrier, rank);
        if (!copy(w, i, lane, b))
            return false;
    }
    return true;
}

const struct exec_insn *tensor_copy(struct exec_warp *w, const struct exec_insn *i)
{
    const struct tensor_lane *l = i->ptr;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        struct box b = {.shared = access_address(w, i + 1, lane)};
        if (!read_map(w, i + 2, lane, access_address(w, i + 2, lane), &b.map))
            return NULL;
        if (!make_box(w, l, lane, &b))
            return fault_raise(w, i, EXEC_ILLEGAL_INSTRUCTION);
        if (b.shared % SHARED_ALIGN) {
            access_misaligned(w, i + 1, lane, b.shared, b.bytes, l->kind == TENSOR_LOAD);
            return NULL;
        }
        if (l->signals)
            b.barrier = access_address(w, i + 4, lane);
        if (!(l->multicast ? copy_to_all(w, i, lane, &b) : copy(w, i, lane, &b)))
            return NULL;
    }
    return i + (l->signals ? 5 : 4);
}

// --- changing maps -----------------------------------------------------------------------------------------

static bool set_type(struct tensor_map *m, uint64_t value)
{
    // In the instruction's numbering.
    static const uint8_t types[] = {TENSOR_U8,   TENSOR_U16,  TENSOR_U32,     TENSOR_S32,     TENSOR_U64,
                                    TENSOR_S64,  TENSOR_F16,  TENSOR_F32,     TENSOR_F32_FTZ, TENSOR_F64,
                                    TENSOR_BF16, TENSOR_TF32, TENSOR_TF32_FTZ};
    if (value >= sizeof types)
        return false;
    m->type = types[value];
    m->stride[0] = tensor_type_bytes((enum tensor_type)m->type);
    return true;
}

// Returns false if the field cannot have that value.
static bool set_field(struct tensor_map *m, enum tensor_field field, uint32_t k, uint64_t value)
{
    if (k >= TENSOR_RANK - (field == TENSOR_FIELD_STRIDE))
        return false;
    switch (field) {
    case TENSOR_FIELD_ADDRESS: m->address = value; return true;
    case TENSOR_FIELD_RANK: m->rank = (uint8_t)(value + 1); return value < TENSOR_RANK;
    case TENSOR_FIELD_BOX: m->box[k] = (uint16_t)value; return value && value <= TENSOR_BOX_MOST;
    case TENSOR_FIELD_DIM: m->last[k] = (uint32_t)value - 1; return true;
    case TENSOR_FIELD_STRIDE: m->stride[k + 1] = value; return value % PIECE == 0;
    case TENSOR_FIELD_STEP: m->step[k] = (uint8_t)value; return value && value <= TENSOR_STEP_MOST;
    case TENSOR_FIELD_TYPE: return set_type(m, value);
    case TENSOR_FIELD_INTERLEAVE: return value == 0;
    case TENSOR_FIELD_SWIZZLE: m->swizzle = (uint8_t)value; return value < SWIZZLES;
    default: m->nan_fill = value == 1; return value < 2;
    }
}

static bool write_map(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t at,
                      const struct tensor_map *m)
{
    char bytes[MAP_BYTES] = {0};
    memcpy(bytes, m, sizeof *m);
    for (unsigned k = 0; k < MAP_BYTES; k += PIECE)
        if (!access_write(w, i, lane, at + k, bytes + k, PIECE))
            return false;
    return true;
}

// A map that a kernel makes from zeros, field by field, as Triton's do: fields that should be 0 in the
// instruction's numbering are not written.
static void start_map(struct tensor_map *m)
{
    m->magic = TENSOR_MAGIC;
    m->rank = 1;
    set_type(m, 0);
    for (unsigned k = 0; k < TENSOR_RANK; k++)
        m->box[k] = m->step[k] = 1;
}

const struct exec_insn *tensor_replace(struct exec_warp *w, const struct exec_insn *i)
{
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        struct tensor_map m;
        uint64_t at = access_address(w, i + 1, lane), value = ((const uint64_t *)(w->regs + i->b))[lane];
        if (!read_map(w, i + 1, lane, at, &m))
            return NULL;
        if (!m.magic)
            start_map(&m);
        if (!set_field(&m, (enum tensor_field)i->flags, i->lo, value))
            return fault_raise(w, i, EXEC_ILLEGAL_INSTRUCTION);
        if (!write_map(w, i + 1, lane, at, &m))
            return NULL;
    }
    return i + 2;
}

const struct exec_insn *tensor_copy_map(struct exec_warp *w, const struct exec_insn *i)
{
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        struct tensor_map m;
        if (!read_map(w, i + 2, lane, access_address(w, i + 2, lane), &m) ||
            !write_map(w, i + 1, lane, access_address(w, i + 1, lane), &m))
            return NULL;
    }
    return i + 3;
}
