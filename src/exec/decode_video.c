// SPDX-License-Identifier: MIT
// Video instructions: vadd to vset4.
#include "exec/decode.h"
#include "exec/video.h"

static const struct {
    uint8_t op, ways;  // enum video_op; 1, 2 or 4 results
} rows[] = {
    [PTX_OP_VADD - PTX_OP_VADD] = {VIDEO_ADD, 1},
    [PTX_OP_VSUB - PTX_OP_VADD] = {VIDEO_SUB, 1},
    [PTX_OP_VABSDIFF - PTX_OP_VADD] = {VIDEO_ABSDIFF, 1},
    [PTX_OP_VMIN - PTX_OP_VADD] = {VIDEO_MIN, 1},
    [PTX_OP_VMAX - PTX_OP_VADD] = {VIDEO_MAX, 1},
    [PTX_OP_VSHL - PTX_OP_VADD] = {VIDEO_SHL, 1},
    [PTX_OP_VSHR - PTX_OP_VADD] = {VIDEO_SHR, 1},
    [PTX_OP_VMAD - PTX_OP_VADD] = {VIDEO_MAD, 1},
    [PTX_OP_VSET - PTX_OP_VADD] = {VIDEO_SET, 1},
    [PTX_OP_VADD2 - PTX_OP_VADD] = {VIDEO_ADD, 2},
    [PTX_OP_VSUB2 - PTX_OP_VADD] = {VIDEO_SUB, 2},
    [PTX_OP_VAVRG2 - PTX_OP_VADD] = {VIDEO_AVRG, 2},
    [PTX_OP_VABSDIFF2 - PTX_OP_VADD] = {VIDEO_ABSDIFF, 2},
    [PTX_OP_VMIN2 - PTX_OP_VADD] = {VIDEO_MIN, 2},
    [PTX_OP_VMAX2 - PTX_OP_VADD] = {VIDEO_MAX, 2},
    [PTX_OP_VSET2 - PTX_OP_VADD] = {VIDEO_SET, 2},
    [PTX_OP_VADD4 - PTX_OP_VADD] = {VIDEO_ADD, 4},
    [PTX_OP_VSUB4 - PTX_OP_VADD] = {VIDEO_SUB, 4},
    [PTX_OP_VAVRG4 - PTX_OP_VADD] = {VIDEO_AVRG, 4},
    [PTX_OP_VABSDIFF4 - PTX_OP_VADD] = {VIDEO_ABSDIFF, 4},
    [PTX_OP_VMIN4 - PTX_OP_VADD] = {VIDEO_MIN, 4},
    [PTX_OP_VMAX4 - PTX_OP_VADD] = {VIDEO_MAX, 4},
    [PTX_OP_VSET4 - PTX_OP_VADD] = {VIDEO_SET, 4},
};

static bool has(struct decode *d, enum ptx_mod mod)
{
    return ptx_form_has(d->stmt->form, mod);
}

static bool is_signed(struct decode *d, unsigned n)
{
    return d->stmt->form->types[n] == PTX_S32;
}

static void check_types(struct decode *d, unsigned n)
{
    const struct ptx_form *form = d->stmt->form;
    if (form->ntypes != n)
        decode_unsupported(d);
    for (unsigned k = 0; k < n; k++)
        if (form->types[k] != PTX_S32 && form->types[k] != PTX_U32)
            decode_unsupported(d);
}

// --- parts -------------------------------------------------------------------------------------------------

static unsigned selector(const struct ptx_operand *o)
{
    return o->kind == PTX_REG ? o->sub : PTX_SEL_NONE;
}

// Returns the bits of .b0 to .b3, .h0, .h1 or a whole register, and in *first the first of them.
static unsigned one_part(struct decode *d, const struct ptx_operand *o, uint8_t *first)
{
    unsigned sub = selector(o);
    if (sub >= PTX_SEL_B0 && sub <= PTX_SEL_B3) {
        *first = (uint8_t)(8 * (sub - PTX_SEL_B0));
        return 8;
    }
    if (sub == PTX_SEL_H0 || sub == PTX_SEL_H1) {
        *first = (uint8_t)(16 * (sub - PTX_SEL_H0));
        return 16;
    }
    if (sub != PTX_SEL_NONE)
        decode_unsupported(d);
    *first = 0;
    return 32;
}

