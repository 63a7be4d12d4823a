// SPDX-License-Identifier: MIT
#include "ptx/op.h"

#include <assert.h>
#include <pthread.h>

#include "base/map.h"

const struct ptx_op ptx_ops[PTX_OP_COUNT] = {
#define OP(id, name_, signature_, width_, space_, control_, flags_) \
    [PTX_OP_##id] = {.name = {name_, sizeof(name_) - 1},            \
                     .signature = signature_,                       \
                     .width = PTX_WIDTH_##width_,                   \
                     .space = PTX_SPACE_##space_,                   \
                     .control = PTX_##control_,                     \
                     .flags = flags_},
#include "ptx/ops.def"
};

static const struct {
    struct str name;
    uint16_t bits;
    uint8_t class;
} types[PTX_TYPE_COUNT] = {
#define TYPE(id, name, bits, class) [PTX_##id] = {{name, sizeof(name) - 1}, bits, PTX_CLASS_##class},
#include "ptx/mods.def"
};

static const struct {
    struct str name;
    uint8_t is;
} spaces[PTX_SPACE_COUNT] = {
#define SPACE(id, name, is) [PTX_SPACE_##id] = {{name, sizeof(name) - 1}, PTX_SPACE_##is},
#include "ptx/mods.def"
};

static const struct str mods[PTX_MOD_COUNT] = {
#define TYPE(id, name, bits, class) [PTX_MOD_##id] = {name, sizeof(name) - 1},
#define SPACE(id, name, is) [PTX_MOD_SPACE_##id] = {name, sizeof(name) - 1},
#define MOD(id, name) [PTX_MOD_##id] = {name, sizeof(name) - 1},
#include "ptx/mods.def"
};

static const struct str sregs[PTX_SREG_COUNT] = {
#define SREG(id, name) [PTX_SREG_##id] = {name, sizeof(name) - 1},
#include "ptx/sregs.def"
};

// Hash tables from names to row numbers, in static arrays: filled once, never freed, without heap. 0 is an
// empty slot.
enum { INDEX_SIZE = 1024 };
struct index {
    uint16_t slots[INDEX_SIZE];
};
static struct index op_index, mod_index, sreg_index;
_Static_assert(PTX_MOD_COUNT < INDEX_SIZE / 2 && (int)PTX_OP_COUNT < INDEX_SIZE / 2, "the index is too full");

static void index_add(struct index *ix, struct str name, unsigned row)
{
    uint32_t i = map_hash(name);
    while (ix->slots[i % INDEX_SIZE])
        i++;
    ix->slots[i % INDEX_SIZE] = (uint16_t)(row + 1);
}

static void fill_indexes(void)
{
    for (unsigned i = 1; i < PTX_OP_COUNT; i++)
        index_add(&op_index, ptx_ops[i].name, i);
    for (unsigned i = 1; i < PTX_MOD_COUNT; i++)
        index_add(&mod_index, mods[i], i);
    for (unsigned i = 0; i < PTX_SREG_COUNT; i++)
        index_add(&sreg_index, sregs[i], i);
}

static void need_indexes(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_indexes);
}

// Finds a name's row, -1 if there is none. The three tables differ in the shape of their rows, so name_of
// returns a row's name.
static int index_find(const struct index *ix, struct str name, struct str (*name_of)(unsigned))
{
    need_indexes();
    for (uint32_t i = map_hash(name);; i++) {
        unsigned slot = ix->slots[i % INDEX_SIZE];
        if (!slot)
            return -1;
        if (str_eq(name_of(slot - 1), name))
            return (int)slot - 1;
    }
}

static struct str op_name(unsigned i)
{
    return ptx_ops[i].name;
}

static struct str mod_name(unsigned i)
{
    return mods[i];
}

static struct str sreg_name(unsigned i)
{
    return sregs[i];
}

static const char *skip_digits(const char *p, const char *end)
{
    const char *start = p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > start ? p : NULL;
}

