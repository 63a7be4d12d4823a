// SPDX-License-Identifier: MIT
// Resolves names while a module is parsed: scopes, register ranges, labels used before their definition.
//
// A register range %r<100> binds its prefix "%r"; %r7 is found as prefix and number, so that no register
// needs an entry of its own. A name that is not declared yet is bound to an undefined symbol in the scope
// that uses it. When that scope closes without declaring it, the symbol moves to the next outer scope, or is
// resolved to that scope's symbol of the name.
#include "ptx/parser.h"

// Deeper than any compiler nests. Each level may cost a walk over all labels that are not known yet.
enum { MOST_DEPTH = 64 };

static uint32_t find(struct parser *p, struct str text)
{
    return quick_get(&p->name_quick, &p->name_map, text);
}

static uint32_t intern(struct parser *p, struct str text)
{
    uint32_t id = find(p, text);
    if (id != MAP_NONE)
        return id;
    id = (uint32_t)p->names.len;
    PUSH(p, &p->names,
         (struct name){
             .text = text, .sym = PTX_NONE, .range = PTX_NONE, .sreg = (int16_t)ptx_sreg_find(text)});
    if (map_put(&p->name_map, text, id))
        parser_out_of_memory(p);
    return id;
}

// --- scopes ------------------------------------------------------------------------------------------------

void name_open_scope(struct parser *p)
{
    if (p->scopes.len == MOST_DEPTH)
        parser_fail(p, "blocks are nested more than %d deep", MOST_DEPTH);
    PUSH(p, &p->scopes, (struct scope){p->bindings.len, p->pending.len, p->ranges.len});
}

// Saves a binding to restore. At module scope nothing is restored.
static void remember(struct parser *p, uint32_t id)
{
    const struct name *n = &p->names.items[id];
    if (p->scopes.len)
        PUSH(p, &p->bindings, (struct binding){id, n->sym, n->range, n->depth});
}

static void bind(struct parser *p, uint32_t id, uint32_t sym)
{
    remember(p, id);
    p->names.items[id].sym = sym;
    p->names.items[id].depth = (uint32_t)p->scopes.len;
}

static uint32_t new_sym(struct parser *p, struct str text, enum ptx_sym_kind kind, uint32_t pos)
{
    PUSH(p, &p->syms, (struct ptx_sym){.name = text, .kind = (uint8_t)kind, .pos = pos});
    return (uint32_t)p->syms.len - 1;
}

// Marks an undefined symbol as needed; pos is where a message would point.
static void need(struct ptx_sym *sym, bool needed, uint32_t pos)
{
    if (sym->kind != PTX_SYM_UNDEFINED || sym->needed || !needed)
        return;
    sym->needed = true;
    sym->pos = pos;
}

// Rebinds an undefined symbol of a closed scope in the next outer one, or resolves it to the symbol that is
// there.
static bool move_outwards(struct parser *p, const struct pending *u)
{
    uint32_t outer = p->names.items[u->name].sym;
    if (outer == PTX_NONE) {
        bind(p, u->name, u->sym);
        return true;
    }
    while (p->forwards.len <= u->sym)
        PUSH(p, &p->forwards, PTX_NONE);
    p->forwards.items[u->sym] = outer;
    need(&p->syms.items[outer], p->syms.items[u->sym].needed, p->syms.items[u->sym].pos);
    p->has_forwards = true;
    return false;
}

static void undo_bindings(struct parser *p, size_t down_to)
{
    while (p->bindings.len > down_to) {
        const struct binding *b = &p->bindings.items[--p->bindings.len];
        struct name *n = &p->names.items[b->name];
        n->sym = b->sym;
        n->range = b->range;
        n->depth = b->depth;
    }
}

void name_close_scope(struct parser *p)
{
    struct scope s = p->scopes.items[--p->scopes.len];
    undo_bindings(p, s.bindings);
    p->ranges.len = s.ranges;
    size_t kept = s.pending;
    for (size_t i = s.pending; i < p->pending.len; i++) {
        struct pending u = p->pending.items[i];
        if (p->syms.items[u.sym].kind != PTX_SYM_UNDEFINED)
            continue;
        if (p->scopes.len > 0) {
            if (move_outwards(p, &u))
                p->pending.items[kept++] = u;
        } else if (p->names.items[u.name].sym != PTX_NONE) {
            move_outwards(p, &u);
        } else if (p->syms.items[u.sym].needed) {
            struct str text = p->names.items[u.name].text;
            parser_fail_at(p, p->syms.items[u.sym].pos, text.len, QUOTE_FMT " is not declared",
                           QUOTE_ARG(text));
        }
    }
    p->pending.len = kept;
}

uint32_t name_resolve_forward(const struct parser *p, uint32_t sym)
{
    while (sym < p->forwards.len && p->forwards.items[sym] != PTX_NONE)
        sym = p->forwards.items[sym];
    return sym;
}

// --- ranges ------------------------------------------------------------------------------------------------

// Returns the length of text without the number at its end, which goes to *number. Returns the whole length
// if there is no number, or one that no range has.
static size_t split_number(struct str text, uint32_t *number)
{
    size_t n = text.len;
    uint32_t sum = 0, unit = 1;
    for (; n > 0 && text.ptr[n - 1] >= '0' && text.ptr[n - 1] <= '9'; n--, unit *= 10) {
        if (text.len - n == 9)
            return text.len;
        sum += unit * (uint32_t)(text.ptr[n - 1] - '0');
    }
    *number = sum;
    return n ? n : text.len;
}

