// SPDX-License-Identifier: MIT
#include "fence/fence_objects.h"

#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "context/context.h"
#include "kfence/kfence_word.h"

// taken: places that are not 0. taken <= MOST < KFENCE_OBJECTS, so that every search ends.
struct table {
    uint32_t taken;
    struct kfence_object at[KFENCE_OBJECTS];
};
enum { MOST = KFENCE_OBJECTS / 4 * 3 };

static struct table *tables[CONTEXT_CONTEXTS];
static VEC(struct fence_map) maps;

// Finds the word, or the first place where it could be put.
static unsigned find(const struct table *t, uint64_t word, bool *found)
{
    unsigned place = (unsigned)(kfence_hash(word) % KFENCE_OBJECTS), gone = KFENCE_OBJECTS;
    for (; t->at[place].word && t->at[place].word != word; place = (place + 1) % KFENCE_OBJECTS)
        if (t->at[place].word == KFENCE_GONE && gone == KFENCE_OBJECTS)
            gone = place;
    *found = t->at[place].word == word;
    return *found || gone == KFENCE_OBJECTS ? place : gone;
}

static bool add(struct table *t, uint64_t word, uint64_t bytes, unsigned *place)
{
    bool found;
    *place = find(t, word, &found);
    struct kfence_object *o = &t->at[*place];
    if (found || (!o->word && t->taken == MOST))
        return found && o->bytes != bytes && (o->bytes = bytes, true);
    t->taken += !o->word;
    *o = (struct kfence_object){word, bytes};
    return true;
}

static struct table *table_of(unsigned context)
{
    unsigned place;
    if (tables[context])
        return tables[context];
    tables[context] = mem_zalloc(1, sizeof *tables[context]);
    for (size_t i = 0; tables[context] && i < maps.len; i++)
        add(tables[context], maps.items[i].word, maps.items[i].box, &place);
    return tables[context];
}

bool fence_objects_add(unsigned context, uint64_t word, uint64_t bytes, unsigned *place)
{
    struct table *t = table_of(context);
    return t && add(t, word, bytes, place);
}

bool fence_objects_remove(unsigned context, uint64_t word, unsigned *place)
{
    bool found = false;
    if (tables[context])
        *place = find(tables[context], word, &found);
    if (found)
        tables[context]->at[*place] = (struct kfence_object){KFENCE_GONE, 0};
    return found;
}

bool fence_objects_has(unsigned context, uint64_t word)
{
    bool found = false;
    if (tables[context])
        find(tables[context], word, &found);
    return found;
}

void fence_objects_forget(unsigned context)
{
    mem_free(tables[context]);
    tables[context] = NULL;
}

const struct kfence_object *fence_objects_table(unsigned context)
{
    struct table *t = tables[context] || maps.len ? table_of(context) : NULL;
    return t ? t->at : NULL;
}

// --- tensor maps -------------------------------------------------------------------------------------------

bool fence_objects_keep_map(const struct fence_map *map)
{
    for (size_t i = 0; i < maps.len; i++)
        if (maps.items[i].word == map->word) {
            maps.items[i] = *map;
            return true;
        }
    return !vec_push(&maps, *map);
}

bool fence_objects_drop_map(uint64_t range, struct fence_map *map)
{
    for (size_t i = 0; i < maps.len; i++)
        if (maps.items[i].range == range) {
            *map = maps.items[i];
            maps.items[i] = maps.items[--maps.len];
            return true;
        }
    return false;
}

#define SAME_TYPE(name) _Static_assert((int)KFENCE_##name == (int)CU_TENSOR_MAP_DATA_TYPE_##name, "by number")
SAME_TYPE(UINT8);
SAME_TYPE(UINT32);
SAME_TYPE(INT32);
SAME_TYPE(INT64);
SAME_TYPE(FLOAT16);
SAME_TYPE(BFLOAT16);
#undef SAME_TYPE

// Bytes of 16 elements in global and in shared memory.
static const struct {
    uint8_t global, shared;
} sixteen[] = {
    [CU_TENSOR_MAP_DATA_TYPE_UINT8] = {16, 16},        [CU_TENSOR_MAP_DATA_TYPE_UINT16] = {32, 32},
    [CU_TENSOR_MAP_DATA_TYPE_UINT32] = {64, 64},       [CU_TENSOR_MAP_DATA_TYPE_INT32] = {64, 64},
    [CU_TENSOR_MAP_DATA_TYPE_UINT64] = {128, 128},     [CU_TENSOR_MAP_DATA_TYPE_INT64] = {128, 128},
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = {32, 32},      [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = {64, 64},
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = {128, 128},    [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = {32, 32},
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = {64, 64},  [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = {64, 64},
    [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = {64, 64}, [CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B] = {8, 8},
    [CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B] = {8, 16}, [CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B] = {12, 16},
};

static uint64_t length_of(const struct fence_tensor *t, uint32_t dim)
{
    uint64_t step = t->steps && t->steps[dim] ? t->steps[dim] : 1;
    return (t->box[dim] + step - 1) / step;
}

// Returns the KFENCE_MAP_GAPS of a box.
static uint64_t gaps_of(const struct fence_tensor *t, uint64_t box)
{
    uint64_t row = length_of(t, 0) * sixteen[t->type].shared / 16;
    if (!row || row >= t->span)
        return 0;
    uint64_t units = box / row * (t->span - row) / 16;
    return KFENCE_MAP_GAPS(units < KFENCE_GAPS_MOST ? units : KFENCE_GAPS_MOST);
}

bool fence_objects_tensor(const struct fence_tensor *t, struct fence_map *map)
{
    if ((unsigned)t->type >= sizeof sixteen / sizeof *sixteen || !t->rank || t->rank > 5 || !t->dims)
        return false;
    uint64_t last = 0, box = 1, more;
    bool wraps = __builtin_mul_overflow(t->dims[0], (uint64_t)sixteen[t->type].global, &last);
    last = last / 16 + 1;
    for (uint32_t i = 1; i < t->rank; i++) {
        wraps |= !t->dims[i] || __builtin_mul_overflow(t->dims[i] - 1, t->strides[i - 1], &more);
        wraps |= wraps || __builtin_add_overflow(last, more, &last);
    }
    for (uint32_t i = 0; i < t->rank; i++)
        wraps |= __builtin_mul_overflow(box, length_of(t, i), &box);
    wraps |= __builtin_mul_overflow(box, (uint64_t)sixteen[t->type].shared, &box);
    map->base = t->address;
    map->bytes = last - 1;
    box /= 16;
    if (wraps || box >= UINT32_MAX)
        return false;
    map->box = KFENCE_MAP_OF(box, t->shape, t->type) + gaps_of(t, box);
    return true;
}
