// SPDX-License-Identifier: MIT
// The table, the counters and the ring of errors of --mode=check in one context.
//
//   directory   512 MiB of addresses. All of it can be read: pages without contents are zeros, the same ones
//               mapped over and over. Each mapping takes time, 27 us on an H200, so eight pages share one.
//   records     addresses for all that there may be; memory is mapped as the table grows
//
// Kernels get both through mappings that can only be read; copies go through others. A page of the directory
// that gets its first contents replaces no mapping that a kernel may be reading: there is a new directory,
// and `version` changes, so that the variables of modules are set again; kernels that are running keep the
// old one. That happens once for each 512 GiB of addresses.
//
// All functions need the lock of check_host.c, and the context to be current.
#ifndef MOAT_CHECK_CHECK_DEVICE_H
#define MOAT_CHECK_CHECK_DEVICE_H

#include <stdatomic.h>

#include "check/check_table.h"
#include "context/context.h"
#include "kcheck/kcheck_state.h"

enum check_device_stage {
    CHECK_DEVICE_NONE,
    CHECK_DEVICE_READY,
    CHECK_DEVICE_FAILED,  // there is none and will be none
    // The driver may be ending the context: nothing of it is touched until that is decided.
    CHECK_DEVICE_ENDING,         // there is none
    CHECK_DEVICE_ENDING_READY,   // it was ready, and is as the table
    CHECK_DEVICE_ENDING_MISSED,  // it was ready, and the table has changed since
};

struct check_device {
    _Atomic(enum check_device_stage) stage;  // relaxed; written with the lock of check_host.c
    unsigned version;
    CUdeviceptr directory, directory_write;          // for kernels, and for copies
    CUdeviceptr directories[CHECK_TABLE_PAGES + 1];  // for kernels, the former ones too
    unsigned ndirectories;
    CUdeviceptr records, records_write;
    CUdeviceptr state;                                      // a struct kcheck_state
    CUdeviceptr shadow;                                     // of check_host_shadow; 0: none
    CUmemGenericAllocationHandle zero_page, zeros;          // of a page, and of a span of pages
    CUmemGenericAllocationHandle pages[CHECK_TABLE_PAGES];  // 0: the page is zeros
    uint32_t pieces;                                        // of records that are mapped
    struct error_ring *ring;
    struct error_ring_reader reader;
    uint64_t crowded, lost;     // that were added to the summary
    bool heap_known;            // the driver's heap of malloc in kernels is in the table
    uint64_t heap, heap_bytes;  // moat's own (kwatch/kheap_host.h); 0: there is none
};

// Makes the copy of a table in a context. `trap`: errors stop kernels.
CUresult check_device_make(struct check_device *d, struct context *ctx, const struct check_table *t,
                           bool trap);
// Frees everything after check_device_make has failed.
void check_device_unmake(struct check_device *d);
// Frees what does not end with a context: it has ended.
void check_device_drop(struct check_device *d);

// Copies what has changed in the table; complete when it returns.
CUresult check_device_flush(struct check_device *d, struct context *ctx, const struct check_table *t);
// Makes the changes in the order of a stream. Returns false if that is not possible: then nothing was done.
bool check_device_flush_in(struct check_device *d, const struct check_table *t, CUstream stream,
                           bool per_thread);

#endif
