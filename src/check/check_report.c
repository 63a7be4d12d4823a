// SPDX-License-Identifier: MIT
#include "check/check_report.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/host_memory.h"
#include "base/mem.h"
#include "check/check_explain.h"
#include "check/check_host.h"
#include "check/check_launch.h"
#include "check/check_stray.h"
#include "check/check_tensor.h"
#include "context/context_copy.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "core/own_thread.h"
#include "kcheck/kcheck.h"
#include "kwatch/kheap_host.h"
#include "kwatch/kheap_watch.h"
#include "launch/kernel_fault.h"
#include "launch/launch_ring.h"
#include "mode/mode.h"
#include "report/report.h"
#include "rewrite/site_place.h"
#include "track/guard_report.h"
#include "track/script_frames.h"
#include "track/track.h"

enum {
    NEAR = 4096,        // bytes from a buffer within which a stray access is shown with it
    REDZONE = 1 << 30,  // the same for an access of a redzone
    PAUSE = 50000000,   // nanoseconds between two looks at the rings
    STRAYS = 64,
    ZEROED = 64,
    ADDRESS_BITS = 57,  // of addresses, at most
};
static const int64_t patience = 10000000000;  // nanoseconds

// What was reported for the counters of a context. All of this file works under the lock of check_host.c.
struct counted {
    uint64_t keys[KCHECK_COUNTERS];    // of reports; 0: none
    uint64_t counts[KCHECK_COUNTERS];  // that were added
    uint8_t strays[KCHECK_COUNTERS];   // without a key: enum check_stray
};
static struct counted *counted[CONTEXT_CONTEXTS];
static bool ended;  // an error has ended its kernel: --on-error=trap
// The last accesses of memory that is nobody's, as far as moat knows: one of them may be what ends a kernel.
static struct stray {
    struct error_ring_record record;
    struct context *context;
} kept[STRAYS];
static _Atomic uint64_t nkept;  // since all launches had ended; relaxed, written under the lock
static bool asked;              // the stray that is being reported is nobody's for certain
static bool fault_known;        // the device has described the fault that is being reported

void check_report_after_fork(void)
{
    memset(counted, 0, sizeof counted);
    ended = false;
    nkept = 0;
}

// --- the place ---------------------------------------------------------------------------------------------

// Returns the address operand of an instruction as the text has it, "[%rd4+8]"; nothing for a copy, which has
// two.
static struct str operand(struct str text)
{
    const char *open = text.len ? memchr(text.ptr, '[', text.len) : NULL;
    const char *close = open ? memchr(open, ']', text.len - (size_t)(open - text.ptr)) : NULL;
    bool is_copy = close && memchr(close, '[', text.len - (size_t)(close - text.ptr));
    return close && !is_copy ? (struct str){open, (size_t)(close - open)} : (struct str){0};
}

// Returns the innermost line of a site that is the program's own; if none is, that of the header.
static const struct pass_check_frame *own_line(const struct pass_check_site *s)
{
    char file[1024];
    for (uint32_t i = 0; i < s->nframes; i++) {
        struct str name = s->frames[i].file;
        snprintf(file, sizeof file, "%.*s", (int)(name.len < sizeof file ? name.len : 0), name.ptr);
        if (*file && !report_is_toolkit_header(file))
            return &s->frames[i];
    }
    return s->nframes ? s->frames : NULL;
}

// Returns whether the line of source that reads at a site also writes to the same address, as x[i] *= 2 does;
// without lines, whether the function does. Such accesses are one report, by the first of them.
static bool writes_too(const struct pass_check *c, const struct pass_check_site *s)
{
    struct str here = operand(s->text);
    const struct pass_check_frame *line = own_line(s);
    for (uint32_t i = 0; here.len && !(s->flags & KCHECK_WRITES) && i < c->nsites; i++) {
        const struct pass_check_site *w = &c->sites[i];
        if (!(w->flags & KCHECK_WRITES) || !str_eq(w->function, s->function) ||
            !str_eq(operand(w->text), here))
            continue;
        const struct pass_check_frame *there = own_line(w);
        if (!line && !there)
            return true;
        if (line && there && there->line == line->line && str_eq(there->file, line->file))
            return true;
    }
    return false;
}

