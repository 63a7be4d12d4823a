// SPDX-License-Identifier: MIT
// The state of an event that several processes record and wait for. Records are numbered from 1; a wait is
// for the record that was the last one when the call was made.
#ifndef MOAT_CPU_EVENT_SHARE_H
#define MOAT_CPU_EVENT_SHARE_H

#include "cpu/cpu.h"

struct event_share;

struct event_share *event_share_new(void);  // NULL: out of memory or of descriptors
CUresult event_share_open(const CUipcEventHandle *handle, struct event_share **out);
void event_share_handle(const struct event_share *s, CUipcEventHandle *out);
void event_share_keep(struct event_share *s);
void event_share_drop(struct event_share *s);  // NULL is fine

uint64_t event_share_record(struct event_share *s);            // returns the number of a new record
void event_share_end(struct event_share *s, uint64_t number);  // called when the stream reaches the record
uint64_t event_share_last(const struct event_share *s);        // 0: never recorded
bool event_share_ended(const struct event_share *s, uint64_t number);  // true for 0

#endif