// Returns whether a modifier is a shape: m16n8k16, m8n8, 32x128b, 16x32bx2.
static bool is_shape(struct str s)
{
    const char *p = s.ptr, *end = p + s.len;
    bool mnk = s.len && *p == 'm';
    p = skip_digits(p + mnk, end);
    if (!p || p == end)
        return false;
    if (!mnk) {
        if (*p != 'x' || !(p = skip_digits(p + 1, end)) || p == end || *p++ != 'b')
            return false;
        return p == end || (*p == 'x' && skip_digits(p + 1, end) == end);
    }
    if (*p != 'n' || !(p = skip_digits(p + 1, end)))
        return false;
    return p == end || (*p == 'k' && skip_digits(p + 1, end) == end);
}

enum ptx_mod ptx_mod_find(struct str name)
{
    int row = index_find(&mod_index, name, mod_name);
    if (row > 0)
        return (enum ptx_mod)row;
    return is_shape(name) ? PTX_MOD_SHAPE : PTX_MOD_UNKNOWN;
}

// Types, then spaces, come first among the modifiers, in the order of their enums.
static enum ptx_type mod_type(enum ptx_mod mod)
{
    return mod >= 1 && (int)mod < PTX_TYPE_COUNT ? (enum ptx_type)mod : PTX_TYPE_NONE;
}

static enum ptx_space mod_space(enum ptx_mod mod)
{
    int first = PTX_MOD_SPACE_REG;
    return (int)mod >= first && (int)mod < first + PTX_SPACE_COUNT - 1
               ? (enum ptx_space)((int)mod - first + 1)
               : PTX_SPACE_GENERIC;
}
_Static_assert((int)PTX_MOD_B1 == (int)PTX_B1 && (int)PTX_MOD_SURFREF == (int)PTX_SURFREF, "see mod_type");

enum ptx_type ptx_type_find(struct str name)
{
    return mod_type(ptx_mod_find(name));
}

enum ptx_space ptx_space_find(struct str name)
{
    return mod_space(ptx_mod_find(name));
}

enum ptx_space ptx_space_is(enum ptx_space s)
{
    return (enum ptx_space)spaces[s].is;
}

struct str ptx_type_name(enum ptx_type t)
{
    return types[t].name;
}

struct str ptx_space_name(enum ptx_space s)
{
    return s == PTX_SPACE_GENERIC ? STR("generic") : spaces[s].name;
}

unsigned ptx_type_bits(enum ptx_type t)
{
    return types[t].bits;
}

enum ptx_type_class ptx_type_class(enum ptx_type t)
{
    return (enum ptx_type_class)types[t].class;
}

struct str ptx_sreg_name(enum ptx_sreg s)
{
    return sregs[s];
}

int ptx_sreg_find(struct str name)
{
    return index_find(&sreg_index, name, sreg_name);
}

// Returns the row with the longest name that is a prefix of the spelling and ends at a dot.
static unsigned find_op(struct str spelling)
{
    for (struct str s = spelling;;) {
        int row = index_find(&op_index, s, op_name);
        if (row > 0)
            return (unsigned)row;
        const char *dot = memrchr(s.ptr, '.', s.len);
        if (!dot)
            return PTX_OP_UNKNOWN;
        s.len = (size_t)(dot - s.ptr);
    }
}

static uint8_t role_of(char c)
{
    static const char codes[] = " dsbRWXADLTFraq";
    _Static_assert(sizeof codes - 1 == PTX_ROLE_PROTO + 1,
                   "one letter per role, in the order of enum ptx_role");
    const char *at = strchr(codes + 1, c);
    assert(at && "a signature in ops.def has an unknown role");
    return (uint8_t)(at - codes);
}

static uint8_t fit_of(char c)
{
    static const char codes[] = "0123pulwzy-";
    _Static_assert(sizeof codes - 1 == PTX_FIT_ANY + 1, "one letter per fit, in the order of enum ptx_fit");
    const char *at = strchr(codes, c);
    assert(at && "a signature in ops.def has an unknown type code");
    return (uint8_t)(at - codes);
}

static void read_signature(struct ptx_form *form)
{
    const char *p = form->op->signature;
    bool optional = false;
    while (*p) {
        if (*p == '?') {
            optional = true;
            p++;
        } else if (*p == ' ') {
            p++;
        } else {
            assert(form->nrules < PTX_MAX_RULES);
            form->rules[form->nrules++] = (struct ptx_operand_rule){role_of(p[0]), fit_of(p[1])};
            form->nneeded += !optional;
            p += 2;
        }
    }
}

