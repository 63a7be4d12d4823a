// SPDX-License-Identifier: MIT
// Events that the tests of several renderers share.
#ifndef MOAT_REPORT_REPORT_TESTING_H
#define MOAT_REPORT_REPORT_TESTING_H

#include "report/report.h"

static const struct report_frame testing_made[] = {
    {.pc = 0x5500001234,
     .object = "/opt/app/scale",
     .offset = 0x1234,
     .function = "_Z4makei",
     .file = "/src/scale.cu",
     .line = 19,
     .inlined = true},
    {.pc = 0x5500001234,
     .object = "/opt/app/scale",
     .offset = 0x1234,
     .function = "main",
     .file = "/src/scale.cu",
     .line = 40},
};
static const struct report_frame testing_freed[] = {
    {.pc = 0x7f0000000042, .object = "/opt/app/libpool.so", .offset = 0x42, .function = "pool_release"},
};
static const struct report_frame testing_launched[] = {
    {.pc = 0x7f0000001111, .object = "/opt/app/libcudart.so.12", .offset = 0x1111},
    {.pc = 0x5500001300,
     .object = "/opt/app/scale",
     .offset = 0x1300,
     .function = "main",
     .file = "/src/scale.cu",
     .line = 44},
    {.pc = 0x10},
};

static const struct report_frame testing_inside[] = {
    {.function = "_Z3putPfi", .file = "/src/put.h", .line = 7, .inlined = true},
    {.function = "_Z5scalePfi", .file = "/src/scale.cu", .line = 12},
};

#define TESTING_STACK(frames)                     \
    {                                             \
        sizeof(frames) / sizeof *(frames), frames \
    }

static const struct report_buffer testing_buffers[] = {
    {.base = 0x7f2a00000000,
     .size = 1024,
     .made_by = "cuMemAlloc_v2",
     .made_at = TESTING_STACK(testing_made)},
    {.base = 0x7f2a00000600,
     .size = 512,
     .name = "weights",
     .made_by = "cuMemAllocAsync",
     .freed_by = "cuMemFreeAsync",
     .thread = "T2",
     .freed_at = TESTING_STACK(testing_freed)},
};
static const char *const testing_notes[] = {"the mode cannot name the thread's warp"};
static const uint8_t testing_bytes[20] = {0, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef, [19] = 0x7f};
static const uint8_t testing_touched[3] = {0xf0, 0, 0x08};

// A kernel writes beyond the end of a buffer.
static inline struct report_line testing_overflow(void)
{
    return (struct report_line){.event = REPORT_ERROR,
                                .error = {.type = REPORT_HEAP_OVERFLOW,
                                          .pid = 4711,
                                          .device = 0,
                                          .has_address = true,
                                          .address = 0x7f2a00000400,
                                          .access = REPORT_WRITE,
                                          .bytes = 4,
                                          .call = "cuLaunchKernel",
                                          .place = {.kernel = "_Z5scalePfi",
                                                    .file = "/src/scale.cu",
                                                    .line = 7,
                                                    .thread_known = true,
                                                    .block = {1, 0, 0}},
                                          .stack = TESTING_STACK(testing_launched),
                                          .nbuffers = 1,
                                          .buffers = testing_buffers,
                                          .id = 1,
                                          .count = 1}};
}

// A report with every field set.
static inline struct report_line testing_full(void)
{
    struct report_line line = testing_overflow();
    struct report *r = &line.error;
    r->place.function = "_Z5clampPf";
    r->place.module = "/opt/app/scale.ptx";
    r->place.instruction = "st.global.f32 [%rd4], %f1;";
    r->place.ptx_line = 33;
    r->place.frames = (struct report_stack)TESTING_STACK(testing_inside);
    r->nbuffers = 2;
    r->corrupted = (struct report_bytes){0x7f2a00000400, 20, testing_bytes, testing_touched};
    r->notes = testing_notes;
    r->nnotes = 1;
    r->count = 17;
    r->client = 3;
    return line;
}

// A transfer reads beyond the end of a buffer.
static inline struct report_line testing_transfer(void)
{
    struct report_line line = testing_overflow();
    struct report *r = &line.error;
    r->access = REPORT_READ;
    r->bytes = 2048;
    r->call = "cuMemcpyDtoH_v2";
    r->place = (struct report_place){0};
    return line;
}

