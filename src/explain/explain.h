// SPDX-License-Identifier: MIT
// --mode=explain: for each launch, what the kernel will touch as the launch decides it (flow/proof.h),
// compared with the buffers that its pointers point into. Nothing is enforced: an access that is
// certain to leave its buffer is reported, and the launch is made.
//
// A row is a kernel's; its word in context/kernels.h points to it. Rows stay for the life of the process.
// Kernels that are captured or added to a graph are judged at that moment, and count as launched then.
#ifndef MOAT_EXPLAIN_EXPLAIN_H
#define MOAT_EXPLAIN_EXPLAIN_H

#include "explain/explain_times.h"
#include "flow/judge.h"
#include "flow/proof_memo.h"
#include "flow/ranges.h"
#include "launch/launch_call.h"
#include "track/track.h"

// The verdicts on an access in the code.
struct explain_tally {
    uint64_t launches[JUDGE_VERDICTS];
    uint8_t reason;              // of the last UNKNOWN
    uint32_t root;               // as last known; PROOF_NONE: never
    struct judge_answer answer;  // the worst that is OUTSIDE or MAYBE
    uint64_t size;               // of its buffer
    bool freed;                  // it was freed before the launch
};

// The buffer of a root in one launch.
struct explain_buffer {
    struct judge_buffer judged;
    bool looked_up, found, freed;
    bool shared_start;  // another buffer ends where the pointer points to: it may be meant
    struct track_copy block;
};

// All members but the name and what was built are protected by the lock of explain.c.
struct explain_row {
    struct explain_row *next;    // of all rows
    const char *name;            // kept by names.h
    const struct ptx_module *m;  // NULL: no PTX
    const struct ptx_func *f;
    struct ranges *ranges;  // NULL: there is none
    void *work, *memory;
    struct proof_memo *memo;         // in `memory`
    struct explain_tally *tallies;   // one for each access
    struct explain_buffer *buffers;  // one for each root
    uint64_t launches;
    uint64_t unevaluated;  // of them, those whose parameters could not be read or that no device can run
    struct explain_times times;
};

bool explain_start(void);  // returns false if kernels have no word left
void explain_after_fork(void);

void explain_function_found(const void *handle, const void *owner, const char *name);
void explain_function_of(CUfunction function, CUkernel kernel);
void explain_made(const void *handle);
void explain_alias(const void *library, CUmodule module);
void explain_gone(const void *handle);
void explain_launch(const struct launch_call *l);

// explain_found.c: reports that an access is certain to leave its buffer, or that the buffer was freed.
struct explain_found {
    uint32_t access, root;
    struct judge_answer answer;
    struct explain_buffer buffer;
};
void explain_found(const struct explain_row *row, const struct explain_found *found, enum driver_id call);
// Writes what is wrong: "needs 4,004 bytes, the buffer has 4,000".
void explain_found_words(const struct judge_answer *a, uint64_t size, bool freed, char *text, size_t room);

// explain_report.c: reports all rows, the worst first. The caller holds the lock of explain.c, and
// sends the result after it has given the lock back.
struct explain_report;
struct explain_report *explain_report_make(const struct explain_row *rows);  // NULL: out of memory
void explain_report_send(struct explain_report *r);                          // frees it

void explain_end(void);

#endif