// --- the buffer --------------------------------------------------------------------------------------------

static bool is_in_heap(const struct context *ctx, uint64_t address)
{
    uint64_t bytes, heap = kheap_host_found(ctx, &bytes);
    return heap && address - heap < bytes;
}

// Adds the block that the judgement rests on.
static void add_block(struct guard_finding *f, const struct context *ctx, uint64_t base, uint64_t size)
{
    bool was_freed = size & KCHECK_FREED;
    size &= KCHECK_SIZE;
    if (!base)
        return;
    if (is_in_heap(ctx, base)) {
        f->buffers[f->nbuffers++] = (struct track_copy){.base = base,
                                                        .size = size,
                                                        .facts = {.family = TRACK_PLAIN,
                                                                  .made_by = TRACK_MADE_BY_KERNEL,
                                                                  .device = (int16_t)ctx->device,
                                                                  .bytes = size},
                                                        .freed = was_freed,
                                                        .freed_by = TRACK_MADE_BY_KERNEL};
        return;
    }
    unsigned section = epoch_enter();
    const struct track_block *b = track_announced(base);
    if (!b || b->range.base != base || b->range.size != size)
        b = track_live(base);
    if (!b || b->range.base != base || b->range.size != size)
        b = track_freed(base);
    bool same = b && b->range.base == base && b->range.size == size;
    // A buffer that was live at the access may have been freed before its record is read.
    if (same)
        f->buffers[f->nbuffers++] = track_copy(b, was_freed && b == track_freed(base));
    epoch_leave(section);
    if (!same)
        f->note = was_freed ? "the buffer was freed so long ago that it is no longer known by whom"
                            : "the buffer has been freed since";
}

// Adds the buffer that a stray access is nearest to, if it is less than `before` bytes behind it or at most
// `behind` bytes before it.
static void add_nearest(struct guard_finding *f, uint64_t before, uint64_t behind, const char *note)
{
    unsigned section = epoch_enter();
    const struct track_block *b = track_before(f->address, before);
    const struct track_block *next = track_after(f->address, f->address + behind + 1);
    if (next && (!b || next->range.base - f->address < f->address - track_end(b)))
        b = next;
    if (b && !f->nbuffers) {
        f->buffers[f->nbuffers++] = track_copy(b, false);
        f->note = note;
    }
    epoch_leave(section);
}

// Adds the buffer that an access starts in.
static void add_start(struct guard_finding *f)
{
    unsigned section = epoch_enter();
    const struct track_block *b = track_live(f->address);
    if (b)
        f->buffers[f->nbuffers++] = track_copy(b, false);
    epoch_leave(section);
}

// Takes the first buffer behind an access in place of the one in the finding if it is nearer and was freed
// since the launch: records are read after the program has freed what the kernel used.
static void prefer_freed_since(struct guard_finding *f, uint64_t launch)
{
    const struct track_copy *b = &f->buffers[0];
    uint64_t far = REDZONE;
    if (f->nbuffers)
        far = b->base > f->address ? b->base - f->address : f->address - (b->base + b->size);
    struct track_copy since;
    if (!track_freed_after(f->address, f->address + far, check_launch_frees(launch), &since))
        return;
    since.freed = false;
    f->buffers[0] = since;
    f->nbuffers = 1;
}

// Adds the buffer whose redzone an access is in: the one that it starts in, or the nearest one that is live,
// unless the one that the record names, and that may have been freed before or since, is nearer, or one that
// was freed since the launch.
static void add_redzone(struct guard_finding *f, const struct context *ctx, uint64_t base, uint64_t size,
                        uint64_t launch)
{
    if (check_host_shadow && check_host_shadow->near(f->address, &f->buffers[0]))
        f->nbuffers = 1;
    else
        add_start(f);
    if (f->nbuffers)
        return;
    struct guard_finding there = {.address = f->address};
    unsigned section = epoch_enter();
    const struct track_block *b = base ? NULL : track_freed(f->address - 1);
    if (b)  // it ends there, and was freed since
        base = b->range.base, size = b->range.size;
    epoch_leave(section);
    add_block(&there, ctx, base, size);
    uint64_t end = base + (size & KCHECK_SIZE), far = f->address - end;
    bool named = there.nbuffers && f->address >= end;
    add_nearest(f, named && far < REDZONE ? far + 1 : REDZONE, named && far < REDZONE ? far : REDZONE, NULL);
    if (!f->nbuffers && named)
        f->buffers[f->nbuffers++] = there.buffers[0];
    prefer_freed_since(f, launch);
}