// Stores the digits of .b7654 or .h32 from the right, and returns how many there are. Digits number the parts
// of a, then those of b.
static unsigned digits(struct decode *d, const struct ptx_operand *o, unsigned ways, uint8_t *out)
{
    unsigned sub = selector(o);
    if (sub != (ways == 2 ? PTX_SEL_HALVES : PTX_SEL_BYTES) || o->span > ways)
        decode_unsupported(d);
    for (unsigned k = 0; k < o->span; k++) {
        out[k] = o->value >> 4 * k & 15;
        if (out[k] >= 2 * ways)
            decode_unsupported(d);
    }
    return o->span;
}

static void source_parts(struct decode *d, struct video *v, unsigned source, unsigned ways)
{
    const struct ptx_operand *o = decode_operand(d, 1 + source);
    unsigned bits = 32 / ways;
    if (ways == 1) {
        uint8_t first;
        bits = one_part(d, o, &first);
        v->parts[0].from[source] = (uint8_t)(32 * source + first);
    } else {
        uint8_t number[4];
        bool given = selector(o) != PTX_SEL_NONE;
        if (given && digits(d, o, ways, number) != ways)
            decode_unsupported(d);
        for (unsigned k = 0; k < ways; k++)
            v->parts[k].from[source] = (uint8_t)(bits * (given ? number[k] : source * ways + k));
    }
    v->source[source].bits = (uint8_t)bits;
}

// Returns a mask of the results that are wanted.
static unsigned result_mask(struct decode *d, const struct ptx_operand *o, unsigned ways)
{
    unsigned sub = selector(o), one = ways == 2 ? PTX_SEL_H0 : PTX_SEL_B0, mask = 0;
    uint8_t number[4];
    if (sub == PTX_SEL_NONE)
        return (1u << ways) - 1;
    if (sub >= one && sub < one + ways)
        return 1u << (sub - one);
    unsigned n = digits(d, o, ways, number);
    for (unsigned k = 0; k < n; k++)
        mask |= 1u << number[k];
    if (mask >> ways)
        decode_unsupported(d);
    return mask;
}

static void result_parts(struct decode *d, struct video *v, unsigned ways)
{
    const struct ptx_operand *o = decode_operand(d, 0);
    if (ways == 1) {
        struct video_part *p = &v->parts[0];
        v->nparts = 1;
        v->result.bits = (uint8_t)one_part(d, o, &p->shift);
        p->mask = UINT32_MAX >> (32 - v->result.bits) << p->shift;
        // The high half comes from the result's own high half: see video.c.
        if (v->result.bits == 16)
            p->shift = 0;
        return;
    }
    unsigned mask = result_mask(d, o, ways), bits = 32 / ways;
    v->result.bits = (uint8_t)bits;
    for (unsigned k = 0; k < ways; k++) {
        v->parts[k].shift = (uint8_t)(k * bits);
        v->parts[k].mask = UINT32_MAX >> (32 - bits) << k * bits;
        if (mask >> k & 1)
            v->parts[v->nparts++] = v->parts[k];
    }
}

// --- instructions ------------------------------------------------------------------------------------------

static struct ptx_operand whole(const struct ptx_operand *o)
{
    struct ptx_operand all = *o;
    if (all.kind == PTX_REG) {
        all.sub = PTX_SEL_NONE;
        all.negated = false;
    }
    return all;
}

static uint32_t source(struct decode *d, unsigned n)
{
    struct ptx_operand o = whole(decode_operand(d, n));
    return decode_source(d, &o, PTX_B32);
}

static void emit(struct decode *d, exec_fn *fn, const void *how)
{
    uint32_t a = source(d, 1), b = source(d, 2),
             c = ptx_operand(d->stmt, 3) ? source(d, 3) : decode_const(d, 32, 0);
    struct ptx_operand o = whole(decode_operand(d, 0));
    struct decode_dest dest = decode_dest(d, &o, PTX_B32);
    *decode_emit(d, fn) = (struct exec_insn){.fn = fn, .d = dest.slot, .a = a, .b = b, .c = c, .ptr = how};
    decode_finish(d, &dest);
}

static enum video_compare comparison(struct decode *d)
{
    static const enum ptx_mod mods[] = {
        [VIDEO_EQ] = PTX_MOD_EQ, [VIDEO_NE] = PTX_MOD_NE, [VIDEO_LT] = PTX_MOD_LT,
        [VIDEO_LE] = PTX_MOD_LE, [VIDEO_GT] = PTX_MOD_GT, [VIDEO_GE] = PTX_MOD_GE};
    for (unsigned k = 0; k < sizeof mods / sizeof *mods; k++)
        if (has(d, mods[k]))
            return (enum video_compare)k;
    decode_unsupported(d);
}

