// SPDX-License-Identifier: MIT
#include "flow/launch_bind.h"

#include <errno.h>
#include <math.h>

#define FIRST_BUFFER 0x100000000000ull  // the address of the first buffer ...
#define NEXT_BUFFER 0x2000000000ull     // ... and how far the next one is from it

struct binder {
    const struct launch_text *text;
    struct diag_sink *sink;
    struct launch_bind *to;
};

__attribute__((format(printf, 3, 4))) static int fail(const struct binder *b,
                                                      const struct launch_text_value *v, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    diag_vreport(b->sink, DIAG_ERROR, &b->text->source, v->pos, v->len, fmt, args);
    va_end(args);
    return -EINVAL;
}

struct launch_bind_slot launch_bind_slot(const struct ptx_var *param, uint32_t at)
{
    uint64_t size = ptx_var_size(param);
    uint32_t natural = ptx_type_bits((enum ptx_type)param->type) / 8 * (param->vec ? param->vec : 1);
    uint32_t align = param->align ? param->align : natural ? natural : 1;
    uint64_t offset = ((uint64_t)at + align - 1) / align * align;
    return (struct launch_bind_slot){offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset,
                                     size > UINT32_MAX ? UINT32_MAX : (uint32_t)size};
}

const struct launch_bind_buffer *launch_bind_buffer_at(const struct launch_bind *b, uint32_t at)
{
    for (uint32_t i = 0; i < b->nbuffers; i++)
        if (b->buffers[i].at == at)
            return &b->buffers[i];
    return NULL;
}

// Returns false if the integer does not fit into so many bytes, read as signed or as unsigned.
static bool fits(const struct launch_text_value *v, uint32_t bytes)
{
    if (bytes >= 8)
        return true;
    if (v->negative)
        return (int64_t)v->bits >= -(1ll << (bytes * 8 - 1));
    return v->bits < 1ull << (bytes * 8);
}

static int put_int(struct binder *b, const struct launch_text_value *v, uint32_t at, uint32_t bytes)
{
    if (!fits(v, bytes))
        return fail(b, v, "the number does not fit into %u byte%s", bytes, bytes == 1 ? "" : "s");
    memcpy(b->to->params + at, &v->bits, bytes < 8 ? bytes : 8);
    return 0;
}

static void put_float(struct binder *b, double number, uint32_t at, uint32_t bytes)
{
    float single = (float)number;
    if (bytes == 4)
        memcpy(b->to->params + at, &single, sizeof single);
    else
        memcpy(b->to->params + at, &number, sizeof number);
}

static void put_pointer(struct binder *b, const struct launch_text_value *v, uint32_t at)
{
    struct launch_bind *to = b->to;
    uint64_t address = FIRST_BUFFER + to->nbuffers * NEXT_BUFFER + v->into;
    to->buffers[to->nbuffers++] = (struct launch_bind_buffer){at, v->sized, v->size, v->into};
    memcpy(to->params + at, &address, sizeof address);
}

// --- structures --------------------------------------------------------------------------------------------

static uint32_t align_of(const struct launch_text_value *v)
{
    uint32_t most = v->kind == LAUNCH_TEXT_STRUCT ? 1 : v->bytes;
    for (uint32_t i = 1; v->kind == LAUNCH_TEXT_STRUCT && i <= v->members; i++)
        if (v[i].kind != LAUNCH_TEXT_STRUCT && v[i].bytes > most)
            most = v[i].bytes;
    return most;
}

static const struct launch_text_value *after(const struct launch_text_value *v)
{
    return v + 1 + (v->kind == LAUNCH_TEXT_STRUCT ? v->members : 0);
}

static int put_member(struct binder *b, const struct launch_text_value *v, uint32_t *at, uint32_t end);

// Lays out a structure from *at on, and moves *at to its end. `end`: where its parameter ends.
static int put_struct(struct binder *b, const struct launch_text_value *v, uint32_t *at, uint32_t end)
{
    const struct launch_text_value *last = after(v);
    uint32_t align = align_of(v);
    for (const struct launch_text_value *m = v + 1; m < last; m = after(m)) {
        int err = put_member(b, m, at, end);
        if (err)
            return err;
    }
    *at = (*at + align - 1) / align * align;
    return 0;
}

