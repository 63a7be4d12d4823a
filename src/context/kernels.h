// SPDX-License-Identifier: MIT
// What is known about each kernel, by its handle: a CUfunction or a CUkernel.
//
// A launch finds its kernel by one lookup in a hash table, without a lock or an epoch section, because an
// entry, once made, stays for the life of the process and keeps its handle. When a handle is reused for
// another kernel, its entry is refilled in place. Members are atomic, each by itself: a thread that launches
// a kernel while its module is being unloaded may see some of the new values.
#ifndef MOAT_CONTEXT_KERNELS_H
#define MOAT_CONTEXT_KERNELS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

enum {
    KERNELS_SLOTS =
        // a power of two; three quarters of the slots can be filled, and later handles are unknown
    1 << 18,
    KERNELS_DATA = 4,
    KERNELS_PARAMETERS = 1024,  // a kernel with more has no layout
    KERNELS_OLD_BYTES = 4096,   // bytes of parameters that cuParamSet* can set
};

struct kernels_parameter {
    uint16_t offset, size;
};

// The layout of the parameters that the program knows. Equal layouts are kept once, for the life of the
// process.
struct kernels_layout {
    uint32_t count;
    uint32_t size;  // where the last parameter ends
    struct kernels_parameter parameter[];
};

// What cuFuncSet* and cuParamSet* have set in a function, for cuLaunch and its kin. As with those calls
// themselves, threads that share a function must synchronise.
struct kernels_old {
    unsigned block[3], shared, size;
    char bytes[KERNELS_OLD_BYTES];
};

enum kernels_kind { KERNELS_UNKNOWN, KERNELS_FUNCTION, KERNELS_KERNEL };

// Members are read with acquire by the functions below; the releases in kernels.c are the partners. `data`
// belongs to the modes.
struct kernel {
    const void *handle;
    _Atomic(const char *) name;   // kept by names.h; NULL: unknown
    _Atomic(const void *) owner;  // a CUmodule or a CUlibrary; NULL: unknown, or unloaded
    _Atomic enum kernels_kind kind;
    _Atomic uint32_t hidden;                        // how many of the last parameters moat has added
    _Atomic(const struct kernels_layout *) layout;  // NULL: not queried yet
    _Atomic(const struct kernel *) own;             // the program's kernel that this one replaces; NULL: none
    _Atomic(struct kernels_old *) old;              // NULL: nothing was set
    _Atomic(void *) data[KERNELS_DATA];             // indexed by what kernels_take_number returned
    _Atomic bool ending;  // the driver may already have given the handle to another kernel
    // Protected by the lock of kernels.c.
    struct kernel *next;  // in the owner's bucket
    uint64_t serial;      // kernels found before this one
    CUcontext context;    // with which a function ends, never a green one; NULL: unknown, or a CUkernel
};

struct kernels_slot {
    _Atomic(struct kernel *) kernel;
};
extern _Atomic(struct kernels_slot *) kernels_slots;  // NULL: no kernel is known

static inline uint32_t kernels_hash(const void *handle)
{
    return (uint32_t)((uintptr_t)handle * 0x9e3779b97f4a7c15u >> 46) & (KERNELS_SLOTS - 1);
}

// Returns NULL if the handle is unknown. Wait-free.
static inline struct kernel *kernels_find(const void *handle)
{
    // Acquire, both: pair with the releases in kernels.c, after the table and the entry were filled.
    struct kernels_slot *slots = atomic_load_explicit(&kernels_slots, memory_order_acquire);
    for (uint32_t i = kernels_hash(handle); slots; i = (i + 1) & (KERNELS_SLOTS - 1)) {
        struct kernel *k = atomic_load_explicit(&slots[i].kernel, memory_order_acquire);
        if (!k || k->handle == handle)
            return k;
    }
    return NULL;
}

// Records that the program got this handle. If the handle was another kernel's, or may have been since the
// owner or the context of that one ended, all that was known about that one is cleared. A name or an owner of
// NULL leaves the known one.
void kernels_found(const void *handle, enum kernels_kind kind, const void *owner, const char *name);
// Returns the entry of a handle; makes one if there is none. Returns NULL if there is no room.
struct kernel *kernels_get(const void *handle);
// Records that the driver is about to unload a module or library, or to end a context, or (ends is false)
// that it did not. A kernel that is found from now on under the handle of one of theirs may be a new one,
// whose name and owner can be the former one's.
void kernels_owner_ends(const void *owner, bool ends);
void kernels_context_ends(CUcontext context, bool ends);
// Returns the context that a function ends with, never a green one; NULL: unknown, or a CUkernel.
CUcontext kernels_context(const void *handle);
// Returns how many kernels were found so far. Taken before the driver unloads a module or library, for
// kernels_owner_gone.
uint64_t kernels_found_so_far(void);
// Clears the kernels of a module or library that was unloaded, if they were found before `before`; their
// names stay, for late reports. Kernels found later belong to a new owner that got the same handle.
void kernels_owner_gone(const void *owner, uint64_t before);

const char *kernels_name(const void *handle);  // of the program's kernel that it stands for; NULL: unknown

// Returns a kernel's name without the prefix, __moat_WORD_, of a variant that moat has added.
const char *kernels_plain_name(const char *name);

// Returns the layout of the parameters that the program knows; NULL if unknown. The driver is queried once,
// and can answer since CUDA 12.4.
const struct kernels_layout *kernels_layout(struct kernel *k);
// Sets the layout, which a mode knows from the kernel's PTX, so that the driver is not queried. Returns false
// if there is no room.
bool kernels_set_layout(struct kernel *k, const struct kernels_parameter *parameters, uint32_t count);
// Records that the kernel was rewritten: its last `count` parameters are not the program's.
void kernels_hide(struct kernel *k, uint32_t count);

// Records that `instead` is launched where the program launches `own`; the program never sees `instead`. A
// kernel stands for one other only.
void kernels_stands_for(struct kernel *instead, const struct kernel *own);
// Returns the kernel that the program knows for this one: usually the same.
static inline const struct kernel *kernels_own(const struct kernel *k)
{
    // Acquire: pairs with the release in kernels_stands_for.
    const struct kernel *own = k ? atomic_load_explicit(&k->own, memory_order_acquire) : NULL;
    return own ? own : k;
}

// Returns what cuFuncSet* and cuParamSet* have set; makes it if there is none. Returns NULL if there is no
// room.
struct kernels_old *kernels_old(struct kernel *k);

// Called once by each mode that keeps data with kernels. Returns an index into `data`, or -1 if all are
// taken. The data is cleared when the handle is reused for another kernel, before modes are informed of that
// one, and when its owner is unloaded, after modes are informed.
int kernels_take_number(void);

void kernels_after_fork(void);

#endif
