// SPDX-License-Identifier: MIT
// Checks accesses to variables by name: right space, within bounds, aligned.
#include <stdarg.h>

#include "ptx/quote.h"
#include "ptx/verify.h"

// Adds a note with the function and the source line of the statement.
static void note_source(struct verifier *v)
{
    struct ptx_source from;
    char place[300];
    struct diag_source source = {.name = v->m->source.name};
    if (v->loc && ptx_loc_source(v->m, v->loc, &from)) {
        int len = from.file.len < 256 ? (int)from.file.len : 256;
        snprintf(place, sizeof place, "%.*s:%u:%u", len, from.file.ptr, from.line, from.column);
        source.name = place;
    }
    diag_report(v->sink, DIAG_NOTE, &source, 0, 0, "in " QUOTE_FMT, QUOTE_ARG(ptx_func_name(v->m, v->f)));
}

__attribute__((format(printf, 3, 4))) static void wrong(struct verifier *v, const struct ptx_stmt *s,
                                                        const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    verify_vreport(v, DIAG_WARNING, s->pos, s->form->name.len, fmt, args);
    va_end(args);
    v->wrong_accesses++;
    note_source(v);
}

static const char *overflow_name(enum ptx_space space)
{
    switch (space) {
    case PTX_SPACE_SHARED: return "shared-buffer-overflow";
    case PTX_SPACE_LOCAL: return "local-buffer-overflow";
    case PTX_SPACE_PARAM: return "param-buffer-overflow";
    default: return "global-buffer-overflow";
    }
}

// Returns the alignment that an access needs: bulk copies and matrices are larger than theirs.
static uint32_t wanted_alignment(const struct ptx_stmt *s, const struct ptx_mem *mem)
{
    static const uint8_t most[] = {
        [PTX_WIDTH_OPERAND1] = 8, [PTX_WIDTH_OPERAND2] = 16, [PTX_WIDTH_TILE] = 1, [PTX_WIDTH_OPAQUE] = 0};
    uint32_t limit = most[s->form->op->width];
    return limit && limit < mem->bytes ? limit : mem->bytes;
}

// Returns how many bytes from its address on an access touches whenever it runs; 0 if that is not known.
static uint32_t certain_bytes(const struct ptx_mem *mem)
{
    bool certain = mem->extent == PTX_EXTENT_PLAIN && !mem->unless;
    return certain || mem->extent == PTX_EXTENT_TILE || mem->extent == PTX_EXTENT_ROWS ? mem->bytes : 0;
}

static void check_bounds(struct verifier *v, const struct ptx_stmt *s, const struct ptx_mem *mem,
                         const struct ptx_var *var)
{
    uint64_t size = ptx_var_size(var);
    int64_t at = mem->addr->value;
    // The launch sizes arrays of unknown size; a linker may replace such a variable by a larger one.
    bool replaceable = var->linkage == PTX_EXTERN || var->linkage == PTX_WEAK || var->linkage == PTX_COMMON;
    if (!size || !certain_bytes(mem) || replaceable)
        return;
    struct str name = ptx_sym(v->m, mem->addr->id)->name;
    if (at < 0 || (uint64_t)at > size || mem->bytes > size - (uint64_t)at) {
        wrong(v, s, "%s: %s of size %u at byte %lld of " QUOTE_FMT ", which has %llu bytes",
              overflow_name((enum ptx_space)var->space), mem->writes ? "WRITE" : "READ", mem->bytes,
              (long long)at, QUOTE_ARG(name), (unsigned long long)size);
    } else if ((mem->bytes & (mem->bytes - 1)) == 0 && at % wanted_alignment(s, mem)) {
        wrong(v, s, "misaligned-address: %s of size %u at byte %lld of " QUOTE_FMT,
              mem->writes ? "WRITE" : "READ", mem->bytes, (long long)at, QUOTE_ARG(name));
    }
}

static bool space_reaches(enum ptx_space insn, enum ptx_space var)
{
    var = ptx_space_is(var);
    return insn == var || (insn == PTX_SPACE_SHARED_CLUSTER && var == PTX_SPACE_SHARED);
}

static void check_base(struct verifier *v, const struct ptx_stmt *s, uint32_t reg)
{
    const struct ptx_var *var = ptx_reg_var(v->f, reg);
    enum ptx_type_class class = ptx_type_class((enum ptx_type)var->type);
    if (class != PTX_CLASS_BITS && class != PTX_CLASS_UINT && class != PTX_CLASS_SINT)
        error_at(v, s, "an address must be in an integer register, not in one of type ." STR_FMT,
                 STR_ARG(ptx_type_name((enum ptx_type)var->type)));
}

void verify_access(struct verifier *v, const struct ptx_stmt *s, const struct ptx_mem *mem)
{
    if (mem->writes && mem->space == PTX_SPACE_CONST)
        error_at(v, s, "constant memory cannot be written");
    if (mem->addr->kind == PTX_ADDR && mem->addr->sub == PTX_BASE_REG)
        check_base(v, s, mem->addr->id);
    if (mem->addr->kind != PTX_ADDR || mem->addr->sub != PTX_BASE_SYM)
        return;
    const struct ptx_sym *sym = ptx_sym(v->m, mem->addr->id);
    if (sym->kind != PTX_SYM_VAR) {
        error_at(v, s, QUOTE_FMT " is not a variable", QUOTE_ARG(sym->name));
        return;
    }
    if (mem->space == PTX_SPACE_GENERIC || ptx_type_class((enum ptx_type)sym->var->type) == PTX_CLASS_OPAQUE)
        return;
    if (mem->space == PTX_SPACE_TEX || mem->space == PTX_SPACE_SURFACE)
        return;
    if (!space_reaches((enum ptx_space)mem->space, (enum ptx_space)sym->var->space))
        error_at(v, s, QUOTE_FMT " is in ." STR_FMT ", not in ." STR_FMT, QUOTE_ARG(sym->name),
                 STR_ARG(ptx_space_name((enum ptx_space)sym->var->space)),
                 STR_ARG(ptx_space_name((enum ptx_space)mem->space)));
    else
        check_bounds(v, s, mem, sym->var);
}