// Says which memory of the host the pointer of an access points to, if it does.
static void add_host_memory(struct guard_finding *f, const struct error_ring_record *r)
{
    static char note[500];  // under the lock
    char name[400];
    uint64_t pointer = r->payload[0] >> 48 & KCHECK_ROOT ? r->payload[1] : r->address;
    if (!host_memory_name(pointer, name, sizeof name))
        return;
    snprintf(note, sizeof note, "the pointer 0x%llx is host memory: %s", (unsigned long long)pointer, name);
    f->note = note;
}

// Describes an access that has ended its kernel.
static void add_fatal(struct guard_finding *f, const struct error_ring_record *r)
{
    f->more[5] = fault_known
                     ? "it has ended the kernel"
                     : "a kernel was ended by an access, and the device does not say which: this is the "
                       "last one of memory that moat does not know";
    add_host_memory(f, r);
}

static const char *const space_names[PASS_CHECK_SPACES] = {[PASS_CHECK_IN_GLOBAL] = "global ",
                                                           [PASS_CHECK_IN_SHARED] = "shared ",
                                                           [PASS_CHECK_IN_LOCAL] = "local ",
                                                           [PASS_CHECK_IN_CONST] = "constant ",
                                                           [PASS_CHECK_IN_PARAM] = "parameter "};

// Writes what the program calls the variable of an access.
static void name_variable(const struct pass_check_site *s, char *name, size_t size)
{
    // The compiler's own name of a function's stack frame.
    bool frame = str_starts(s->variable, STR("__local_depot"));
    const char *kind = s->space == PASS_CHECK_IN_PARAM ? "" : "variable ";
    if (!s->size && s->space != PASS_CHECK_IN_GLOBAL)
        snprintf(name, size, "the dynamic shared memory");
    else if (frame)
        snprintf(name, size, "the function's local variables");
    else
        snprintf(name, size, "the %s%s%.*s", space_names[s->space], kind,
                 (int)(s->variable.len < 400 ? s->variable.len : 400), s->variable.ptr);
}

// Describes the variable that an access has left. size: of dynamic shared memory.
static void add_variable(struct guard_finding *f, const struct pass_check_site *s, uint64_t root,
                         uint64_t size)
{
    static char note[600];  // under the lock
    char name[440];
    if (s->variable.len && s->size)
        size = s->size;
    name_variable(s, name, sizeof name);
    bool before = f->address < root;
    uint64_t end = root + size, far = before ? root - f->address : f->address < end ? 0 : f->address - end;
    if (!s->variable.len && memmem(s->text.ptr, s->text.len, "wgmma", 5))
        snprintf(note, sizeof note,
                 "the matrix that its descriptor stands for reaches behind the shared memory of the block");
    else if (!s->variable.len)
        snprintf(note, sizeof note, "it is outside the %svariable that its pointer was made from",
                 space_names[s->space]);
    else if (!before && f->address < end)
        snprintf(note, sizeof note, "it starts in %s of %llu bytes, %llu bytes before its end", name,
                 (unsigned long long)size, (unsigned long long)(end - f->address));
    else
        snprintf(note, sizeof note, "it is located %llu bytes %s %s of %llu bytes", (unsigned long long)far,
                 before ? "before" : "after", name, (unsigned long long)size);
    f->note = note;
}

// Returns whether an address is garbage: no processor has memory there.
static bool is_no_address(uint64_t address)
{
    return address >> ADDRESS_BITS;
}

