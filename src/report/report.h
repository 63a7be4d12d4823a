// SPDX-License-Identifier: MIT
// An error as it was found, and the other events of a watched process: the libraries that find errors fill
// these structs, and renderers need nothing else. Nothing in them refers to the process they came from.
//
//   process: struct report ──▶ JSON line ──▶ channel ──▶ command: struct report ──▶ text, JSON, SARIF, XML
//
// Pointers belong to whoever filled the struct; NULL: not known or not applicable. Texts are UTF-8 or plain
// bytes; renderers clean them. Names of kernels and functions are mangled; renderers demangle them.
#ifndef MOAT_REPORT_REPORT_H
#define MOAT_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum report_type {
#define ERROR(id, name, family, cwe, text) REPORT_##id,
#include "report/errors.def"
#undef ERROR
    REPORT_TYPES
};

struct report_row {
    const char *name, *family, *text;
    int cwe;
};
extern const struct report_row report_rows[REPORT_TYPES];
int report_type_find(const char *name);  // -1: no such type

// A place in host code. The process knows pc, object and offset; the command finds the rest (symbol.h).
struct report_frame {
    uint64_t pc;         // the return address of the call; in the first frame of a fault, the fault itself
    const char *object;  // path of the file that contains it
    uint64_t offset;     // in that file's own addresses
    const char *function, *file;
    uint32_t line;
    bool inlined;  // into the next frame
};

struct report_stack {
    uint32_t count;
    const struct report_frame *frames;  // innermost first
};

// Returns the frame that a user would call the place of the error: the innermost with a source line that is
// not in a CUDA runtime, its headers, libc, an interpreter or moat; else the innermost of those with a name,
// or any. Returns NULL if all frames are a runtime's.
const struct report_frame *report_frame_of_program(const struct report_stack *stack);

// Returns the first frame worth showing: functions inside a CUDA runtime are left out, its call stays. Of a
// launch, what nvcc has made between the program and the runtime is left out too.
uint32_t report_first_shown(const struct report_stack *stack);

// Returns whether a frame is of what calls main.
bool report_is_start_code(const struct report_frame *f);

// Returns whether a source file is a header of a CUDA toolkit or of a compiler: never the program's own code.
bool report_is_toolkit_header(const char *file);

// Returns whether an object file is a library that runs programs, such as libc, libcudart or moat's own, by
// its name: frames in it are never the program's.
bool report_is_runtime(const char *object);

// Returns whether an object file is an interpreter of Python or a library of PyTorch, by its path.
bool report_is_interpreter(const char *object);

// A place in device code.
struct report_place {
    const char *kernel;
    const char *function;  // a device function that the kernel called
    const char *file;
    uint32_t line;
    bool thread_known;
    uint32_t block[3], thread[3];
    const char *module, *instruction;  // the PTX, where it is known
    uint32_t ptx_line;
    struct report_stack frames;  // in device code, if there are more than the kernel itself
};

// Returns the kernel, or the function that a kernel called if the kernel is not known; NULL: neither is.
static inline const char *report_device_name(const struct report_place *at)
{
    return at->kernel ? at->kernel : at->function;
}

// A buffer that an error is about.
struct report_buffer {
    uint64_t base, size;
    const char *name;      // of a module's variable or of an announced block
    const char *made_by;   // the call that made it, e.g. "cuMemAlloc_v2"
    const char *freed_by;  // NULL: not freed
    const char *thread;    // host thread that made it
    struct report_stack made_at, freed_at;
};

// Bytes that should not have changed, from `base` on; touched has a bit for each, from bit 0 of its first
// byte.
struct report_bytes {
    uint64_t base;
    uint32_t count;
    const uint8_t *bytes, *touched;
};

enum report_access { REPORT_NO_ACCESS, REPORT_READ, REPORT_WRITE };

struct report {
    enum report_type type;
    int pid;
    int device;       // -1: the host's own memory
    uint32_t client;  // of the process, to which the error belongs; 0: the process itself
    bool has_address;
    uint64_t address;  // first wrong byte
    enum report_access access;
    uint64_t bytes;               // of the whole access or transfer
    const char *call;             // API call in which it was found, e.g. "cuMemcpyHtoD_v2"
    struct report_place place;    // .kernel NULL: not in device code
    struct report_stack stack;    // of the host thread that made the call or launch
    uint32_t nsuspects;           // 0: not known, or place.kernel is it
    const char *const *suspects;  // kernels one of which did it, the likeliest first
    uint32_t nbuffers;
    const struct report_buffer *buffers;  // the most likely first; the others are candidates
    struct report_bytes corrupted;
    uint32_t nnotes;
    const char *const *notes;  // further sentences
    const char *library;       // library that found it, if not the guard: "heap"
    uint64_t id;     // of this report in its process and, until the command assigns one, its library; from 1
    uint64_t count;  // occurrences so far
};

