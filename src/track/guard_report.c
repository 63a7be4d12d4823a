// SPDX-License-Identifier: MIT
#include "track/guard_report.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/modes.h"
#include "context/kernels.h"
#include "core/guard.h"
#include "core/lock.h"
#include "track/script_frames.h"
#include "track/stack.h"
#include "track/tensor_label.h"
#include "report/channel.h"
#include "report/fold.h"

enum {
    NOTES = 16,
    NOTE_SIZE = 240,
    SLOTS = 4096,  // distinct errors that are remembered; a power of two
    STACKS = 2 + 2 * GUARD_REPORT_BUFFERS,
    PATHS_SIZE = 64 << 10,
    EXPLAINED = 4096,  // bytes of an interpreter's explanation
    EXPLAINED_NOTES = 8,
    TENSOR_SIZE = 800,
};

// Buffers in which a report is assembled; mapped for the first one. Protected by the lock.
struct scratch {
    struct report_frame frames[STACKS][STACK_DEPTH_MAX];
    struct report_buffer buffers[GUARD_REPORT_BUFFERS];
    char threads[GUARD_REPORT_BUFFERS][24];
    char paths[PATHS_SIZE];
    size_t paths_used;
    unsigned stacks_used;
    const char *notes[4 + GUARD_REPORT_NOTES + EXPLAINED_NOTES];
    char note[NOTE_SIZE];
    char tensor[TENSOR_SIZE];
};

// The last lock by rank: taken while no other of moat's is held, and held over the channel only.
static struct lock lock = LOCK_INIT(REPORT);
static struct channel channel;
static struct scratch *scratch;
static struct fold_slot slots[SLOTS];
static struct fold reported = {.slots = slots, .mask = SLOTS - 1};
static uint64_t next_id = 1, errors, suppressed;
// --halt-on-error, and an error was found. Relaxed: the thread that sets it reads it
static _Atomic(bool) halting;
static int started;  // pid of the process whose banner is out; 0: none
static char notes[NOTES][NOTE_SIZE];
static unsigned nnotes;
static void (*summarise)(void);  // NULL: there is nothing more to count

void guard_report_init(void (*before_end)(void))
{
    summarise = before_end;
    // Without the moat command only text is written: it must not end up inside a structured document.
    channel_init(&channel, guard.options.format == OPTION_FORMAT_TEXT ? guard.options.log_file : NULL);
}

// The child of a fork is a process of its own: its banner is sent with its first report.
void guard_report_after_fork(void)
{
    lock_after_fork(&lock);
    memset(slots, 0, sizeof slots);
    fold_init(&reported, slots, SLOTS);
    errors = suppressed = 0;
    next_id = 1;
}

// The thread's state before it took the lock.
struct thread_state {
    sigset_t signals;
};

// Blocks signals and cancellation while the lock is held: a signal handler of the program may call CUDA or
// leave by longjmp, and another thread may cancel this one.
static void lock_reports(struct thread_state *before)
{
    sigset_t all;
    sigfillset(&all);
    cancel_hold();
    pthread_sigmask(SIG_SETMASK, &all, &before->signals);
    lock_take(&lock);
}

static void unlock_reports(const struct thread_state *before)
{
    lock_give(&lock);
    pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
    cancel_release();
}

static enum channel_answer send(const struct report_line *line)
{
    int saved = errno;
    enum channel_answer answer = channel_send(&channel, line);
    errno = saved;
    return answer;
}