// site: NULL if unknown.
static enum report_type type_of(const struct error_ring_record *r, const struct guard_finding *f,
                                const struct pass_check_site *site)
{
    uint64_t base = r->payload[2];
    bool variable = f->nbuffers && f->buffers[0].facts.family == TRACK_VARIABLE;
    switch (r->kind) {
    case KCHECK_LEFT:
        return variable            ? REPORT_GLOBAL_OVERFLOW
               : r->address < base ? REPORT_HEAP_UNDERFLOW
                                   : REPORT_HEAP_OVERFLOW;
    case KCHECK_USE_FREED: return REPORT_USE_AFTER_FREE;
    case KCHECK_NULL: return REPORT_NULL_DEREFERENCE;
    case KCHECK_MISALIGNED: return is_no_address(r->address) ? REPORT_WILD_ACCESS : REPORT_MISALIGNED;
    case KCHECK_DOUBLE_FREE: return REPORT_DOUBLE_FREE;
    case KCHECK_BAD_FREE: return REPORT_BAD_FREE;
    case KCHECK_OUTSIDE_VARIABLE:
        return site && site->space == PASS_CHECK_IN_SHARED  ? REPORT_SHARED_OVERFLOW
               : site && site->space == PASS_CHECK_IN_LOCAL ? REPORT_LOCAL_OVERFLOW
                                                            : REPORT_GLOBAL_OVERFLOW;
    default:
        return !f->nbuffers ? REPORT_WILD_ACCESS
               : f->buffers[0].freed && f->address - f->buffers[0].base < f->buffers[0].size
                   ? REPORT_USE_AFTER_FREE
               : f->address < f->buffers[0].base ? REPORT_HEAP_UNDERFLOW
                                                 : REPORT_HEAP_OVERFLOW;
    }
}

// Describes who called a function in which an access is wrong, or launched the kernel, as far as it is known.
static const char *callers(const char *introduction)
{
    enum { KERNELS = 8 };
    static char note[2000];  // under the lock
    const char *names[KERNELS];
    unsigned n = launch_ring_recent(names, KERNELS);
    launch_ring_print(note, sizeof note, 0, introduction, names, n);
    return n ? note : NULL;
}

// Writes a number with commas.
static void write_number(uint64_t n, char text[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), to = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            text[to++] = ',';
        text[to++] = digits[i];
    }
    text[to] = 0;
}

// Returns what was known of an access before its launch; NULL: nothing.
static const char *known_before(uint64_t launch, uint32_t number, const struct pass_check_site *site)
{
    static char note[200];  // under the lock
    struct check_certain c;
    char needs[32], has[32], before[32];
    if (!check_launch_was_certain(launch, number, &c))
        return NULL;
    const char *what = site && site->space != PASS_CHECK_IN_GLOBAL ? "variable" : "buffer";
    write_number(c.at[0].needs, needs);
    write_number(c.at[0].size, has);
    write_number(c.at[0].before, before);
    if (c.at[0].needs && c.at[0].before)
        snprintf(
            note, sizeof note,
            "the launch decides it: this access starts %s bytes before the %s and needs %s bytes, the %s "
            "has %s",
            before, what, needs, what, has);
    else if (c.at[0].needs)
        snprintf(note, sizeof note, "the launch decides it: this access needs %s bytes, the %s has %s", needs,
                 what, has);
    else
        snprintf(note, sizeof note, "the launch decides it: this access starts %s byte%s before the %s",
                 before, c.at[0].before == 1 ? "" : "s", what);
    return note;
}

// --- records -----------------------------------------------------------------------------------------------

// Returns the kernel of a launch, or, if its number is not known, the only one that can have been launched;
// NULL: there are several.
static const char *kernel_of(uint64_t launch)
{
    const char *names[2], *name = check_launch_kernel(launch);
    unsigned n = name ? 0 : launch_ring_recent(names, 2);
    return name ? name : launch_ring_is_certain(names, n) && launch_ring_has_all_since(0) ? names[0] : NULL;
}

