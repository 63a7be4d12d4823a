// SPDX-License-Identifier: MIT
// What the heap's watchers found, on its way to src/report. No heap, no stdio; one report at a time.
#ifndef MOAT_HEAP_REPORT_H
#define MOAT_HEAP_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/block.h"

// halt_status: the process ends with it at the first error; -1: it goes on.
void heap_report_init(const char *log_file, int halt_status);

// Blocks about which all was said: by their name (block.h), or by their word if the head was overwritten.
bool heap_report_is_known(uint64_t name);
// False: it was already; or the calling thread can tell nobody, then it stays unknown for one that can.
bool heap_report_make_known(uint64_t name);

// found_by: the call that saw it; NULL: the monitor did.
void heap_report_tail(const char *block, const struct block_head *head, uint64_t tail, const char *found_by);
void heap_report_head(const char *block, const struct block_head *head);
void heap_report_freed_write(const char *block, const struct block_head *head, int64_t at);
// site: of the call.
void heap_report_double_free(const char *block, const struct block_head *head, const char *call,
                             uint32_t site);
// The like of a block that is not there any more (unmapped.h).
void heap_report_gone_free(const char *block, const struct block_head *head, const char *call, uint32_t site);
// A block was freed by a call of another family than allocated it.
void heap_report_mismatch(const char *block, const struct block_head *head, const char *call, uint32_t site);
// `owner`: the block it points into, or NULL.
void heap_report_bad_free(const void *p, const char *call, uint32_t site, const char *owner,
                          const struct block_head *owner_head);
void heap_report_leak(const char *block, const struct block_head *head, uint64_t blocks, uint64_t bytes);

uint64_t heap_report_count(void);  // errors so far
bool heap_report_is_busy(void);    // whether this thread is in the middle of one

// The process was watched: what there was, and what was left out.
void heap_report_end(void);
void heap_report_note(const char *text);

void heap_report_before_fork(void);
void heap_report_after_fork(bool child);

#endif