void guard_report_note(const char *fmt, ...)
{
    char text[NOTE_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    struct thread_state before;
    lock_reports(&before);
    if (started != getpid() && nnotes < NOTES)
        memcpy(notes[nnotes++], text, sizeof text);
    else
        send(&(struct report_line){.event = REPORT_NOTE, .note = {.pid = getpid(), .text = text}});
    unlock_reports(&before);
}

// Writes the modes that are on as --mode takes them: "pages,count".
static const char *mode_text(char *text, size_t size)
{
    const struct option_row *row = option_table.rows;
    while (row->offset != offsetof(struct options, mode))
        row++;
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; row->limits.words[i]; i++)
        if (guard.options.mode >> i & 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", row->limits.words[i]);
    return text;
}

// Requires the lock.
static void start_locked(void)
{
    const char *list[NOTES];
    char program[512] = "", mode[64];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    for (unsigned i = 0; i < nnotes; i++)
        list[i] = notes[i];
    started = getpid();
    send(&(struct report_line){.event = REPORT_START,
                               .start = {
                                   .pid = started,
                                   .parent = getppid(),
                                   .program = program,
                                   .mode = mode_text(mode, sizeof mode),
                                   .device = guard.real_fault ? "the CPU device" : guard.real_path,
                                   .version = MOAT_VERSION,
                                   .nnotes = nnotes,
                                   .notes = list,
                               }});
    nnotes = 0;
}

void guard_report_start(void)
{
    struct thread_state before;
    if (guard.options.dump_rewritten && !modes_rewrite(&guard.options))
        guard_report_note("--dump-rewritten has no effect: no active mode rewrites modules");
    lock_reports(&before);
    start_locked();
    unlock_reports(&before);
}

static const char *keep_path(const char *path)
{
    size_t n = strlen(path) + 1;
    // Paths are few: frames of one object share theirs.
    for (size_t at = 0; at < scratch->paths_used; at += strlen(scratch->paths + at) + 1)
        if (strcmp(scratch->paths + at, path) == 0)
            return scratch->paths + at;
    if (n > PATHS_SIZE - scratch->paths_used)
        return NULL;
    char *kept = memcpy(scratch->paths + scratch->paths_used, path, n);
    scratch->paths_used += n;
    return kept;
}

// Removes the interpreter's machine code, and what called it, from a stack that goes on with `script` frames
// of Python code. What is left of machine code is a runtime's that was called, and that of extension modules.
static unsigned without_interpreter(struct report_frame *frames, unsigned n, unsigned script)
{
    unsigned code = n - script, last = 0, kept = 0;
    bool inside = false;
    for (unsigned i = 0; i < code; i++)
        last = report_is_interpreter(frames[i].object) ? i + 1 : last;
    for (unsigned i = 0; i < (last ? last : code); i++) {
        bool interpreter = report_is_interpreter(frames[i].object);
        inside |= interpreter;
        if (!interpreter && !(inside && report_is_runtime(frames[i].object)))
            frames[kept++] = frames[i];
    }
    memmove(frames + kept, frames + code, script * sizeof *frames);
    return kept + script;
}

static struct report_stack make_stack(uint32_t id)
{
    uint64_t pcs[STACK_DEPTH_MAX];
    unsigned n = stack_frames(id, pcs, STACK_DEPTH_MAX);
    n = n < STACK_DEPTH_MAX ? n : STACK_DEPTH_MAX;
    if (!n || scratch->stacks_used == STACKS)
        return (struct report_stack){0};
    struct report_frame *frames = scratch->frames[scratch->stacks_used++];
    unsigned script = 0;
    for (unsigned i = 0; i < n; i++) {
        char path[512];
        struct script_frame f;
        frames[i] = (struct report_frame){.pc = pcs[i]};
        bool is_script = script_frames_find(pcs[i], &f);
        script += is_script;
        if (is_script)
            frames[i] = (struct report_frame){.function = f.function, .file = f.file, .line = f.line};
        else if (stack_locate(pcs[i], path, sizeof path, &frames[i].offset))
            frames[i].object = keep_path(path);
    }
    return (struct report_stack){script ? without_interpreter(frames, n, script) : n, frames};
}

static const char *call_name(unsigned call, bool freed)
{
    if (call == TRACK_MADE_BY_KERNEL)
        return freed ? "free in a kernel" : "malloc in a kernel";
    if (call >= DRIVER_CALLS)
        return call == TRACK_MADE_BY_NVTX ? freed ? "nvtxMemRegionsUnregister" : "nvtxMemRegionsRegister"
               : freed                    ? "moat_block_gone"
                                          : "moat_block_made";
    return driver_calls[call].symbol;
}

static void make_buffer(unsigned i, const struct track_copy *b)
{
    char *thread = scratch->threads[i];
    snprintf(thread, sizeof scratch->threads[i], "%u", b->facts.thread);
    scratch->buffers[i] = (struct report_buffer){
        .base = b->base,
        .size = b->facts.bytes,
        .name = b->facts.name,
        .made_by = call_name(b->facts.made_by, false),
        .freed_by = b->freed ? call_name(b->freed_by, true) : NULL,
        .thread = b->facts.made_by == TRACK_MADE_BY_KERNEL ? NULL : thread,
        .made_at = make_stack(b->facts.made_stack),
        .freed_at = b->freed ? make_stack(b->freed_stack) : (struct report_stack){0},
    };
}

// Canaries are checked while a buffer is freed. The buffer is recorded as freed by then, by the very call
// that the report is about, so the report leaves the free out. A stream-ordered free was another call, even
// if of the same function.
static bool is_freed_here(const struct guard_finding *f, const struct track_copy *b, uint32_t stack)
{
    uint64_t here, there;
    if (!b->freed || !f->corrupted.count || f->call_name || b->freed_by != f->call)
        return false;
    return !stack_frames(stack, &here, 1) || !stack_frames(b->freed_stack, &there, 1) || here == there;
}

// Returns the file of a frame, NULL if it is not known.
static const char *file_of(const struct driver_fault *fault, uint32_t i)
{
    uint16_t at = fault->frames[i].file;
    return at && at < sizeof fault->texts ? fault->texts + at : NULL;
}

// Frames of the device; none if there is only the kernel itself, whose place is shown already.
static struct report_stack make_frames(const struct driver_fault *fault)
{
    uint32_t n = fault->nframes < DRIVER_FAULT_FRAMES ? fault->nframes : DRIVER_FAULT_FRAMES;
    if (n < 2 || scratch->stacks_used == STACKS)
        return (struct report_stack){0};
    struct report_frame *frames = scratch->frames[scratch->stacks_used++];
    for (uint32_t i = 0; i < n; i++) {
        const struct driver_fault_frame *f = &fault->frames[i];
        const char *function =
            f->function && f->function < sizeof fault->texts ? fault->texts + f->function : NULL;
        frames[i] = (struct report_frame){
            .function = function ? kernels_plain_name(function) : NULL,
            .file = file_of(fault, i),
            .line = f->line,
            .inlined = f->inlined,
        };
    }
    return (struct report_stack){n, frames};
}

// Returns the innermost frame of the program's own code, if a header of the toolkit was inlined into it; NULL
// if the innermost frame of all is the program's, or none is.
static const struct driver_fault_frame *own_frame(const struct driver_fault *fault)
{
    uint32_t i = 0, n = fault->nframes < DRIVER_FAULT_FRAMES ? fault->nframes : DRIVER_FAULT_FRAMES;
    while (i < n && (!file_of(fault, i) || report_is_toolkit_header(file_of(fault, i))))
        i++;
    return i && i < n ? &fault->frames[i] : NULL;
}

// Returns whether the fault is in code that moat has rewritten: its lines are not the program's.
static bool is_rewritten(const struct driver_fault *fault)
{
    uint16_t at = fault->nframes ? fault->frames[0].function : 0;
    const char *function = at && at < sizeof fault->texts ? fault->texts + at : fault->kernel;
    return kernels_plain_name(function) != function;
}

static struct report_place make_place(const struct guard_finding *finding)
{
    const struct driver_fault *fault = finding->fault;
    const char *name = fault->kernel[0] ? fault->kernel : NULL;
    struct report_place p = {
        .kernel = finding->in_function ? NULL : name,
        .function = finding->in_function ? name : NULL,
        .file = fault->source_file[0] ? fault->source_file : NULL,
        .line = fault->source_line,
        .thread_known = finding->thread_known,
        .module = fault->module[0] ? fault->module : NULL,
        .instruction = fault->instruction[0] ? fault->instruction : NULL,
        .ptx_line = is_rewritten(fault) ? 0 : fault->line,
        .frames = make_frames(fault),
    };
    const struct driver_fault_frame *own = own_frame(fault);
    if (own) {
        p.file = file_of(fault, (uint32_t)(own - fault->frames));
        p.line = own->line;
    }
    memcpy(p.block, fault->block, sizeof p.block);
    memcpy(p.thread, fault->thread, sizeof p.thread);
    return p;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; text && *text; text++)
        hash = mix(hash, (unsigned char)*text);
    return hash;
}

