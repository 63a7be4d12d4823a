// SPDX-License-Identifier: MIT
#include "track/python_frames.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "track/script_frames.h"

// Where the fields lie that are read, by minor version. In all of them the name of a code object, and the
// file, are members that its type describes.
struct layout {
    int minor;
    uint16_t chain;           // of a thread: what leads to its frames
    uint16_t top;             // of that: the innermost frame. DIRECT: it is the frame itself
    uint16_t code, previous;  // of a frame
    uint16_t at;              // of a frame: the instruction; 0: PyFrame_GetLineNumber says the line
    uint16_t ascii, compact;  // of a text: where its characters are, if all of them are ASCII, and if not
};
enum { DIRECT = 0xffff };
static const struct layout layouts[] = {
    {6, 24, DIRECT, 32, 24, 0, 48, 72},  {7, 24, DIRECT, 32, 24, 0, 48, 72},
    {8, 24, DIRECT, 32, 24, 0, 48, 72},  {9, 24, DIRECT, 32, 24, 0, 48, 72},
    {10, 24, DIRECT, 32, 24, 0, 48, 72}, {11, 56, 8, 32, 48, 56, 48, 72},
    {12, 56, 0, 0, 8, 56, 40, 56},       {13, 72, DIRECT, 0, 8, 56, 40, 56},
};

// Fields that are the same in all of these versions.
enum {
    OBJECT_TYPE = 8,
    OBJECT_BYTES = 16,
    TYPE_BYTES = 32,
    TYPE_MEMBERS = 240,
    TEXT_LENGTH = 16,
    TEXT_STATE = 32,
    MEMBER_BYTES = 40,  // struct PyMemberDef: a name, and the offset after 16 bytes
    MEMBER_OFFSET = 16,
};

enum { TEXT = 512, WALK_MOST = 64 };

static struct layout layout;
static void *(*this_thread)(void);
static int (*line_of_frame)(void *frame);
static int (*line_of_code)(void *code, int byte);
static const char *code_type, *text_type;
static uint64_t code_name, code_file, code_start;  // offsets in a code object

// Relaxed, both: any thread comes to the same result.
enum { NONE, UNPROVEN, PROVEN };
static _Atomic int state;