static bool is_kernel(const struct pass_check *checks, const struct pass_check_site *s)
{
    for (uint32_t i = 0; i < checks->nkernels; i++)
        if (str_eq(checks->kernels[i].name, s->function))
            return true;
    return false;
}

// Adds where the address came from.
static void add_explanation(struct guard_finding *f, const struct error_ring_record *r,
                            const struct pass_check *checks, const struct pass_check_site *site)
{
    static struct check_explain e;  // under the lock
    bool variable = r->kind == KCHECK_OUTSIDE_VARIABLE;
    e = (struct check_explain){.launch = r->payload[4],
                               .address = r->address,
                               .root = variable ? r->payload[1] : 0,
                               .base = r->payload[variable ? 1 : 2],
                               .size = variable && site->size ? site->size : r->payload[3] & KCHECK_SIZE,
                               .block = r->block,
                               .thread = r->thread};
    if ((r->kind != KCHECK_LEFT && !variable) || !e.base || !e.size)
        return;
    check_explain(checks, (uint32_t)(site - checks->sites), &e);
    f->more[3] = *e.index ? e.index : NULL;
    f->more[4] = *e.guards ? e.guards : NULL;
}

// Returns whether the address lies in memory that a mode placed, where there is nothing but its buffers: in
// the surroundings of a buffer, or in the granule before one, since modes keep that distance.
static bool is_placed(uint64_t address)
{
    struct mode_answer answer;
    return mode_ask(address, &answer) != MODE_NOT_OURS ||
           mode_ask(address + KCHECK_GRANULE, &answer) != MODE_NOT_OURS;
}

// Describes an access of memory that nobody has: the table and the driver know none.
static void add_nobodys(struct guard_finding *f, const struct error_ring_record *r)
{
    f->more[5] = "neither moat nor the driver knows a buffer there, and the access was made";
    add_host_memory(f, r);
}

// Launches in which a wrong load, which gave 0, was as wide as a pointer.
static uint64_t zeroed[ZEROED];  // under the lock

// Returns a note on where the null pointer of an access may come from, NULL if that is not known.
static const char *null_origin(const struct error_ring_record *r, uint64_t bytes, bool is_read)
{
    uint64_t launch = r->payload[4];
    if (r->kind == KCHECK_NULL)
        return launch && zeroed[launch % ZEROED] == launch
                   ? "a wrong load of this launch, which was reported before, gave 0: the null pointer may "
                     "come from there"
                   : NULL;
    if (is_read && bytes >= sizeof(uint64_t) && r->kind != KCHECK_STRAY)
        zeroed[launch % ZEROED] = launch;
    return NULL;
}

// What a record does not say if the kernel has not run yet.
struct before {
    bool thread_known, nowhere;
};