// Without lines of source, accesses by one register stand for those of a line: compilers write each register
// once. Hashes "[%rd4+8]".
static uint64_t hash_operand(uint64_t hash, const char *text)
{
    for (; *text && *text != ']'; text++)
        hash = mix(hash, (unsigned char)*text);
    return hash;
}

// Hashes where the error happened and whose buffer it is, not the address.
static uint64_t hash_of(const struct guard_finding *f, uint32_t stack, uint32_t client)
{
    uint64_t hash = mix(mix(mix(f->type + 1, f->call), stack), client);
    if (f->nbuffers)
        hash = mix(hash, f->buffers[0].facts.made_stack);
    // Kernels have no host stacks: their buffers are distinguished by size.
    if (f->nbuffers && f->buffers[0].facts.made_by == TRACK_MADE_BY_KERNEL)
        hash = mix(hash, f->buffers[0].facts.bytes);
    const struct driver_fault_frame *own = f->fault && f->by_source ? own_frame(f->fault) : NULL;
    if (f->fault)
        hash = hash_text(hash, f->fault->kernel);
    // A line of the program may read by one header's function and write by another's.
    if (own)
        hash = mix(hash_text(hash, file_of(f->fault, (uint32_t)(own - f->fault->frames))), own->line);
    else if (f->fault && f->by_source && f->fault->source_line)
        hash = mix(hash_text(hash, f->fault->source_file), f->fault->source_line);
    else if (f->fault && f->by_source && strchr(f->fault->instruction, '['))
        hash = hash_operand(hash, strchr(f->fault->instruction, '['));
    else if (f->fault)
        hash = mix(hash, f->fault->line);
    return hash ? hash : 1;
}

