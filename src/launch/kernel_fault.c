// SPDX-License-Identifier: MIT
#include "launch/kernel_fault.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/host_memory.h"
#include "context/kernels.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "launch/launch_ring.h"
#include "track/track.h"

bool kernel_fault_lists_candidates;
bool (*kernel_fault_is_explained)(bool illegal, const struct driver_fault *fault);
CUresult (*kernel_fault_contained)(bool launch);

// NEAR, SURE: bytes from a buffer within which an access is blamed on it, and within which that is certain.
enum { NEAR = 16 << 20, SURE = 4096, NULL_PAGE = 1 << 16, KERNELS = 8, NOTE = 2000 };

// Returns what a sticky result says about the kernel that died; REPORT_TYPES if it is not a memory error. A
// failed assert is not one, because the program checked for it and prints it; nor are failures of the
// hardware or the watchdog.
static enum report_type fault_type(CUresult r)
{
    switch (r) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE: return REPORT_WILD_ACCESS;
    case CUDA_ERROR_MISALIGNED_ADDRESS: return REPORT_MISALIGNED;
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_HARDWARE_STACK_ERROR: return REPORT_KERNEL_FAULT;
    default: return REPORT_TYPES;
    }
}

bool kernel_fault_ended(CUresult r)
{
    return fault_type(r) != REPORT_TYPES || r == CUDA_ERROR_ASSERT || r == CUDA_ERROR_LAUNCH_TIMEOUT;
}

// Finds the buffer that an address was meant to be in, or once was in. Call it inside an epoch section.
static void blame(struct guard_finding *f)
{
    struct track_block *b = track_live(f->address), *after = track_after(f->address, f->address + NEAR);
    if (b || (b = track_freed(f->address))) {
        bool freed = b != track_live(f->address);
        f->type = freed ? REPORT_USE_AFTER_FREE : REPORT_WILD_ACCESS;
        f->buffers[f->nbuffers++] = track_copy(b, freed);
        return;
    }
    b = track_before(f->address, NEAR);
    uint64_t behind = b ? f->address - track_end(b) : UINT64_MAX;
    uint64_t before = after ? after->range.base - f->address : UINT64_MAX;
    if (!b && !after)
        return;
    f->type = behind <= before ? REPORT_HEAP_OVERFLOW : REPORT_HEAP_UNDERFLOW;
    if ((behind <= before ? behind : before) >= SURE)
        f->note = "this is the nearest buffer; the access may belong to another";
    f->buffers[f->nbuffers++] = track_copy(behind <= before ? b : after, false);
}

// Reports a fault that the device describes exactly.
static void report_exact(struct driver_fault *fault)
{
    const char *own = kernels_plain_name(fault->kernel);
    memmove(fault->kernel, own, strlen(own) + 1);
    struct guard_finding f = {
        .type = REPORT_WILD_ACCESS,
        .in_kernel = true,
        .address = fault->address,
        .bytes = fault->bytes,
        .access = fault->write ? REPORT_WRITE : REPORT_READ,
        .fault = fault,
        .thread_known = true,
    };
    enum report_type type = fault_type((CUresult)fault->result);
    bool twice = strcmp(fault->space, "freed") == 0;
    if (twice || strcmp(fault->space, "heap") == 0) {
        f.type = twice ? REPORT_DOUBLE_FREE : REPORT_BAD_FREE;
        f.access = REPORT_NO_ACCESS;
    } else if (type == REPORT_MISALIGNED) {
        f.type = type;
    } else if (type == REPORT_KERNEL_FAULT) {
        f.type = type;
        f.access = fault->bytes ? f.access : REPORT_NO_ACCESS;
        f.note = strcmp(fault->space, "call") == 0
                     ? "invalid program counter: the kernel calls this address, where the device has no "
                       "function that fits"
                     : driver_result_text((CUresult)fault->result);
    } else if (strcmp(fault->space, "shared") == 0) {
        f.type = REPORT_SHARED_OVERFLOW;
    } else if (strcmp(fault->space, "local") == 0 || strcmp(fault->space, "stack") == 0) {
        f.type = REPORT_LOCAL_OVERFLOW;
        if (strcmp(fault->space, "stack") == 0)
            f.note = "the stack of the thread is full: the recursion is too deep, or the limit that "
                     "cudaDeviceSetLimit(cudaLimitStackSize, BYTES) sets is too small";
    } else if (fault->address < NULL_PAGE) {
        f.type = REPORT_NULL_DEREFERENCE;
    } else {
        unsigned section = epoch_enter();
        blame(&f);
        epoch_leave(section);
    }
    char name[400], note[450];
    bool called = strcmp(fault->space, "call") == 0;
    if ((called || (f.type == REPORT_WILD_ACCESS && !f.nbuffers)) &&
        host_memory_name(f.address, name, sizeof name)) {
        snprintf(note, sizeof note, "the address is host memory: %s", name);
        f.more[0] = note;
    }
    guard_report_finding(&f);
}