// before: NULL if a kernel has written the record. Returns the key of the report.
static uint64_t report(const struct error_ring_record *r, const struct context *ctx,
                       const struct before *before)
{
    static struct driver_fault fault;  // under the lock; too large for the program's stacks
    uint64_t what = r->payload[0], flags = what >> 48;
    const struct pass_check *checks = check_host_sites(r->payload[5], r->site);
    uint32_t number = r->site & ((1u << KCHECK_SITE_BITS) - 1);
    const struct pass_check_site *site = checks ? &checks->sites[number] : NULL;
    // Kernels that kernels launch have no number of a launch.
    bool child = site && !r->payload[4] && is_kernel(checks, site);
    const char *kernel = child ? NULL : kernel_of(r->payload[4]);
    fault = (struct driver_fault){.address = r->address};
    if (site)
        site_place(&fault, site, kernel);
    else if (kernel)
        snprintf(fault.kernel, sizeof fault.kernel, "%s", kernel);
    memcpy(fault.block, r->block, sizeof fault.block);
    memcpy(fault.thread, r->thread, sizeof fault.thread);
    struct guard_finding f = {
        .in_kernel = true,
        .stackless = true,
        .device_known = true,
        .device = ctx->device,
        .address = r->address,
        .bytes = what >> 32 & 0xffff,
        .access = flags & KCHECK_FREES    ? REPORT_NO_ACCESS
                  : flags & KCHECK_WRITES ? REPORT_WRITE
                                          : REPORT_READ,
        .fault = &fault,
        .nowhere = before && before->nowhere,
        .thread_known = !before || before->thread_known,
        .foretold = before,
        .by_source = true,
        .in_function = !kernel && site && !is_kernel(checks, site),
    };
    if (!before && site && check_launch_was_proved(r->payload[4], number)) {
        guard_count(GUARD_CHECK_DISPROVED);
        guard_report_note("a bug of moat: the next access was proved right before its launch");
    }
    f.launched_at = check_launch_stack(r->payload[4], &f.call);
    f.in_kernel = !f.launched_at;
    bool placed = r->kind == KCHECK_OUTSIDE_VARIABLE && site && site->space != PASS_CHECK_IN_GLOBAL;
    if (placed)
        add_variable(&f, site, r->payload[1], r->payload[3]);
    else if (r->kind == KCHECK_REDZONE)
        add_redzone(&f, ctx, r->payload[2], r->payload[3], r->payload[4]);
    else
        add_block(&f, ctx, r->payload[2], r->payload[3]);
    if (r->kind == KCHECK_STRAY && is_placed(r->address))
        add_nearest(&f, NEAR, KCHECK_GRANULE,
                    "this is the nearest buffer: the pointer was in no buffer, or at the end of one");
    else if (r->kind == KCHECK_STRAY && asked)
        add_nobodys(&f, r);
    else if (r->kind == KCHECK_STRAY)
        add_fatal(&f, r);
    // One wording, whether the variable is among the buffers or the driver was never asked where it lies.
    if (r->kind == KCHECK_OUTSIDE_VARIABLE && site && !placed && site->variable.len) {
        f.nbuffers = 0;
        add_variable(&f, site, r->payload[1], site->size);
    }
    static char note[100];  // under the lock
    snprintf(note, sizeof note, "an access of %llu bytes needs an address that is a multiple of them",
             (unsigned long long)f.bytes);
    if (r->kind == KCHECK_MISALIGNED)
        f.note = note;
    if (is_no_address(r->address) && (r->kind == KCHECK_MISALIGNED || r->kind == KCHECK_STRAY))
        f.note = "no memory can be there: what the kernel took for a pointer is something else";
    if (r->kind == KCHECK_DOUBLE_FREE)
        f.note = "a kernel had freed it before";
    if (r->kind == KCHECK_BAD_FREE)
        f.note = "a kernel passed a pointer to free that malloc never returned";
    if (r->kind == KCHECK_IN_HEAP && !f.nbuffers)
        f.note = "it is in the heap of malloc in kernels, and in no buffer of it";
    f.type = type_of(r, &f, site);
    static char bytes[200];  // under the lock
    if (check_host_shadow && !placed && !is_in_heap(ctx, r->address)) {
        check_host_shadow->text(f.address, bytes, sizeof bytes);
        f.more[6] = bytes;
    }
    const char *origin = null_origin(r, f.bytes, f.access == REPORT_READ);
    f.note = f.note ? f.note : origin;
    f.more[0] = !site || !writes_too(checks, site) ? NULL
                : fault.source_line                ? "the same line also writes to this address"
                                                   : "the same kernel also writes to this address";
    f.more[1] = f.in_function ? callers("the kernel that called it is not known; launched last:")
                : child       ? callers("a kernel launched it; launched last by the program:")
                              : known_before(r->payload[4], number, site);
    if (site && site->width && f.thread_known)  // else a call of free, or a size that is known at the launch
        add_explanation(&f, r, checks, site);
    else if (site && memmem(site->text.ptr, site->text.len, "bulk.tensor", 11) && !placed)
        f.more[3] = check_tensor_note(r->payload[1]);
    static bool hinted;  // under the lock
    if (site && !fault.source_line && !hinted) {
        f.more[7] = script_frames_seen()
                        ? "lines of source are shown of kernels that were compiled with -lineinfo, in Numba "
                          "lineinfo=True"
                        : "lines of source are shown of kernels that were compiled with -lineinfo";
        hinted = true;
    }
    if (before) {
        f.more[2] = guard.options.on_error == OPTION_ON_ERROR_TRAP
                        ? "reported before the kernel runs; --on-error=trap ends it there"
                        : "reported before the kernel runs";
    } else if (guard.options.on_error == OPTION_ON_ERROR_TRAP && r->kind != KCHECK_STRAY) {
        f.more[2] = "the kernel was ended by --on-error=trap";
        ended = true;
    }
    return guard_report_keyed(&f);
}