static int device_of(const struct guard_finding *f)
{
    CUdevice device = 0;
    if (f->device_known)
        return f->device;
    if (f->nbuffers)
        return f->buffers[0].facts.device;
    return guard.real.cuCtxGetDevice && !guard.real.cuCtxGetDevice(&device) ? device : -1;
}

static uint32_t client_of(const struct guard_finding *f)
{
    uint32_t client = f->client_known ? f->client : track_client();
    return client || f->client_known || !f->nbuffers ? client : f->buffers[0].facts.client;
}

// Relaxed: the function is set once, by the interpreter, and does not read what other threads wrote.
static _Atomic(guard_report_explain_fn *) explainer;

void guard_report_explain_with(guard_report_explain_fn *explain)
{
    atomic_store_explicit(&explainer, explain, memory_order_relaxed);
}

static void explain(const struct guard_finding *f, char *text, size_t size)
{
    guard_report_explain_fn *function = atomic_load_explicit(&explainer, memory_order_relaxed);
    text[0] = 0;
    if (function && !f->stackless)
        function(f->address, f->bytes, f->fault && f->fault->kernel[0] ? f->fault->kernel : NULL, text, size);
    text[size - 1] = 0;
}

// Reads "FUNCTION\tFILE\tLINE", which it cuts into its parts.
static bool explained_frame(char *line, struct report_frame *out)
{
    char *file = strchr(line, '\t'), *number = file ? strchr(file + 1, '\t') : NULL;
    if (!number)
        return false;
    *file++ = *number++ = 0;
    *out = (struct report_frame){.function = line, .file = file, .line = (uint32_t)strtoul(number, NULL, 10)};
    return true;
}

