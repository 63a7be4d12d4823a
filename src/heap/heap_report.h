// SPDX-License-Identifier: MIT
// Reports of the heap's checks, on their way to src/report. Uses no heap and no stdio; one report at a time.
#ifndef MOAT_HEAP_REPORT_H
#define MOAT_HEAP_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/block.h"

// halt_status: the exit status at the first error; -1: the process continues.
void heap_report_init(const char *log_file, int halt_status);

void heap_report_before_threads(void);  // to be called before the first thread of ours is started

// Blocks that were reported: by block_name, or by their word if the head was overwritten.
bool heap_report_is_known(uint64_t name);
// Marks a block as reported. Returns false if it was already, or if the calling thread cannot write reports
// now; then the block stays unmarked, for a thread that can.
bool heap_report_make_known(uint64_t name);

// tail: a copy, of block_tail_bytes. found_by: the call that detected the overflow; NULL: the monitor did.
void heap_report_tail(const char *block, const struct block_head *head, const char tail[BLOCK_TAIL_MOST],
                      const char *found_by);
void heap_report_head(const char *block, const struct block_head *head);
// A write has changed the head of a block that is not in use. `before`: the block before it in its span, or
// NULL; if that one's head is intact, the report is of an overflow of it.
void heap_report_unused_head(const char *block, const struct block_head *head, const char *before);
void heap_report_freed_write(const char *block, const struct block_head *head, int64_t at);
// site: that of the call.
void heap_report_double_free(const char *block, const struct block_head *head, const char *call,
                             uint32_t site);
// The same for a block that was unmapped (unmapped.h).
void heap_report_unmapped_free(const char *block, const struct block_head *head, const char *call,
                               uint32_t site);
// A block was freed by a call of another family than the one that allocated it.
void heap_report_mismatch(const char *block, const struct block_head *head, const char *call, uint32_t site);
// `owner`: the block that p points into, or NULL.
void heap_report_bad_free(const void *p, const char *call, uint32_t site, const char *owner,
                          const struct block_head *owner_head);
void heap_report_leak(const char *block, const struct block_head *head, uint64_t blocks, uint64_t bytes);

uint64_t heap_report_count(void);  // errors so far
bool heap_report_is_busy(void);    // whether this thread is inside a report

// Reports the end of the process: counts, and what was not watched.
void heap_report_end(void);
void heap_report_note(const char *text);

void heap_report_before_fork(void);
void heap_report_after_fork(bool child);

#endif