void check_report_before(const struct error_ring_record *r, struct context *ctx, bool thread_known,
                         bool nowhere)
{
    report(r, ctx, &(struct before){thread_known, nowhere});
}

// Others of the counter are counted as strays, wherever they lie: 2 MiB of addresses share one.
static void take_stray(const struct error_ring_record *r, struct context *ctx, struct counted *c)
{
    uint64_t n = r->payload[6];
    enum check_stray is = check_stray_ask(r, ctx);
    kept[nkept % STRAYS] = (struct stray){*r, ctx};
    nkept++;
    if (c && n < KCHECK_COUNTERS)
        c->strays[n] = (uint8_t)is;
    if (is != CHECK_STRAY_NOBODYS)
        return;
    if (c && n < KCHECK_COUNTERS)
        c->counts[n] = 1;
    asked = true;
    report(r, ctx, NULL);
    asked = false;
    guard_count(GUARD_CHECK_ERRORS);
}

// Nanoseconds at which a kernel's last error was read; 0: a call of the program has ended since. Relaxed: a
// note depends on it, nothing else.
static _Atomic int64_t wrong_at;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

void check_report_moved(void)
{
    if (atomic_load_explicit(&wrong_at, memory_order_relaxed))
        atomic_store_explicit(&wrong_at, 0, memory_order_relaxed);
}

// Says what helps where a program may never end.
static void warn_of_waiting(void)
{
    int64_t since = atomic_load_explicit(&wrong_at, memory_order_relaxed);
    if (!since || now() - since < patience)
        return;
    check_report_moved();
    guard_report_note(
        "no CUDA call of the program has ended in the 10 seconds since the last error. A kernel may "
        "wait for ever for what a wrong access has not loaded or stored; --on-error=trap ends "
        "kernels at their first error");
}

static void take(struct check_device *d, struct context *ctx)
{
    struct error_ring_record r;
    unsigned number = context_number(ctx);
    if (!counted[number])
        counted[number] = mem_zalloc(1, sizeof **counted);
    while (error_ring_take(&d->reader, &r)) {
        // Memory whose allocation moat did not see may be accessed rightly.
        if (r.client != ERROR_RING_CHECK || r.kind >= KCHECK_KINDS)
            continue;
        if (r.kind == KCHECK_STRAY && !is_placed(r.address)) {
            take_stray(&r, ctx, counted[number]);
            continue;
        }
        uint64_t key = report(&r, ctx, NULL), n = r.payload[6];
        atomic_store_explicit(&wrong_at, now(), memory_order_relaxed);
        guard_count(GUARD_CHECK_ERRORS);
        if (counted[number] && n < KCHECK_COUNTERS) {
            counted[number]->keys[n] = key;
            counted[number]->counts[n] = 1;
        }
    }
}

static void read_one(struct check_device *d, struct context *ctx, void *all)
{
    const struct error_ring_reader *r = &d->reader;
    const struct error_ring_record *next = &r->ring->records[r->taken % r->size];
    // Acquire: as in error_ring_take, which looks again.
    if (*(bool *)all || __atomic_load_n(&next->sequence, __ATOMIC_ACQUIRE) == r->taken + 1)
        take(d, ctx);
}

void check_report_read(bool all)
{
    if (check_host_on)
        check_host_rings(read_one, &all, all);
}

// Relaxed: whoever does not see it yet reads the rings too.
static _Atomic(bool) watched;

void check_report_poll(void)
{
    if (!atomic_load_explicit(&watched, memory_order_relaxed))
        check_report_read(false);
}