// Reads memory that may not be there until the layout has proved right.
static inline bool read_bytes(const void *from, void *to, size_t size)
{
    if (atomic_load_explicit(&state, memory_order_relaxed) == PROVEN) {
        memcpy(to, from, size);
        return true;
    }
    struct iovec local = {to, size}, remote = {(void *)(uintptr_t)from, size};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static inline bool read_pointer(const char *object, uint64_t offset, const char **to)
{
    return read_bytes(object + offset, to, sizeof *to);
}

static inline bool has_type(const char *object, const char *type)
{
    const char *is;
    return object && read_pointer(object, OBJECT_TYPE, &is) && is == type;
}

// --- texts ---

static size_t add_character(char *to, uint32_t c)
{
    if (c >= 0xdc80 && c <= 0xdcff)  // a byte of a path that is no UTF-8
        return *to = (char)c, 1;
    if (c < 0x80)
        return *to = (char)c, 1;
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; --i; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(c | (n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0));
    return n;
}

// Reads a text, or its beginning.
static bool read_text(const char *object, char text[TEXT])
{
    uint64_t length;
    uint32_t bits, wide[TEXT / 4];
    if (!has_type(object, text_type) || !read_bytes(object + TEXT_LENGTH, &length, sizeof length) ||
        !read_bytes(object + TEXT_STATE, &bits, sizeof bits))
        return false;
    bool compact = bits >> 5 & 1, ascii = bits >> 6 & 1;
    size_t kind = bits >> 2 & 7, most = ascii ? TEXT - 1 : TEXT / 4 - 1, n = length < most ? length : most;
    if (!compact || (kind != 1 && kind != 2 && kind != 4))
        return false;
    if (!read_bytes(object + (ascii ? layout.ascii : layout.compact), ascii ? (void *)text : wide, n * kind))
        return false;
    size_t at = ascii ? n : 0;
    for (size_t i = 0; !ascii && i < n; i++)
        at += add_character(text + at, kind == 1   ? ((const uint8_t *)wide)[i]
                                       : kind == 2 ? ((const uint16_t *)wide)[i]
                                                   : wide[i]);
    text[at] = 0;
    return true;
}

// --- frames ---

static inline bool innermost(const char *thread, const char **frame)
{
    const char *chain;
    if (!read_pointer(thread, layout.chain, &chain))
        return false;
    *frame = chain;
    return layout.top == DIRECT || !chain || read_pointer(chain, layout.top, frame);
}

static inline bool read_row(const char *frame, const char *code, struct python_row *r)
{
    const char *at = NULL;
    *r = (struct python_row){.frame = frame, .code = code};
    if (!read_pointer(code, code_name, &r->name) || !read_pointer(code, code_file, &r->file) ||
        (layout.at && !read_pointer(frame, layout.at, &at)))
        return false;
    r->at =
        layout.at ? (uint64_t)(at - (code + code_start)) : (uint64_t)line_of_frame((void *)(uintptr_t)frame);
    return true;
}

static inline uint64_t add_hash(uint64_t hash, const struct python_row *r)
{
    uint64_t row =
        (uintptr_t)r->code + ((uintptr_t)r->name << 20) + ((uintptr_t)r->file << 36) + (r->at << 48);
    hash = (hash ^ row ^ r->at) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

// Returns whether all that was read is as it should be.
static bool walk_frames(const char *thread, struct python_walk *w, unsigned most)
{
    const char *frame, *code;
    if (!innermost(thread, &frame))
        return false;
    for (int seen = 0; frame && w->count < most && seen < WALK_MOST; seen++) {
        if (!read_pointer(frame, layout.code, &code))
            return false;
        // Frames with which C code enters the interpreter have another object there, or none.
        if (has_type(code, code_type)) {
            struct python_row *r = &w->rows[w->count];
            if (!read_row(frame, code, r))
                return false;
            w->hash = add_hash(w->hash, r);
            w->count++;
        }
        if (!read_pointer(frame, layout.previous, &frame))
            return false;
    }
    return true;
}

// Returns the address for a frame; 0 if it cannot be had.
static uint64_t address_of(const struct python_row *r)
{
    char function[TEXT], path[TEXT];
    if (!read_text(r->name, function) || !read_text(r->file, path))
        return 0;
    int line = (int)r->at;
    if (layout.at)
        line = line_of_code((void *)(uintptr_t)r->code, r->at > INT32_MAX ? -1 : (int)r->at);
    return script_frames_keep(function, path, line > 0 ? (uint32_t)line : 0);
}

unsigned python_frames_walk(struct python_walk *w, unsigned most)
{
    int before = atomic_load_explicit(&state, memory_order_relaxed);
    const char *thread = before == NONE ? NULL : this_thread();
    w->count = 0;
    w->hash = 1;
    if (!thread)
        return 0;
    bool sound = walk_frames(thread, w, most < PYTHON_FRAMES_MOST ? most : PYTHON_FRAMES_MOST);
    char text[TEXT];
    if (before == UNPROVEN && w->count)
        sound = sound && read_text(w->rows[0].name, text) && read_text(w->rows[0].file, text);
    if (before == UNPROVEN && (w->count || !sound))
        atomic_store_explicit(&state, sound ? PROVEN : NONE, memory_order_relaxed);
    return sound ? w->count : 0;
}

unsigned python_frames_get(const struct python_walk *w, uint64_t *pcs)
{
    unsigned n = 0;
    for (unsigned i = 0; i < w->count; i++)
        if ((pcs[n] = address_of(&w->rows[i])))
            n++;
    return n;
}

// --- the interpreter ---

// Returns the offset of a member that the type of code objects describes; 0 if it describes none.
static uint64_t member(const char *name)
{
    const char *row;
    memcpy(&row, code_type + TYPE_MEMBERS, sizeof row);
    for (; row; row += MEMBER_BYTES) {
        const char *text;
        uint64_t offset;
        memcpy(&text, row, sizeof text);
        memcpy(&offset, row + MEMBER_OFFSET, sizeof offset);
        if (!text)
            return 0;
        if (strcmp(text, name) == 0)
            return offset;
    }
    return 0;
}

static bool find_layout(const char *version)
{
    char *end;
    if (!version || strncmp(version, "3.", 2))
        return false;
    long minor = strtol(version + 2, &end, 10);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].minor == minor && *end == '.') {
            layout = layouts[i];
            return true;
        }
    return false;
}

// Returns whether objects have the size that they have in a release: those of a debugging build, and of one
// without the interpreter's lock, begin otherwise.
static bool is_usual(const char *object_type)
{
    uint64_t bytes;
    memcpy(&bytes, object_type + TYPE_BYTES, sizeof bytes);
    return bytes == OBJECT_BYTES;
}

void python_frames_init(void)
{
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
    const char *object_type = dlsym(RTLD_DEFAULT, "PyBaseObject_Type");
    this_thread = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    line_of_frame = (int (*)(void *))dlsym(RTLD_DEFAULT, "PyFrame_GetLineNumber");
    line_of_code = (int (*)(void *, int))dlsym(RTLD_DEFAULT, "PyCode_Addr2Line");
    code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    text_type = dlsym(RTLD_DEFAULT, "PyUnicode_Type");
    if (!version || !object_type || !this_thread || !line_of_frame || !line_of_code || !code_type ||
        !text_type || !find_layout(version()) || !is_usual(object_type))
        return;
    code_name = member("co_name");
    code_file = member("co_filename");
    memcpy(&code_start, code_type + TYPE_BYTES, sizeof code_start);
    if (code_name && code_file)
        atomic_store_explicit(&state, UNPROVEN, memory_order_relaxed);
}
