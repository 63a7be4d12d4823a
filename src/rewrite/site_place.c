// SPDX-License-Identifier: MIT
#include "rewrite/site_place.h"

#include <stdio.h>
#include <string.h>

static void copy_text(char *to, size_t size, struct str from)
{
    snprintf(to, size, "%.*s", (int)(from.len < 4096 ? from.len : 4096), from.ptr ? from.ptr : "");
}

// Copies an instruction with one blank where the text has several, or tabs.
static void copy_instruction(char *to, size_t size, struct str from)
{
    size_t n = 0;
    for (size_t i = 0; i < from.len && n + 1 < size; i++) {
        char c = from.ptr[i] == '\t' || from.ptr[i] == '\n' ? ' ' : from.ptr[i];
        if (c != ' ' || (n && to[n - 1] != ' '))
            to[n++] = c;
    }
    to[n] = 0;
}

// Appends a text to the fault's. Returns its offset; 0: it is empty, or there is no room.
static uint16_t add_text(struct driver_fault *f, size_t *used, struct str text)
{
    size_t at = *used;
    if (!text.len || at + text.len + 1 > sizeof f->texts)
        return 0;
    memcpy(f->texts + at, text.ptr, text.len);
    f->texts[at + text.len] = 0;
    *used += text.len + 1;
    return (uint16_t)at;
}

void site_place(struct driver_fault *f, const struct pass_check_site *s, const char *kernel)
{
    size_t used = 1;
    if (kernel)
        snprintf(f->kernel, sizeof f->kernel, "%s", kernel);
    else
        copy_text(f->kernel, sizeof f->kernel, s->function);
    copy_instruction(f->instruction, sizeof f->instruction, s->text);
    f->line = s->line;
    if (s->nframes) {
        copy_text(f->source_file, sizeof f->source_file, s->frames[0].file);
        f->source_line = s->frames[0].line;
    }
    for (uint32_t i = 0; i < s->nframes && i < DRIVER_FAULT_FRAMES - 1; i++) {
        const struct pass_check_frame *from = &s->frames[i];
        f->frames[f->nframes++] = (struct driver_fault_frame){
            add_text(f, &used, from->function), add_text(f, &used, from->file), from->line, from->inlined};
    }
    struct str name = {f->kernel, strlen(f->kernel)};
    if (f->nframes && (name.len != s->function.len || memcmp(name.ptr, s->function.ptr, name.len)))
        f->frames[f->nframes++] = (struct driver_fault_frame){.function = add_text(f, &used, name)};
}