// Reports what kernels find while they run and the program waits elsewhere.
static void *watch(void *unused)
{
    const struct timespec pause = {.tv_nsec = PAUSE};
    atomic_store_explicit(&watched, true, memory_order_relaxed);
    while (check_host_on) {
        check_report_read(false);
        kheap_watch_read_all(false);
        check_host_find_heaps();
        warn_of_waiting();
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static int owner;  // the process in which kernels are checked

// Registered after the driver's own exit handler, so it runs before the driver shuts down.
static void at_exit(void)
{
    if (owner != getpid())
        return;
    kheap_watch_read_all(true);
    check_report_read(true);
    check_report_count();
    check_host_close();
    kheap_watch_close();
}

static void first(void)
{
    owner = getpid();
    if (atexit(at_exit))
        guard_report_note("check: errors that kernels make last are not reported when the program ends");
    if (!own_thread(watch))
        guard_report_note("check: no thread: errors are reported when the program launches or waits");
}

// Finds the stray access that ended a kernel: the one that the device describes, or the last one.
static const struct stray *fatal(const struct driver_fault *fault)
{
    for (uint64_t i = nkept; i > 0 && nkept - i < STRAYS; i--) {
        const struct stray *s = &kept[(i - 1) % STRAYS];
        if (!fault || s->record.address == fault->address)
            return s;
    }
    return NULL;
}

struct explaining {
    const struct driver_fault *fault;
    bool done;
};

static void explain_fault(struct check_device *d, struct context *ctx, void *argument)
{
    struct explaining *x = argument;
    const struct stray *s = x->done ? NULL : fatal(x->fault);
    if (!s || s->context != ctx)
        return;
    x->done = true;
    fault_known = x->fault;
    guard_count(GUARD_CHECK_ERRORS);
    report(&s->record, ctx, NULL);
}

static void forget(struct check_device *d, struct context *ctx, void *unused)
{
    nkept = 0;
}

void check_report_ended(void)
{
    if (check_host_on && atomic_load_explicit(&nkept, memory_order_relaxed))
        check_host_rings(forget, NULL, false);
}

// What a kernel did before it was ended is in host memory before the end is known.
static bool is_explained(bool illegal, const struct driver_fault *fault)
{
    struct explaining x = {.fault = fault};
    check_report_read(true);
    if (!illegal)
        return ended;
    if (check_host_on)
        check_host_rings(explain_fault, &x, true);
    return x.done;
}

void check_report_start(void)
{
    check_host_first = first;
    kernel_fault_is_explained = is_explained;
}

// --- counts ------------------------------------------------------------------------------------------------

static void count_one(struct check_device *d, struct context *ctx, void *argument)
{
    struct counted *c = counted[context_number(ctx)];
    struct kcheck_state *state = mem_alloc(sizeof *state);
    const struct context_copy copy = {d->state, state, offsetof(struct kcheck_state, launches)};
    uint64_t errors = 0, strays[CHECK_STRAYS] = {0};
    if (!state || context_read(ctx, &copy, 1)) {
        mem_free(state);
        return;
    }
    for (unsigned i = 0; c && i < KCHECK_COUNTERS; i++) {
        uint64_t n = state->counters[i].count;
        if (!c->keys[i]) {
            strays[c->strays[i]] += n - c->counts[i];  // or errors whose record is not read yet
        } else {
            guard_report_again(c->keys[i], n - c->counts[i]);
            errors += n - c->counts[i];
        }
        c->counts[i] = n;
    }
    guard_add(GUARD_CHECK_ERRORS, errors);
    guard_add(GUARD_CHECK_STRAYS, strays[CHECK_STRAY_UNKNOWN] + strays[CHECK_STRAY_NOBODYS]);
    guard_add(GUARD_CHECK_STRAYS_DRIVERS, strays[CHECK_STRAY_DRIVERS]);
    guard_add(GUARD_CHECK_STRAYS_HOST, strays[CHECK_STRAY_HOST]);
    guard_add(GUARD_CHECK_LOST, state->errors.lost - d->lost);
    d->lost = state->errors.lost;
    mem_free(state);
}

void check_report_count(void)
{
    if (check_host_on)
        check_host_each(count_one, NULL);
}