void name_declare_range(struct parser *p, const struct ptx_var *var, struct str text)
{
    uint32_t id = intern(p, text), depth = (uint32_t)p->scopes.len, outer = p->names.items[id].range;
    if (outer != PTX_NONE && p->ranges.items[outer].depth == depth)
        parser_fail_at(p, var->pos, text.len, "the range " QUOTE_FMT " is declared twice", QUOTE_ARG(text));
    remember(p, id);
    PUSH(p, &p->ranges, (struct range){var->first_reg, var->range, depth, outer});
    p->names.items[id].range = (uint32_t)p->ranges.len - 1;
}

// Returns whether a declaration of text alone hides the register of the range.
static bool is_hidden(struct parser *p, struct str text, const struct range *range, uint32_t pos)
{
    uint32_t id = find(p, text);
    const struct name *n = id == MAP_NONE ? NULL : &p->names.items[id];
    if (!n || n->sym == PTX_NONE || n->depth < range->depth)
        return false;
    if (n->depth == range->depth && p->syms.items[n->sym].kind != PTX_SYM_UNDEFINED)
        parser_fail_at(p, pos, text.len, QUOTE_FMT " is declared twice: alone and in a range",
                       QUOTE_ARG(text));
    return n->depth > range->depth;
}

// Returns whether text is a register of a range; *use then says which.
static bool find_in_range(struct parser *p, struct str text, uint32_t pos, struct name_use *use)
{
    uint32_t number;
    size_t len = split_number(text, &number);
    uint32_t id = len < text.len ? find(p, (struct str){text.ptr, len}) : MAP_NONE;
    if (id == MAP_NONE)
        return false;
    const struct name *prefix = &p->names.items[id];
    uint32_t r = prefix->range;
    while (r != PTX_NONE && number >= p->ranges.items[r].count)
        r = p->ranges.items[r].outer;
    if (r == PTX_NONE || (prefix->prefixes_name && is_hidden(p, text, &p->ranges.items[r], pos)))
        return false;
    *use = (struct name_use){NAME_IS_REG, p->ranges.items[r].first + number};
    return true;
}

// --- declarations and uses ---------------------------------------------------------------------------------

static void mark_prefix(struct parser *p, struct str text)
{
    uint32_t number;
    size_t n = split_number(text, &number);
    if (n == text.len)
        return;
    uint32_t prefix = intern(p, (struct str){text.ptr, n});
    p->names.items[prefix].prefixes_name = true;
}

uint32_t name_declare(struct parser *p, struct str text, enum ptx_sym_kind kind, uint32_t pos)
{
    mark_prefix(p, text);
    uint32_t id = intern(p, text);
    const struct name *n = &p->names.items[id];
    if (n->sym != PTX_NONE && n->depth == p->scopes.len) {
        struct ptx_sym *known = &p->syms.items[n->sym];
        if (known->kind != PTX_SYM_UNDEFINED)
            parser_fail_at(p, pos, text.len, QUOTE_FMT " is declared twice", QUOTE_ARG(text));
        if (kind != PTX_SYM_VAR && kind != PTX_SYM_FUNC) {
            known->kind = (uint8_t)kind;
            known->pos = pos;
            return n->sym;
        }
        // The name in an unknown instruction need not be this one.
        if (known->needed)
            parser_fail_at(p, known->pos, text.len, QUOTE_FMT " is used before it is declared",
                           QUOTE_ARG(text));
    }
    uint32_t sym = new_sym(p, text, kind, pos);
    bind(p, id, sym);
    return sym;
}

uint32_t name_declare_again(struct parser *p, struct str text, enum ptx_sym_kind kind, uint32_t pos)
{
    uint32_t id = intern(p, text);
    const struct name *n = &p->names.items[id];
    if (n->sym != PTX_NONE && n->depth == p->scopes.len && p->syms.items[n->sym].kind == kind)
        return n->sym;
    return name_declare(p, text, kind, pos);
}

uint32_t name_find(const struct parser *p, struct str text)
{
    uint32_t id = map_get(&p->name_map, text);
    return id == MAP_NONE ? PTX_NONE : p->names.items[id].sym;
}

static struct name_use use_later(struct parser *p, uint32_t id, uint32_t pos)
{
    struct str text = p->names.items[id].text;
    uint32_t sym = new_sym(p, text, PTX_SYM_UNDEFINED, pos);
    p->syms.items[sym].needed = !p->in_unknown;
    bind(p, id, sym);
    PUSH(p, &p->pending, (struct pending){id, sym});
    return (struct name_use){NAME_IS_SYM, sym};
}

struct name_use name_lookup(struct parser *p, struct str text, uint32_t pos)
{
    struct name_use use;
    if (find_in_range(p, text, pos, &use))
        return use;
    uint32_t id = intern(p, text);
    const struct name *n = &p->names.items[id];
    // A label further down in this scope would hide one of an outer scope.
    bool maybe_later = p->want_labels && n->depth < p->scopes.len;
    if (n->sym == PTX_NONE && n->sreg >= 0)
        return (struct name_use){NAME_IS_SREG, (uint32_t)n->sreg};
    if (n->sym == PTX_NONE || maybe_later)
        return use_later(p, id, pos);
    struct ptx_sym *sym = &p->syms.items[n->sym];
    need(sym, !p->in_unknown, pos);
    if (sym->kind == PTX_SYM_VAR && sym->var->space == PTX_SPACE_REG)
        return (struct name_use){NAME_IS_REG, sym->var->first_reg};
    return (struct name_use){NAME_IS_SYM, n->sym};
}
