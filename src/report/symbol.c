// SPDX-License-Identifier: MIT
#include "report/symbol.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

enum {
    MOST_INLINED = 32,  // frames that one place can expand to
    DEEPEST = 100,      // nested namespaces, nested blocks
};

struct object {
    Dwfl *dwfl;  // NULL: cannot be read
    Dwfl_Module *module;
    Dwarf *dwarf;     // NULL: has none
    Dwarf_Addr bias;  // of dwarf's addresses
    bool searched;    // dwarf has been searched for
    bool runtime;     // functions are enough: report_is_runtime
};

// The result for a place: frames[first .. first + count) of the symbols.
struct answer {
    uint32_t first, count;
};

struct symbols {
    struct arena arena;  // keys and texts
    struct map by_path;  // → objects
    VEC(struct object) objects;
    struct map by_place;  // object and offset → answers
    VEC(struct answer) answers;
    VEC(struct report_frame) frames;
};

struct symbols *symbol_new(void)
{
    struct symbols *s = mem_zalloc(1, sizeof *s);
    if (s)
        arena_init(&s->arena, 0);
    elf_version(EV_CURRENT);
    return s;
}

void symbol_free(struct symbols *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->objects.len; i++)
        if (s->objects.items[i].dwfl)
            dwfl_end(s->objects.items[i].dwfl);
    vec_free(&s->objects);
    vec_free(&s->answers);
    vec_free(&s->frames);
    map_free(&s->by_path);
    map_free(&s->by_place);
    arena_free(&s->arena);
    mem_free(s);
}

// Objects

// Opens a regular file. A saved report may name a device or a pipe, and reading those may never end.
static int open_regular(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int find_no_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, char **file,
                       Elf **elf)
{
    return -1;
}

// Opens an object. Debug files are found by build id only: libdwfl's other ways may read whole files or use
// the network.
static struct object open_object(const char *path)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = find_no_elf,
        .find_debuginfo = dwfl_build_id_find_debuginfo,
        .section_address = dwfl_offline_section_address,
    };
    struct object o = {0};
    int fd = open_regular(path);
    if (fd < 0)
        return o;
    o.dwfl = dwfl_begin(&callbacks);
    if (!o.dwfl) {
        close(fd);
        return o;
    }
    dwfl_report_begin(o.dwfl);
    o.module = dwfl_report_elf(o.dwfl, path, path, fd, 0, true);
    dwfl_report_end(o.dwfl, NULL, NULL);
    if (!o.module) {
        close(fd);
        dwfl_end(o.dwfl);
        o.dwfl = NULL;
    }
    return o;
}

static const char *keep(struct arena *a, const char *text)
{
    return text ? arena_str(a, (struct str){text, strlen(text) + 1}).ptr : NULL;
}

// Returns an object's index in s->objects, or MAP_NONE if out of memory.
static uint32_t find_object(struct symbols *s, const char *path)
{
    uint32_t at = map_get(&s->by_path, str_from(path));
    if (at != MAP_NONE)
        return at;
    const char *key = keep(&s->arena, path);
    if (!key || vec_reserve(&s->objects, 1) || map_put(&s->by_path, str_from(key), (uint32_t)s->objects.len))
        return MAP_NONE;
    s->objects.items[s->objects.len] = open_object(path);
    s->objects.items[s->objects.len++].runtime = report_is_runtime(path);
    return (uint32_t)s->objects.len - 1;
}

// DWARF

// Finds the unit that an address lies in. Some compilers write no index of addresses: then all units are
// searched.
static Dwarf_Die *find_unit(struct object *o, Dwarf_Addr address, Dwarf_Die *unit)
{
    if (dwarf_addrdie(o->dwarf, address, unit))
        return unit;
    Dwarf_CU *cu = NULL;
    uint8_t type;
    while (dwarf_get_units(o->dwarf, cu, &cu, NULL, &type, unit, NULL) == 0)
        if ((type == DW_UT_compile || type == DW_UT_skeleton) && dwarf_haspc(unit, address) > 0)
            return unit;
    return NULL;
}