// In pages mode accesses behind a buffer, and to freed memory, end in a fault, but the driver does not reveal
// the address: lists the buffers freed and allocated last.
static void add_candidates(struct guard_finding *f, char *note, size_t size)
{
    unsigned freed = track_last_freed(f->buffers, GUARD_REPORT_BUFFERS / 2);
    unsigned made = track_last_made(f->buffers + freed, GUARD_REPORT_BUFFERS - freed);
    size_t used = strlen(note);
    f->nbuffers = freed + made;
    if (f->nbuffers && used < size)
        snprintf(note + used, size - used,
                 "; the buffers listed are the %u freed last and the %u allocated last: the fault may be in "
                 "none of them",
                 freed, made);
}

// Returns whether other processes share a fault with this one: MPS ends all clients of a server that use the
// device, with the same error, which does not say whose kernel it was.
static bool is_shared(void)
{
    int devices = 0, mps = 0;
    if (!guard.real.cuDeviceGetCount || !guard.real.cuDeviceGetAttribute ||
        guard.real.cuDeviceGetCount(&devices))
        return false;
    for (int i = 0; i < devices && !mps; i++)
        if (guard.real.cuDeviceGetAttribute(&mps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, i))
            mps = 0;
    return mps;
}

// A GPU reports only that a fault happened: the kernels launched last may have caused it.
static void report_vague(CUresult r)
{
    const char *names[KERNELS];
    unsigned n = launch_ring_recent(names, KERNELS);
    char note[NOTE];
    size_t used = (size_t)snprintf(note, sizeof note, "%s, which carries no address", driver_result_name(r));
    launch_ring_print(note, sizeof note, used, "; launched last:", names, n);
    struct driver_fault fault = {.result = (int)r};
    bool shared = is_shared();
    bool certain = !shared && launch_ring_is_certain(names, n) && launch_ring_has_all_since(0);
    if (certain)
        snprintf(fault.kernel, sizeof fault.kernel, "%s", names[0]);
    struct guard_finding f = {
        .type = fault_type(r),
        .in_kernel = true,
        .fault = certain ? &fault : NULL,
        .note = note,
    };
    f.more[0] =
        shared ? "the fault may be another program's: one client's ends all clients of an MPS server" : NULL;
    if (kernel_fault_lists_candidates && f.type == REPORT_WILD_ACCESS)
        add_candidates(&f, note, sizeof note);
    guard_report_finding(&f);
}

void kernel_fault_report(CUresult r)
{
    // the process that reported: a fault ends every context of a process, so one report is enough
    static _Atomic(int) reported_in;
    int self = getpid();
    if (!guard.watching || fault_type(r) == REPORT_TYPES ||
        atomic_exchange_explicit(&reported_in, self, memory_order_relaxed) == self)
        return;
    struct driver_fault fault;
    bool exact = guard.real_fault && !guard.real_fault(NULL, &fault);
    enum report_type type = fault_type(exact ? (CUresult)fault.result : r);
    if ((type == REPORT_KERNEL_FAULT || type == REPORT_WILD_ACCESS) && kernel_fault_is_explained &&
        kernel_fault_is_explained(type == REPORT_WILD_ACCESS, exact ? &fault : NULL))
        return;
    if (exact)
        report_exact(&fault);
    else
        report_vague(r);
}

void kernel_fault_report_skipped(void)
{
    struct driver_fault fault;
    while (!guard.real_skipped(&fault))
        report_exact(&fault);
}