static inline struct report_line testing_leak(void)
{
    return (struct report_line){.event = REPORT_ERROR,
                                .error = {.type = REPORT_LEAK,
                                          .pid = 4711,
                                          .device = 1,
                                          .has_address = true,
                                          .address = 0x7f2a00000000,
                                          .nbuffers = 1,
                                          .buffers = testing_buffers,
                                          .id = 2,
                                          .count = 1}};
}

static const char *const testing_missing[] = {"the cache cannot be written: no space left on device"};
static const struct report_value testing_watched[] = {
    {"allocations", "allocations", 12},
    {"bytes_copied", "bytes copied", 1073741824},
    {"kernels_launched", "kernels launched", 1500},
};
static const struct report_value testing_uncovered[] = {
    {"kernels_sass", "kernels with machine code only", 3}};

static inline struct report_line testing_start(void)
{
    return (struct report_line){.event = REPORT_START,
                                .start = {.pid = 4711,
                                          .parent = 4700,
                                          .program = "./scale",
                                          .mode = "pages",
                                          .device = "CPU device",
                                          .version = "0.1.0",
                                          .nnotes = 1,
                                          .notes = testing_missing}};
}

static inline struct report_line testing_end(void)
{
    return (struct report_line){.event = REPORT_END,
                                .end = {.pid = 4711,
                                        .errors = 0,
                                        .suppressed = 2,
                                        .nvalues = 3,
                                        .values = testing_watched,
                                        .nuncovered = 1,
                                        .uncovered = testing_uncovered}};
}

static inline struct report_line testing_repeat(void)
{
    return (struct report_line){.event = REPORT_REPEAT, .repeat = {.pid = 4711, .id = 1, .count = 1234}};
}

static inline struct report_line testing_note(void)
{
    return (struct report_line){.event = REPORT_NOTE, .note = {.pid = 4711, .text = "a tab\tand \"quotes\""}};
}

static const struct report_space testing_spaces[] = {{"global", 3000, 1000, 12000, 4000},
                                                     {"shared", 20, 10, 160, 80}};
static const struct report_kernel testing_kernels[] = {
    {"_Z5scalePfi", false, false, false, 2, 1024, 3020, 1010, 12160, 4080, 2, testing_spaces},
    {"helper", true, false, true, 0, 64, 0, 64, 0, 256, 0, NULL},
    {"closed", false, true, false, 7, 0, 0, 0, 0, 0, 0, NULL},
};

static inline struct report_line testing_counts(void)
{
    return (struct report_line){.event = REPORT_COUNTS,
                                .counts = {.pid = 4711, .nkernels = 3, .kernels = testing_kernels}};
}

static const struct report_access_place testing_places[] = {
    {"scale.cu", 7, 40, "outside", REPORT_WRITE, 4, 1, 1, "p0", "needs 4,004 bytes, the buffer has 4,000",
     NULL},
    {"gather.cu", 13, 0, "not bounded", REPORT_READ, 4, 3, 100, NULL, "the index is loaded from memory",
     "compare the index with the size before it is used"},
};
static const struct report_explained testing_explained[] = {
    {"_Z5scalePfi", false, 1000, 9, 2, 1, 1, 1, 3, 1, 210, 1200, 2, testing_places, 5},
    {"closed", true, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0},
};

static inline struct report_line testing_proofs(void)
{
    return (struct report_line){.event = REPORT_PROOFS,
                                .proofs = {.pid = 4711, .nkernels = 2, .kernels = testing_explained}};
}

static const struct report_unchecked_kernel testing_unchecked_kernels[] = {{"_Z5scalePfi", 1000},
                                                                           {"closed", 7}};

static inline struct report_line testing_unchecked(void)
{
    return (struct report_line){
        .event = REPORT_UNCHECKED,
        .unchecked = {.pid = 4711, .all = 15, .nkernels = 2, .kernels = testing_unchecked_kernels}};
}

// All events, and their number.
enum { TESTING_EVENTS = 11 };
static inline struct report_line testing_event(int i)
{
    switch (i) {
    case 0: return testing_start();
    case 1: return testing_overflow();
    case 2: return testing_full();
    case 3: return testing_transfer();
    case 4: return testing_leak();
    case 5: return testing_repeat();
    case 6: return testing_note();
    case 7: return testing_counts();
    case 8: return testing_proofs();
    case 9: return testing_unchecked();
    default: return testing_end();
    }
}

// A stand-in for a demangler.
static inline const char *testing_demangle(void *context, const char *name)
{
    return name[0] == '_' && name[1] == 'Z' && name[3] == 's' ? "scale(float*, int)" : name;
}

#endif
