// SPDX-License-Identifier: MIT
// Initial values of module variables.
#include <errno.h>
#include <string.h>

#include "exec/load.h"
#include "exec/space.h"

enum { MOST_DIMS = 16 };

struct filling {
    struct load *load;
    const struct placed *placed;
    char *bytes;
    uint64_t size, at;
    uint64_t part[MOST_DIMS + 1];  // bytes of an element at each depth of braces
    uint64_t start[MOST_DIMS + 1];
    unsigned depth, element;
};

static int bad(struct filling *f, const char *what)
{
    struct exec_module *m = f->placed->module;
    return load_error(f->load, m, f->placed->var->pos, -EINVAL, what,
                      ptx_sym(m->ptx, f->placed->var->sym)->name);
}

static int put(struct filling *f, uint64_t value, unsigned size)
{
    if (f->at > f->size || size > f->size - f->at)
        return bad(f, "too many values for");
    // The rest of a larger element stays zero.
    memcpy(f->bytes + f->at, &value, size < sizeof value ? size : sizeof value);
    f->at += size;
    return 0;
}

static int put_symbol(struct filling *f, const struct ptx_init *init)
{
    struct exec_module *m = f->placed->module;
    uint32_t id = map_get(&m->ptx->globals, init->text);
    const struct exec_symbol *s = id == MAP_NONE ? NULL : &m->symbols[id];
    if (!s || s->kind == EXEC_SYM_NONE)
        return load_error(f->load, m, f->placed->var->pos, -ENOENT, "nothing defines", init->text);
    uint64_t value = s->kind == EXEC_SYM_FUNC ? s->func->code_address : s->value;
    value += (uint64_t)init->value;
    if (init->mask)
        value = (value & init->mask) >> __builtin_ctzll(init->mask);
    return put(f, value, f->element);
}

static int put_float(struct filling *f, const struct ptx_init *init)
{
    enum ptx_type type = (enum ptx_type)f->placed->var->type;
    uint64_t bits = (uint64_t)init->value;
    if (type == PTX_F32 && init->kind == PTX_INIT_F64) {
        double d;
        memcpy(&d, &bits, 8);
        float s = (float)d;
        bits = 0;
        memcpy(&bits, &s, 4);
    } else if (type == PTX_F64 && init->kind == PTX_INIT_F32) {
        float s;
        memcpy(&s, &bits, 4);
        double d = (double)s;
        memcpy(&bits, &d, 8);
    }
    return put(f, bits, f->element);
}

static int put_string(struct filling *f, struct str text)
{
    for (size_t k = 0; k < text.len; k++) {
        int err = put(f, (unsigned char)text.ptr[k], 1);
        if (err)
            return err;
    }
    return 0;
}

static int put_one(struct filling *f, const struct ptx_init *init)
{
    switch (init->kind) {
    case PTX_INIT_OPEN:
        if (++f->depth > MOST_DIMS)
            return bad(f, "too many braces in");
        f->start[f->depth] = f->at;
        return 0;
    case PTX_INIT_CLOSE:
        // A list may be shorter than its part of the array.
        f->at = f->start[f->depth] + (f->depth <= MOST_DIMS ? f->part[f->depth - 1] : 0);
        f->depth--;
        return 0;
    case PTX_INIT_INT: return put(f, (uint64_t)init->value, f->element);
    case PTX_INIT_F32:
    case PTX_INIT_F64: return put_float(f, init);
    case PTX_INIT_SYM: return put_symbol(f, init);
    case PTX_INIT_STRING: return put_string(f, init->text);
    default: return bad(f, "a value that we do not know in");
    }
}

// Returns how many elements the outermost braces hold; UINT64_MAX if they are malformed.
static uint64_t count_elements(struct str init)
{
    struct ptx_init element;
    uint64_t n = 0;
    unsigned depth = 0;
    int got;
    while ((got = ptx_init_next(&init, &element)) == 1) {
        if (element.kind == PTX_INIT_CLOSE) {
            depth -= depth > 0;
            continue;
        }
        n += depth == 1 ? element.kind == PTX_INIT_STRING ? element.text.len : 1 : 0;
        depth += element.kind == PTX_INIT_OPEN;
    }
    return got < 0 ? UINT64_MAX : n;
}

int load_size(struct load *l, const struct exec_module *m, const struct ptx_var *v, uint64_t *size)
{
    *size = ptx_type_bits((enum ptx_type)v->type) / 8 * v->vec;
    bool overflows = false;
    for (uint32_t k = 0; k < v->ndims; k++) {
        uint64_t n = k == 0 && !v->dims[0] && v->init.len ? count_elements(v->init) : v->dims[k];
        overflows |= __builtin_mul_overflow(*size, n, size);
    }
    if (overflows || *size >> SPACE_BITS)
        return load_error(l, m, v->pos, -EINVAL, "no memory is large enough for",
                          v->sym == PTX_NONE ? STR("this") : ptx_sym(m->ptx, v->sym)->name);
    return 0;
}

int load_initialise(struct load *l, const struct placed *p)
{
    const struct ptx_var *v = p->var;
    if (!v->init.len)
        return 0;
    struct filling f = {.load = l, .placed = p, .bytes = space_host(p->address)};
    int err = load_size(l, p->module, v, &f.size);
    if (err)
        return err;
    f.element = ptx_type_bits((enum ptx_type)v->type) / 8;
    uint64_t part = f.size;
    for (unsigned k = 0; k <= MOST_DIMS; k++) {
        f.part[k] = part;
        if (k < v->ndims)
            part /= v->dims[k] ? v->dims[k] : k == 0 && f.size ? count_elements(v->init) : 1;
        else
            part = (uint64_t)f.element * (k < v->ndims + (v->vec > 1) ? v->vec : 1);
    }
    struct str rest = v->init;
    struct ptx_init init;
    int got;
    while ((got = ptx_init_next(&rest, &init)) == 1 && !err) {
        if (init.kind == PTX_INIT_CLOSE && !f.depth)
            return bad(&f, "unmatched braces in");
        err = put_one(&f, &init);
    }
    return err ? err : got < 0 ? bad(&f, "a malformed initialiser of") : 0;
}
