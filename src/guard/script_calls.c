// SPDX-License-Identifier: MIT
#include "guard/script_calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "track/script_frames.h"
#include "track/tensor_label.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void moat_frames(const char *text)
{
    script_frames_set(text);
}

EXPORTED void moat_tensor(uint64_t address, uint32_t element, uint32_t dimensions, const int64_t *shape,
                          const int64_t *strides, const char *name, const char *type)
{
    struct tensor_label l = {.address = address, .element = element, .dimensions = dimensions};
    if (dimensions > TENSOR_LABEL_DIMENSIONS || !name || !type)
        return;
    for (uint32_t i = 0; i < dimensions; i++) {
        l.shape[i] = shape[i];
        l.strides[i] = strides[i];
    }
    snprintf(l.name, sizeof l.name, "%s", name);
    snprintf(l.type, sizeof l.type, "%s", type);
    tensor_label_set(&l);
}

// Set while the interpreter has one thread. Release and acquire: the struct is complete.
static struct script_interpreter interpreter;
static _Atomic bool asks;

EXPORTED void moat_frames_with(const struct script_interpreter *i)
{
    atomic_store_explicit(&asks, false, memory_order_release);
    if (!i)
        return;
    interpreter = *i;
    atomic_store_explicit(&asks, i->frames && i->is_locked && i->exception && i->thread,
                          memory_order_release);
}

bool script_calls_enter(bool may_wait)
{
    char text[4096] = "";
    uint64_t pc;
    if (!atomic_load_explicit(&asks, memory_order_acquire) || script_frames_get(&pc, 1) ||
        !interpreter.thread())
        return false;
    if (interpreter.is_locked() ? interpreter.exception() != NULL : !may_wait)
        return false;
    interpreter.frames(text, sizeof text);
    text[sizeof text - 1] = 0;
    script_frames_set(text);
    return script_frames_get(&pc, 1);
}

void script_calls_leave(bool entered)
{
    if (entered)
        script_frames_set(NULL);
}