// Names the tensor of the first buffer in which a framework has one. Returns false if there is none.
static bool add_tensor(struct report *r, const struct guard_finding *f)
{
    for (unsigned i = 0; i < f->nbuffers && !f->nowhere; i++)
        if (tensor_label_describe(f->buffers[i].base, f->buffers[i].facts.bytes, f->address, f->bytes,
                                  scratch->tensor, sizeof scratch->tensor)) {
            scratch->notes[r->nnotes++] = scratch->tensor;
            return true;
        }
    return false;
}

// Adds an interpreter's explanation to a report: its frames replace those of the interpreter's own code.
// Sentences are left out if they are about a tensor that is named already.
static void add_explanation(struct report *r, char *text, bool named)
{
    struct report_frame *frames =
        scratch->stacks_used < STACKS ? scratch->frames[scratch->stacks_used] : NULL;
    uint32_t nframes = 0, most = r->nnotes + EXPLAINED_NOTES;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (*line != '@' && r->nnotes < most && !named)
            scratch->notes[r->nnotes++] = line;
        else if (*line == '@' && frames && nframes < STACK_DEPTH_MAX)
            nframes += explained_frame(line + 1, &frames[nframes]);
    }
    if (!nframes)
        return;
    scratch->stacks_used++;
    r->stack = (struct report_stack){nframes, frames};
}

// Requires the lock.
static void send_error(const struct guard_finding *f, uint32_t stack, int device, uint32_t client,
                       struct fold_slot *e, char *explanation)
{
    struct report r = {
        .type = f->type,
        .pid = getpid(),
        .device = device,
        .client = client,
        .has_address = !f->nowhere && (f->address || f->bytes),
        .address = f->address,
        .access = f->access,
        .bytes = f->bytes,
        .call = f->in_kernel   ? NULL
                : f->call_name ? f->call_name
                               : driver_calls[f->call].symbol,
        .nbuffers = f->nbuffers,
        .nsuspects = f->nsuspects,
        .suspects = f->suspects,
        .corrupted = f->corrupted,
        .id = next_id++,
        .count = 1,
    };
    scratch->paths_used = scratch->stacks_used = 0;
    r.stack = make_stack(stack);
    for (unsigned i = 0; i < f->nbuffers; i++) {
        struct track_copy b = f->buffers[i];
        b.freed &= !is_freed_here(f, &b, stack);
        make_buffer(i, &b);
    }
    r.buffers = scratch->buffers;
    if (f->fault)
        r.place = make_place(f);
    if (f->note)
        scratch->notes[r.nnotes++] = f->note;
    for (unsigned i = 0; i < GUARD_REPORT_NOTES; i++)
        if (f->more[i])
            scratch->notes[r.nnotes++] = f->more[i];
    add_explanation(&r, explanation, add_tensor(&r, f));
    r.notes = scratch->notes;
    if (e)
        *e = (struct fold_slot){e->key, r.id, 1, f->foretold};
    enum channel_answer answer = send(&(struct report_line){.event = REPORT_ERROR, .error = r});
    if (answer == CHANNEL_SUPPRESSED)
        suppressed++;
    else
        errors++;
    if (answer != CHANNEL_SUPPRESSED && guard.options.halt_on_error)
        atomic_store_explicit(&halting, true, memory_order_relaxed);
}

// Sends the summary, then exits. A process that was stopped midway did not succeed, so the status is never 0.
static void halt(void)
{
    guard_report_end();
    _exit(guard.options.error_exitcode ? (int)guard.options.error_exitcode : 97);
}