static int put_member(struct binder *b, const struct launch_text_value *v, uint32_t *at, uint32_t end)
{
    uint32_t align = align_of(v);
    *at = (*at + align - 1) / align * align;
    if (v->kind == LAUNCH_TEXT_STRUCT)
        return put_struct(b, v, at, end);
    if (*at > end || v->bytes > end - *at)
        return fail(b, v,
                    "the structure has no room for this member: it would end %u bytes behind the parameter",
                    *at + v->bytes - end);
    uint32_t here = *at;
    *at += v->bytes;
    if (v->kind == LAUNCH_TEXT_INT)
        return put_int(b, v, here, v->bytes);
    if (v->kind == LAUNCH_TEXT_FLOAT)
        put_float(b, v->number, here, v->bytes);
    else if (v->kind == LAUNCH_TEXT_POINTER)
        put_pointer(b, v, here);
    return 0;
}

static int put_parameter_struct(struct binder *b, const struct launch_text_value *v,
                                struct launch_bind_slot s, uint32_t number)
{
    uint32_t at = s.offset, end = s.offset + s.size;
    int err = put_struct(b, v, &at, end);
    if (!err && at != end)
        return fail(b, v, "argument %u has %u bytes, but this structure has %u", number, s.size,
                    at - s.offset);
    return err;
}

// --- parameters --------------------------------------------------------------------------------------------

static bool is_float(const struct ptx_var *param)
{
    return !param->ndims && param->vec <= 1 && (param->type == PTX_F32 || param->type == PTX_F64);
}

static int put_parameter(struct binder *b, const struct launch_text_value *v, const struct ptx_var *param,
                         struct launch_bind_slot s, uint32_t number)
{
    switch ((enum launch_text_kind)v->kind) {
    case LAUNCH_TEXT_STRUCT: return put_parameter_struct(b, v, s, number);
    case LAUNCH_TEXT_POINTER:
    case LAUNCH_TEXT_NULL:
        if (s.size != 8 || is_float(param))
            return fail(b, v, "argument %u is no pointer: it has %u bytes%s", number, s.size,
                        is_float(param) ? " and is a floating-point number" : "");
        if (v->kind == LAUNCH_TEXT_POINTER)
            put_pointer(b, v, s.offset);
        return 0;
    case LAUNCH_TEXT_INT:
        if (is_float(param)) {
            put_float(b, v->negative ? (double)(int64_t)v->bits : (double)v->bits, s.offset, s.size);
            return 0;
        }
        if (s.size > 8)
            return fail(b, v, "argument %u is a structure of %u bytes: write {...}", number, s.size);
        return put_int(b, v, s.offset, s.size);
    case LAUNCH_TEXT_FLOAT:
        if (!is_float(param))
            return fail(b, v, "argument %u is no floating-point number, but has %u bytes of another type",
                        number, s.size);
        put_float(b, v->number, s.offset, s.size);
        return 0;
    }
    return 0;
}

static uint32_t count_arguments(const struct launch_text *t)
{
    uint32_t n = 0;
    for (const struct launch_text_value *v = t->values; v < t->values + t->nvalues; v = after(v))
        n++;
    return n;
}

int launch_bind(const struct launch_text *t, const struct ptx_module *m, const struct ptx_func *f,
                struct diag_sink *sink, struct launch_bind *out)
{
    struct binder b = {t, sink, out};
    uint32_t at = 0, given = count_arguments(t);
    *out = (struct launch_bind){.nbuffers = 0};
    if (given != f->nparams) {
        diag_report(sink, DIAG_ERROR, &t->source, t->args_pos, 1,
                    "the kernel takes %u argument%s, but %u %s given", f->nparams, f->nparams == 1 ? "" : "s",
                    given, given == 1 ? "is" : "are");
        return -EINVAL;
    }
    const struct launch_text_value *v = t->values;
    for (uint32_t i = 0; i < f->nparams; i++, v = after(v)) {
        struct launch_bind_slot s = launch_bind_slot(&f->params[i], at);
        if (s.offset > LAUNCH_BIND_PARAMS || s.size > LAUNCH_BIND_PARAMS - s.offset)
            return fail(&b, v, "the kernel's parameters have more than %d bytes", LAUNCH_BIND_PARAMS);
        int err = put_parameter(&b, v, &f->params[i], s, i + 1);
        if (err)
            return err;
        at = s.offset + s.size;
    }
    out->launch =
        (struct proof_launch){.dynamic_shared = t->shared, .params_size = at, .params = out->params};
    memcpy(out->launch.grid, t->grid, sizeof t->grid);
    memcpy(out->launch.block, t->block, sizeof t->block);
    return 0;
}