struct report_value {
    const char *key;    // for programs: "kernels_launched"
    const char *label;  // for people: "kernels launched"
    uint64_t value;
};

// The start of watching a process.
struct report_start {
    int pid, parent;
    const char *program;  // path
    const char *mode, *device;
    const char *version;  // moat's
    bool also;            // another library of a process that was reported already; not in the JSON
    uint32_t nnotes;
    const char *const *notes;  // what is not protected, and why
};

// The end of a process: what was watched, and what was not.
struct report_end {
    int pid;
    const char *library;  // whose summary it is, if not the guard's: "heap"
    const char *quiet;    // program with nothing else to report: one line will do; not in the JSON
    uint64_t errors, suppressed;
    uint32_t nvalues;
    const struct report_value *values;  // what was watched
    uint32_t nuncovered;
    const struct report_value *uncovered;  // what was not watched: label says why
};

// The counts of --mode=count for one address space.
struct report_space {
    const char *name;
    uint64_t loads, stores, read, written;  // the last two in bytes
};

// Its counts for a kernel, or for a function that kernels call, whose counts are not in its callers'.
struct report_kernel {
    const char *name;
    bool function;     // not a kernel: its threads are calls
    bool uncounted;    // not rewritten: only its launches are known
    bool approximate;  // counts may be too low
    uint64_t launches, threads;
    uint64_t loads, stores, read, written;  // of all spaces
    uint32_t nspaces;
    const struct report_space *spaces;  // those that it uses
};

// The counts of kernels, most bytes first. A long table comes in several events.
struct report_counts {
    int pid;
    uint32_t nkernels;
    const struct report_kernel *kernels;
};

// What --mode=explain says of accesses of a kernel at one place that are alike.
struct report_access_place {
    const char *file;
    uint32_t line;
    uint32_t ptx_line;
    const char *verdict;  // "outside", "maybe outside", "not bounded"
    enum report_access access;
    uint32_t bytes;
    uint64_t accesses;  // in the code
    uint64_t launches;  // in which they were judged so
    const char *root;   // what they start from: "p0", the name of a variable
    const char *why, *help;
};

// Its verdicts on the accesses in the code of a kernel, each the worst of all launches, and what
// evaluating a launch took.
struct report_explained {
    const char *name;
    bool unread;  // its PTX could not be read: only its launches are known
    uint64_t launches, accesses;
    uint64_t inside, bounded, outside, maybe, unknown, unreachable;
    uint64_t median, most;  // nanoseconds: the half, and 99 of 100 launches, took at most that
    uint32_t nplaces;
    const struct report_access_place *places;  // those that are not inside, the worst first
    uint64_t more;                             // places that were left out
};

// The verdicts on kernels, the worst first. A long table comes in several events.
struct report_proofs {
    int pid;
    uint32_t nkernels;
    const struct report_explained *kernels;
};

// A kernel that --mode=check let run unchecked.
struct report_unchecked_kernel {
    const char *name;
    uint64_t launches;
};

// Those of a process, most launches first. A long table comes in several events.
struct report_unchecked {
    int pid;
    uint32_t before, all;  // kernels in earlier events, and in all events
    uint32_t nkernels;
    const struct report_unchecked_kernel *kernels;
};

enum report_event {
    REPORT_START,
    REPORT_ERROR,
    REPORT_REPEAT,
    REPORT_NOTE,
    REPORT_END,
    REPORT_COUNTS,
    REPORT_PROOFS,
    REPORT_UNCHECKED,
};

// One line of a saved report.
struct report_line {
    enum report_event event;
    union {
        struct report_start start;
        struct report error;
        struct {
            int pid;
            const char *library;
            uint64_t id, count;  // total occurrences of the report with this id
        } repeat;
        struct {
            int pid;
            const char *text;
        } note;
        struct report_end end;
        struct report_counts counts;
        struct report_proofs proofs;
        struct report_unchecked unchecked;
    };
};

#endif