static bool have_scratch(void)
{
    if (!scratch) {
        void *p = mmap(NULL, sizeof *scratch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        scratch = p == MAP_FAILED ? NULL : p;
    }
    return scratch;
}

void guard_report_again(uint64_t key, uint64_t n)
{
    struct thread_state before;
    lock_reports(&before);
    struct fold_slot *e = fold_find(&reported, key);
    if (e && e->count)
        e->count += n;
    unlock_reports(&before);
}

void guard_report_finding(const struct guard_finding *f)
{
    guard_report_keyed(f);
}

// Counts an error that was reported before. One that was foretold is counted already when it happens; whoever
// foretells it again will count those that happen.
static void count_equal(struct fold_slot *e, bool foretold)
{
    e->count += !foretold && !e->foretold;
    e->foretold &= foretold;
}

uint64_t guard_report_keyed(const struct guard_finding *f)
{
    uint32_t stack = f->launched_at ? f->launched_at
                     : f->stackless ? 0
                                    : stack_capture(NULL, STACK_DEPTH_MAX);
    int device = device_of(f);
    uint32_t client = client_of(f);
    uint64_t hash = hash_of(f, stack, client);
    char explanation[EXPLAINED];
    explain(f, explanation, sizeof explanation);
    struct thread_state before;
    lock_reports(&before);
    if (started != getpid())
        start_locked();
    struct fold_slot *e = fold_find(&reported, hash);
    if (e && e->count)
        count_equal(e, f->foretold);
    else if (have_scratch())
        send_error(f, stack, device, client, e, explanation);
    unlock_reports(&before);
    if (atomic_load_explicit(&halting, memory_order_relaxed))
        halt();
    return hash;
}

static void send_repeats(void)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i].count > 1)
            send(&(struct report_line){
                .event = REPORT_REPEAT,
                .repeat = {.pid = getpid(), .id = slots[i].id, .count = slots[i].count},
            });
}

static void send_table(const struct report_line *line)
{
    struct thread_state before;
    lock_reports(&before);
    if (started != getpid())
        start_locked();
    send(line);
    unlock_reports(&before);
}

void guard_report_counts(const struct report_counts *counts)
{
    send_table(&(struct report_line){.event = REPORT_COUNTS, .counts = *counts});
}

void guard_report_proofs(const struct report_proofs *proofs)
{
    send_table(&(struct report_line){.event = REPORT_PROOFS, .proofs = *proofs});
}

void guard_report_unchecked(const struct report_unchecked *kernels)
{
    send_table(&(struct report_line){.event = REPORT_UNCHECKED, .unchecked = *kernels});
}

static const char *labels[GUARD_COUNTS];  // in place of those in stats.def

void guard_report_relabel(enum guard_count count, const char *label)
{
    labels[count] = label;
}

void guard_report_end(void)
{
    static const struct {
        const char *key, *label;
        int covered;
    } rows[GUARD_COUNTS] = {
#define STAT(id, key, covered, label) {key, label, covered},
#include "core/stats.def"
#undef STAT
    };
#define STAT(id, key, covered, label) _Static_assert(sizeof label <= 81, "the columns of the summary");
#include "core/stats.def"
#undef STAT
    struct report_value values[2][GUARD_COUNTS];
    uint32_t count[2] = {0, 0};
    if (summarise)
        summarise();
    for (int i = 0; i < GUARD_COUNTS; i++) {
        uint64_t value = atomic_load_explicit(&guard.counts[i], memory_order_relaxed);
        int covered = rows[i].covered != 0;
        if (rows[i].covered == 1 || value)
            values[covered][count[covered]++] =
                (struct report_value){rows[i].key, labels[i] ? labels[i] : rows[i].label, value};
    }
    struct thread_state before;
    lock_reports(&before);
    if (started == getpid()) {
        send_repeats();
        send(&(struct report_line){
            .event = REPORT_END,
            .end = {.pid = getpid(),
                    .errors = errors,
                    .suppressed = suppressed,
                    .nvalues = count[1],
                    .values = values[1],
                    .nuncovered = count[0],
                    .uncovered = values[0]},
        });
    }
    unlock_reports(&before);
}

uint64_t guard_report_errors(void)
{
    struct thread_state before;
    lock_reports(&before);
    uint64_t n = errors;
    unlock_reports(&before);
    return n;
}