static void add_mod(struct ptx_form *form, struct str name)
{
    enum ptx_mod mod = ptx_mod_find(name);
    if (mod == PTX_MOD_UNKNOWN || form->nmods == PTX_MAX_MODS)
        form->odd = true;
    if (form->nmods < PTX_MAX_MODS)
        form->mods[form->nmods++] = (uint16_t)mod;
    enum ptx_type type = mod_type(mod);
    enum ptx_space space = mod_space(mod);
    if ((type && form->ntypes == PTX_MAX_TYPES) || (space && form->nspaces == PTX_MAX_TYPES))
        form->odd = true;
    else if (type)
        form->types[form->ntypes++] = (uint8_t)type;
    else if (space)
        form->spaces[form->nspaces++] = (uint8_t)ptx_space_is(space);
    if (mod == PTX_MOD_V2 || mod == PTX_MOD_V4 || mod == PTX_MOD_V8)
        form->vec = mod == PTX_MOD_V2 ? 2 : mod == PTX_MOD_V4 ? 4 : 8;
}

bool ptx_form_has(const struct ptx_form *form, enum ptx_mod mod)
{
    for (unsigned i = 0; i < form->nmods; i++)
        if (form->mods[i] == mod)
            return true;
    return false;
}

// Takes a letter and a number from 1 to 999.
static bool take_dim(struct str *s, char letter, uint16_t *out)
{
    unsigned value = 0;
    if (!s->len || s->ptr[0] != letter)
        return false;
    *s = str_skip(*s, 1);
    for (; s->len && s->ptr[0] >= '0' && s->ptr[0] <= '9' && value < 1000; *s = str_skip(*s, 1))
        value = value * 10 + (unsigned)(s->ptr[0] - '0');
    *out = (uint16_t)value;
    return value > 0 && value < 1000;
}

bool ptx_form_dims(const struct ptx_form *form, struct ptx_dims *out)
{
    for (struct str s = form->name; s.len; s = str_skip(s, 1)) {
        struct str at = str_skip(s, 1);
        struct ptx_dims found = {0};
        if (s.ptr[0] != '.' || !take_dim(&at, 'm', &found.m) || !take_dim(&at, 'n', &found.n))
            continue;
        if ((take_dim(&at, 'k', &found.k) || !found.k) && (!at.len || at.ptr[0] == '.')) {
            *out = found;
            return true;
        }
    }
    return false;
}

// Returns the row's flags and those that modifiers add.
static uint8_t flags_of(const struct ptx_form *form)
{
    static const struct {
        uint16_t mod;
        uint8_t flag;
    } adds[] = {{PTX_MOD_CC, PTX_CC_WRITE},    {PTX_MOD_VOLATILE, PTX_EFFECT}, {PTX_MOD_MMIO, PTX_EFFECT},
                {PTX_MOD_RELAXED, PTX_EFFECT}, {PTX_MOD_ACQUIRE, PTX_EFFECT},  {PTX_MOD_RELEASE, PTX_EFFECT},
                {PTX_MOD_ACQ_REL, PTX_EFFECT}};
    uint8_t flags = form->op->flags;
    for (unsigned i = 0; i < sizeof adds / sizeof *adds; i++)
        if (ptx_form_has(form, (enum ptx_mod)adds[i].mod))
            flags |= adds[i].flag;
    return flags;
}

void ptx_form_decode(struct str spelling, struct ptx_form *form)
{
    *form = (struct ptx_form){.name = spelling, .pos = UINT32_MAX, .vec = 1};
    form->id = (uint16_t)find_op(spelling);
    form->op = &ptx_ops[form->id];
    read_signature(form);
    const char *end = spelling.ptr + spelling.len;
    const char *dot = memchr(spelling.ptr, '.', spelling.len);
    while (dot) {
        const char *name = dot + 1;
        dot = memchr(name, '.', (size_t)(end - name));
        add_mod(form, (struct str){name, (size_t)((dot ? dot : end) - name)});
    }
    form->flags = flags_of(form);
}