// Returns the mangled name, or the plain one if it has none.
static const char *name_of(Dwarf_Die *die)
{
    Dwarf_Attribute a;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &a) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &a))
        return dwarf_formstring(&a);
    if (dwarf_attr_integrate(die, DW_AT_name, &a))
        return dwarf_formstring(&a);
    return NULL;
}

// Reads where an inlined function was called.
static void read_call(Dwarf_Die *die, Dwarf_Die *unit, const char **file, uint32_t *line)
{
    Dwarf_Attribute a;
    Dwarf_Word value;
    Dwarf_Files *files;
    size_t count;
    *file = NULL;
    *line = 0;
    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &a), &value) == 0 &&
        dwarf_getsrcfiles(unit, &files, &count) == 0 && value < count)
        *file = dwarf_filesrc(files, value, NULL, NULL);
    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &a), &value) == 0)
        *line = (uint32_t)value;
}

// Finds the function that contains an address, among the children of a unit and of its namespaces. libdw's
// own search skips namespaces.
static bool find_function(Dwarf_Die *parent, Dwarf_Addr address, Dwarf_Die *out, int depth)
{
    Dwarf_Die child;
    if (depth == DEEPEST || dwarf_child(parent, &child))
        return false;
    do {
        int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram && dwarf_haspc(&child, address) > 0) {
            *out = child;
            return true;
        }
        if ((tag == DW_TAG_namespace || tag == DW_TAG_module) &&
            find_function(&child, address, out, depth + 1))
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

// Moves one level down towards the address, through blocks and inlined functions.
static bool find_nested(Dwarf_Die *die, Dwarf_Addr address)
{
    Dwarf_Die child;
    if (dwarf_child(die, &child))
        return false;
    do {
        int tag = dwarf_tag(&child);
        bool scope = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
                     tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
        if (scope && dwarf_haspc(&child, address) > 0) {
            *die = child;
            return true;
        }
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

// Finds the function around an address and those inlined into it, outermost first. Returns their number.
static uint32_t find_scopes(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die *scopes)
{
    Dwarf_Die die;
    if (!find_function(unit, address, &die, 0))
        return 0;
    uint32_t count = 0;
    scopes[count++] = die;
    for (int depth = 0; depth < DEEPEST && count < MOST_INLINED && find_nested(&die, address); depth++)
        if (dwarf_tag(&die) == DW_TAG_inlined_subroutine)
            scopes[count++] = die;
    return count;
}

static uint32_t find_dwarf(struct object *o, Dwarf_Addr address, struct report_frame *out)
{
    Dwarf_Die unit, scopes[MOST_INLINED];
    int line = 0;
    if (!o->dwarf || !find_unit(o, address -= o->bias, &unit))
        return 0;
    struct report_frame f = {0};
    Dwarf_Line *source = dwarf_getsrc_die(&unit, address);
    if (source) {
        f.file = dwarf_linesrc(source, NULL, NULL);
        f.line = dwarf_lineno(source, &line) == 0 && line > 0 ? (uint32_t)line : 0;
    }
    uint32_t count = 0;
    for (uint32_t n = find_scopes(&unit, address, scopes); n-- > 0;) {
        f.function = name_of(&scopes[n]);
        f.inlined = n > 0;
        out[count++] = f;
        if (n > 0)
            read_call(&scopes[n], &unit, &f.file, &f.line);
    }
    if (!count && f.file)
        out[count++] = f;
    return count;
}

// Answers

static uint32_t look_up(struct object *o, uint64_t offset, struct report_frame *out)
{
    if (!o->dwfl)
        return 0;
    // Every stack ends in libc. Debian's debug file of it is compressed; unpacking it takes longer than all
    // else.
    if (!o->searched && !o->runtime) {
        o->searched = true;
        o->dwarf = dwfl_module_getdwarf(o->module, &o->bias);
    }
    // A return address may be past its function's last instruction.
    uint64_t address = offset ? offset - 1 : 0;
    uint32_t count = find_dwarf(o, address, out);
    if (count && out[count - 1].function)
        return count;
    GElf_Sym symbol;
    GElf_Off distance;
    const char *name = dwfl_module_addrinfo(o->module, address, &distance, &symbol, NULL, NULL, NULL);
    if (name && !count)
        out[count++] = (struct report_frame){0};
    if (name)
        out[count - 1].function = name;
    return count;
}

static int remember(struct symbols *s, const struct report_frame *frames, uint32_t count)
{
    struct answer a = {(uint32_t)s->frames.len, count};
    if (vec_reserve(&s->frames, count))
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct report_frame f = frames[i];
        f.function = keep(&s->arena, f.function);
        f.file = keep(&s->arena, f.file);
        s->frames.items[s->frames.len++] = f;
    }
    return vec_push(&s->answers, a);
}

// Returns a place's index in s->answers, or MAP_NONE if out of memory.
static uint32_t find(struct symbols *s, const char *path, uint64_t offset)
{
    uint64_t place[2] = {find_object(s, path), offset};
    struct str key = {(const char *)place, sizeof place};
    if (place[0] == MAP_NONE)
        return MAP_NONE;
    uint32_t at = map_get(&s->by_place, key);
    if (at != MAP_NONE)
        return at;
    struct report_frame found[MOST_INLINED];
    uint32_t count = look_up(&s->objects.items[place[0]], offset, found);
    key = arena_str(&s->arena, key);
    if (!key.ptr || remember(s, found, count))
        return MAP_NONE;
    at = (uint32_t)s->answers.len - 1;
    return map_put(&s->by_place, key, at) ? MAP_NONE : at;
}

// Appends the frames that replace a frame.
static void expand(struct symbols *s, struct arena *a, const struct report_frame *f,
                   const struct answer *answer, struct report_frame *out)
{
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct report_frame *found = &s->frames.items[answer->first + i];
        out[i] = *f;
        out[i].function = keep(a, found->function);
        out[i].file = keep(a, found->file);
        out[i].line = found->line;
        out[i].inlined = found->inlined;
    }
}

void symbol_stack(struct symbols *s, struct arena *a, struct report_stack *stack)
{
    uint32_t *answers = stack->count ? ARENA_ARRAY(a, uint32_t, stack->count) : NULL;
    size_t total = 0;
    if (!answers)
        return;
    for (uint32_t i = 0; i < stack->count; i++) {
        const struct report_frame *f = &stack->frames[i];
        answers[i] = f->function || f->file || !f->object ? MAP_NONE : find(s, f->object, f->offset);
        if (answers[i] != MAP_NONE && !s->answers.items[answers[i]].count)
            answers[i] = MAP_NONE;
        total += answers[i] == MAP_NONE ? 1 : s->answers.items[answers[i]].count;
    }
    struct report_frame *frames = total <= UINT32_MAX ? ARENA_ARRAY(a, struct report_frame, total) : NULL;
    if (!frames)
        return;
    struct report_frame *to = frames;
    for (uint32_t i = 0; i < stack->count; i++) {
        if (answers[i] == MAP_NONE) {
            *to++ = stack->frames[i];
            continue;
        }
        const struct answer *answer = &s->answers.items[answers[i]];
        expand(s, a, &stack->frames[i], answer, to);
        to += answer->count;
    }
    *stack = (struct report_stack){(uint32_t)total, frames};
}

void symbol_line(struct symbols *s, struct arena *a, struct report_line *line)
{
    struct report *r = &line->error;
    if (!s || line->event != REPORT_ERROR)
        return;
    jmp_buf *on_fail = a->on_fail;
    a->on_fail = NULL;
    symbol_stack(s, a, &r->stack);
    struct report_buffer *buffers = r->nbuffers ? ARENA_ARRAY(a, struct report_buffer, r->nbuffers) : NULL;
    for (uint32_t i = 0; buffers && i < r->nbuffers; i++) {
        buffers[i] = r->buffers[i];
        symbol_stack(s, a, &buffers[i].made_at);
        symbol_stack(s, a, &buffers[i].freed_at);
    }
    r->buffers = buffers ? buffers : r->buffers;
    a->on_fail = on_fail;
}
