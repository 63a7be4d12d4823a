// SPDX-License-Identifier: MIT
#include "report/fold.h"

#include <assert.h>
#include <string.h>

// FNV-1a; finish() spreads the result, because the table uses the low bits.
static uint64_t mix(uint64_t h, const void *data, size_t n)
{
    for (const unsigned char *p = data; n--; p++)
        h = (h ^ *p) * 0x100000001b3u;
    return h;
}

static uint64_t mix_u64(uint64_t h, uint64_t v)
{
    return mix(h, &v, sizeof v);
}

static uint64_t mix_text(uint64_t h, const char *text)
{
    return text ? mix(h, text, strlen(text) + 1) : mix_u64(h, 0);
}

static uint64_t mix_stack(uint64_t h, const struct report_stack *s)
{
    h = mix_u64(h, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct report_frame *f = &s->frames[i];
        h = mix_text(h, f->object);
        h = mix_u64(h, f->object ? f->offset : f->pc);
    }
    return h;
}

// Never returns 0.
static uint64_t finish(uint64_t h)
{
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    return h ? h : 1;
}

// Hashes what both kinds of keys have in common; they differ in file and line.
static uint64_t begin(const struct report *r, const char *file, uint64_t line)
{
    uint64_t h = 0xcbf29ce484222325u;
    h = mix_u64(h, (uint64_t)r->type << 8 | (uint64_t)r->access);
    h = mix_text(h, r->call);
    h = mix_text(h, r->place.kernel);
    h = mix_text(h, r->place.function);
    h = mix_text(h, file);
    return mix_u64(h, line);
}

uint64_t fold_key(const struct report *r)
{
    uint64_t h = begin(r, r->place.file, (uint64_t)r->place.line << 32 | r->place.ptx_line);
    h = mix_u64(h, r->client);
    h = mix_stack(h, &r->stack);
    if (r->nbuffers) {
        h = mix_stack(h, &r->buffers[0].made_at);
        h = mix_stack(h, &r->buffers[0].freed_at);
    }
    return finish(h);
}

static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

const struct report_stack *fold_stack(const struct report *r)
{
    bool alone = !r->stack.count && !r->call && !report_device_name(&r->place) && !r->place.frames.count;
    return r->nbuffers && (r->type == REPORT_LEAK || alone) ? &r->buffers[0].made_at : &r->stack;
}

// The folder of a file differs between machines, so only its name counts.
uint64_t fold_name_key(const struct report *r, bool lines)
{
    uint64_t h = begin(r, last_part(r->place.file), lines ? r->place.line : 0);
    const struct report_stack *s = fold_stack(r);
    for (uint32_t i = 0; i < s->count; i++)
        h = mix_text(h, s->frames[i].function ? s->frames[i].function : last_part(s->frames[i].object));
    return finish(h);
}

void fold_init(struct fold *f, struct fold_slot *slots, uint32_t count)
{
    assert(count && !(count & (count - 1)));
    *f = (struct fold){slots, count - 1, 0};
}

struct fold_slot *fold_find(struct fold *f, uint64_t key)
{
    uint32_t at = (uint32_t)key & f->mask;
    for (uint32_t i = 0; i <= f->mask; i++, at = (at + 1) & f->mask) {
        struct fold_slot *s = &f->slots[at];
        if (s->key == key)
            return s;
        if (!s->key) {
            s->key = key;
            f->used++;
            return s;
        }
    }
    return NULL;
}