static enum video_limit limit(const struct video *v, unsigned ways)
{
    if (v->op == VIDEO_SHL || v->op == VIDEO_SHR)
        return VIDEO_SHIFTED;
    if (ways == 1 && v->result.bits < 32)
        return VIDEO_AT_MOST;
    return ways > 1 || v->result.is_signed ? VIDEO_CLAMP : VIDEO_NOT_NEGATIVE;
}

// A scalar instruction has c if and only if it uses c. Only vmad negates operands.
static void check_operands(struct decode *d, const struct video *v, unsigned ways)
{
    bool uses_c = ways > 1 || v->then != VIDEO_PUT || v->result.bits < 32;
    if (uses_c != !!ptx_operand(d->stmt, 3) || (v->then != VIDEO_PUT && ways == 1 && v->result.bits < 32))
        decode_unsupported(d);
    for (unsigned k = 0; ptx_operand(d->stmt, k); k++)
        if (ptx_operand(d->stmt, k)->negated)
            decode_unsupported(d);
}

static void parts(struct decode *d, enum video_op op, unsigned ways)
{
    struct video *v = ARENA_NEW(&d->load->program->arena, struct video);
    bool sets = op == VIDEO_SET, shifts = op == VIDEO_SHL || op == VIDEO_SHR;
    check_types(d, sets ? 2 : 3);
    v->wraps = has(d, PTX_MOD_WRAP);
    if (shifts && (is_signed(d, 2) || v->wraps == has(d, PTX_MOD_CLAMP)))
        decode_unsupported(d);
    v->op = (uint8_t)op;
    v->compare = (uint8_t)(sets ? comparison(d) : 0);
    v->then = has(d, PTX_MOD_ADD)   ? VIDEO_THEN_ADD
              : has(d, PTX_MOD_MIN) ? VIDEO_THEN_MIN
              : has(d, PTX_MOD_MAX) ? VIDEO_THEN_MAX
                                    : VIDEO_PUT;
    for (unsigned k = 0; k < 2; k++) {
        v->source[k].is_signed = is_signed(d, k + !sets);
        source_parts(d, v, k, ways);
    }
    v->result.is_signed = is_signed(d, 0);
    result_parts(d, v, ways);
    v->limit = (uint8_t)(has(d, PTX_MOD_SAT) ? limit(v, ways) : VIDEO_NO_LIMIT);
    check_operands(d, v, ways);
    emit(d, video_parts, v);
}

static void multiply_add(struct decode *d)
{
    struct video_mad *v = ARENA_NEW(&d->load->program->arena, struct video_mad);
    bool negated[3];
    check_types(d, 3);
    for (unsigned k = 0; k < 3; k++)
        negated[k] = decode_operand(d, 1 + k)->negated;
    for (unsigned k = 0; k < 2; k++) {
        v->source[k].bits = (uint8_t)one_part(d, decode_operand(d, 1 + k), &v->from[k]);
        v->source[k].is_signed = is_signed(d, 1 + k) || v->source[k].bits == 32;
    }
    v->from[1] += 32;
    v->negates_product = negated[0] != negated[1];
    v->negates_c = negated[2];
    v->plus_one = has(d, PTX_MOD_PO);
    if (v->negates_product + v->negates_c + v->plus_one > 1 ||
        selector(decode_operand(d, 0)) != PTX_SEL_NONE || selector(decode_operand(d, 3)) != PTX_SEL_NONE)
        decode_unsupported(d);
    v->shift = has(d, PTX_MOD_SHR7) ? 7 : has(d, PTX_MOD_SHR15) ? 15 : 0;
    v->result.bits = 32;
    v->result.is_signed = is_signed(d, 1) || is_signed(d, 2) || v->negates_product || v->negates_c;
    if (has(d, PTX_MOD_SAT))
        v->limit = v->shift && !v->result.is_signed ? VIDEO_AT_MOST : VIDEO_CLAMP;
    emit(d, video_mad, v);
}

void decode_video(struct decode *d)
{
    unsigned row = d->stmt->form->id - PTX_OP_VADD;
    if (rows[row].op == VIDEO_MAD)
        multiply_add(d);
    else
        parts(d, (enum video_op)rows[row].op, rows[row].ways);
}
