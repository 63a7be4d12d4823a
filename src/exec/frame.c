// SPDX-License-Identifier: MIT
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "exec/sched.h"

enum {
    ALIGN = 64,
    MOST_MEMORY = 512 << 20,  // of a block's frames: endless recursion must not take all memory
};

static void fill(char *regs, const struct exec_const *c)
{
    char *at = regs + c->slot;
    switch (c->bits) {
    case 1: *(uint32_t *)at = c->value ? EXEC_ALL : 0; return;
    case 16:
        for (unsigned l = 0; l < EXEC_LANES; l++)
            ((uint16_t *)at)[l] = (uint16_t)c->value;
        return;
    case 32:
        for (unsigned l = 0; l < EXEC_LANES; l++)
            ((uint32_t *)at)[l] = (uint32_t)c->value;
        return;
    default:
        for (unsigned l = 0; l < EXEC_LANES; l++)
            ((uint64_t *)at)[l] = c->value;
        if (c->bits == 128)
            memset(at + EXEC_LANES * 8, c->value >> 63 ? 0xff : 0, EXEC_LANES * 8);
    }
}

static struct exec_frame *make(struct exec_block *b, const struct exec_func *f)
{
    size_t head = (sizeof(struct exec_frame) + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    size_t size = head + ALIGN + f->regs_size;
    if (size > MOST_MEMORY - b->frame_memory)
        return NULL;
    char *memory = mem_alloc(size);
    if (!memory)
        return NULL;
    b->frame_memory += (uint32_t)size;
    struct exec_frame *frame = (void *)memory;
    uintptr_t regs = ((uintptr_t)memory + head + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    *frame = (struct exec_frame){.func = f, .regs = (char *)regs};
    memset(frame->regs, 0, f->regs_size);
    for (uint32_t k = 0; k < f->nconsts; k++)
        fill(frame->regs, &f->consts[k]);
    return frame;
}

struct exec_frame *frame_new(struct exec_block *b, const struct exec_func *f)
{
    struct exec_frame **free = &b->free_frames[f->id];
    struct exec_frame *frame = *free;
    if (frame) {
        *free = frame->next_free;
    } else {
        frame = make(b, f);
        if (!frame)
            return NULL;
        frame->next_in_block = b->frames;
        b->frames = frame;
    }
    frame->references = 1;
    return frame;
}

void frame_free_all(struct exec_block *b)
{
    for (struct exec_frame *f = b->frames, *next; f; f = next) {
        next = f->next_in_block;
        mem_free(f);
    }
    b->frames = NULL;
    b->frame_memory = 0;
}

void frame_release(struct exec_block *b, struct exec_frame *frame)
{
    while (frame && --frame->references == 0) {
        struct exec_frame *caller = frame->caller;
        struct exec_frame **free = &b->free_frames[frame->func->id];
        frame->next_free = *free;
        *free = frame;
        frame = caller;
    }
}
