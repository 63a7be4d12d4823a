// SPDX-License-Identifier: MIT
#include "report/text_paint.h"

#include <string.h>

#include "base/str.h"
#include "report/utf8.h"

void text_paint_colour(struct text_painter *p, enum text_colour colour)
{
    static const char *const codes[] = {
        [TEXT_PLAIN] = "\033[0m",    [TEXT_BOLD] = "\033[1m",       [TEXT_DIM] = "\033[2m",
        [TEXT_BAD] = "\033[1;31m",   [TEXT_WARNING] = "\033[1;33m", [TEXT_GOOD] = "\033[32m",
        [TEXT_HEADING] = "\033[36m",
    };
    if (p->style.colour)
        text_buffer_cstr(p->b, codes[colour]);
}

void text_paint_clean(struct text_painter *p, const char *text)
{
    struct str s = str_from(text);
    while (s.len && !p->b->cut) {
        size_t n = utf8_length(s);
        bool bad = !n || utf8_is_control(s, n);
        text_buffer_bytes(p->b, *s.ptr == '\t' ? " " : bad ? "?" : s.ptr, bad ? 1 : n);
        s = str_skip(s, n ? n : 1);
    }
}

void text_paint_name(struct text_painter *p, const char *name)
{
    text_paint_clean(p, demangle_name(&p->style.demangle, name));
}

void text_paint_sentence(struct text_painter *p, const char *text)
{
    char buffer[4096];
    text_paint_clean(p, demangle_text(&p->style.demangle, text, buffer, sizeof buffer));
}

// Returns the part of a path after the root if it lies below it, else the path.
static const char *below(const char *root, const char *path)
{
    size_t n = root ? strlen(root) : 0;
    while (n && root[n - 1] == '/')
        n--;
    return n && strncmp(path, root, n) == 0 && path[n] == '/' && path[n + 1] ? path + n + 1 : path;
}

void text_paint_path(struct text_painter *p, const char *path, uint32_t line)
{
    text_paint_clean(p, below(p->style.root, path));
    if (line)
        text_buffer_fmt(p->b, ":%u", line);
}

void text_paint_count(struct text_painter *p, uint64_t n, const char *one, const char *many)
{
    text_paint_u64(p, n, 0);
    text_buffer_fmt(p->b, " %s", n == 1 ? one : many);
}

size_t text_paint_width(uint64_t v)
{
    size_t digits = 1;
    while (v /= 10)
        digits++;
    return digits + (digits - 1) / 3;
}

void text_paint_u64(struct text_painter *p, uint64_t v, size_t width)
{
    char text[26];
    char *at = text + sizeof text;
    for (int i = 0; i == 0 || v; i++, v /= 10) {
        if (i && i % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + v % 10);
    }
    size_t n = (size_t)(text + sizeof text - at);
    text_paint_pad(p, width > n ? width - n : 0);
    text_buffer_bytes(p->b, at, n);
}

void text_paint_pad(struct text_painter *p, size_t n)
{
    while (n-- && !p->b->cut)
        text_buffer_char(p->b, ' ');
}

void text_paint_title(struct text_painter *p, int pid, const char *title)
{
    text_paint_colour(p, TEXT_BOLD);
    text_buffer_fmt(p->b, "==%d==moat: %s", pid, title);
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
}

static void paint_object(struct text_painter *p, const struct report_frame *f)
{
    if (f->object) {
        text_paint_path(p, f->object, 0);
        text_buffer_fmt(p->b, "+0x%lx", (unsigned long)f->offset);
    } else {
        text_buffer_hex(p->b, f->pc);
    }
}

static void paint_frame(struct text_painter *p, unsigned number, const struct report_frame *f)
{
    text_paint_colour(p, TEXT_DIM);
    text_buffer_fmt(p->b, "    #%u ", number);
    text_paint_colour(p, TEXT_PLAIN);
    bool placed = f->file || f->object || f->pc || !f->function;
    if (f->function)
        text_paint_name(p, f->function);
    if (f->function && placed)
        text_buffer_char(p->b, ' ');
    if (f->file) {
        text_paint_path(p, f->file, f->line);
    } else if (placed) {
        text_paint_colour(p, TEXT_DIM);
        text_buffer_cstr(p->b, f->function ? "(" : "");
        paint_object(p, f);
        text_buffer_cstr(p->b, f->function ? ")" : "");
        text_paint_colour(p, TEXT_PLAIN);
    }
    text_buffer_char(p->b, '\n');
}

// Returns the end of the run of the interpreter's frames that begins at i.
static uint32_t end_of_interpreter(const struct report_stack *stack, uint32_t i)
{
    while (i < stack->count && report_is_interpreter(stack->frames[i].object))
        i++;
    return i;
}

static bool has_torch(const struct report_stack *stack, uint32_t i, uint32_t end)
{
    for (; i < end; i++)
        if (stack->frames[i].object && strstr(stack->frames[i].object, "/torch/lib/"))
            return true;
    return false;
}

// Returns the end of the run of frames in headers of a toolkit that begins at i.
static uint32_t end_of_headers(const struct report_stack *stack, uint32_t i)
{
    while (i < stack->count && report_is_toolkit_header(stack->frames[i].file))
        i++;
    return i;
}

// Returns whether the frame is one of Python code, whose main may have callers like any other function.
static bool is_python(const struct report_frame *f)
{
    size_t len = f->file ? strlen(f->file) : 0;
    return !f->object && len && (f->file[0] == '<' || (len > 3 && strcmp(f->file + len - 3, ".py") == 0));
}

// Prints a stack from the runtime's call up to main: the frames that called it are the same in every
// program. An interpreter's frames are one line, and of more than two in headers of a toolkit only the
// innermost is shown.
void text_paint_stack(struct text_painter *p, const struct report_stack *stack)
{
    unsigned number = 0;
    for (uint32_t i = report_first_shown(stack); i < stack->count && !p->b->cut; i++) {
        const struct report_frame *f = &stack->frames[i];
        if (number && report_is_start_code(f))
            break;
        paint_frame(p, number++, f);
        if (f->function && strcmp(f->function, "main") == 0 && !is_python(f))
            break;
        uint32_t end = end_of_interpreter(stack, i);
        if (end > i + 1) {
            text_buffer_fmt(p->b, "    ... %u more frames of the interpreter%s\n", end - i - 1,
                            has_torch(stack, i, end) ? " and PyTorch" : "");
            i = end - 1;
        }
        end = end_of_headers(stack, i);
        if (end > i + 2) {
            text_buffer_fmt(p->b, "    ... %u more frames in the toolkit's headers\n", end - i - 1);
            i = end - 1;
        }
    }
}

void text_paint_object(struct text_painter *p, const struct report_frame *f)
{
    paint_object(p, f);
}

void text_paint_notes(struct text_painter *p, const char *const *notes, uint32_t count, const char *before)
{
    for (uint32_t i = 0; i < count; i++) {
        text_buffer_cstr(p->b, before);
        text_paint_sentence(p, notes[i]);
        text_buffer_char(p->b, '\n');
    }
}
