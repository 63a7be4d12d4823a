// SPDX-License-Identifier: MIT
// What is known of each kernel, by its handle: a CUfunction or a CUkernel.
//
// A launch finds its kernel by one look into a hash table: no lock, no epoch section, for an entry, once
// made, stays for the life of the process and keeps its handle. When a handle comes again as another
// kernel's, its entry is filled anew in place. Members are atomic, each by itself: whoever launches a kernel
// while its module is being unloaded may see some of the new ones.
#ifndef MOAT_CONTEXT_KERNELS_H
#define MOAT_CONTEXT_KERNELS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

enum {
    KERNELS_SLOTS =
        1 << 18,  // a power of two; three quarters of them can be filled, and later handles are not known
    KERNELS_DATA = 4,
    KERNELS_PARAMETERS = 1024,  // a kernel with more has no layout
    KERNELS_OLD_BYTES = 4096,   // of parameters that cuParamSet* can set
};

struct kernels_parameter {
    uint16_t offset, size;
};

// Of the parameters that the program knows. Layouts are kept once and stay for the life of the process.
struct kernels_layout {
    uint32_t count;
    uint32_t size;  // where the last one ends
    struct kernels_parameter parameter[];
};

// What cuFuncSet* and cuParamSet* have set in a function, for cuLaunch and its kin. As with those calls
// themselves, threads that share a function are on their own.
struct kernels_old {
    unsigned block[3], shared, size;
    char bytes[KERNELS_OLD_BYTES];
};

enum kernels_kind { KERNELS_UNKNOWN, KERNELS_FUNCTION, KERNELS_KERNEL };

// Read with acquire, whose partner are the releases in kernels.c, by the functions below; `data` is the
// modes' own.
struct kernel {
    const void *handle;
    _Atomic(const char *) name;   // of names.h; NULL: not known
    _Atomic(const void *) owner;  // a CUmodule or a CUlibrary; NULL: not known, or gone
    _Atomic enum kernels_kind kind;
    _Atomic uint32_t hidden;  // the driver's last so many parameters are not the program's
    _Atomic(const struct kernels_layout *) layout;  // NULL: not asked yet
    _Atomic(const struct kernel *) own;  // the program's kernel that this one stands for; NULL: none
    _Atomic(struct kernels_old *) old;   // NULL: nothing was set
    _Atomic(void *) data[KERNELS_DATA];  // by the numbers of kernels_take_number
    struct kernel *next;                 // of the same owner's bucket. Under kernels.c's lock
    uint64_t serial;                     // kernels found before it. Under kernels.c's lock
};

struct kernels_slot {
    _Atomic(struct kernel *) kernel;
};
extern _Atomic(struct kernels_slot *) kernels_slots;  // NULL: none is known

static inline uint32_t kernels_hash(const void *handle)
{
    return (uint32_t)((uintptr_t)handle * 0x9e3779b97f4a7c15u >> 46) & (KERNELS_SLOTS - 1);
}

// NULL: not known. Never waits.
static inline struct kernel *kernels_find(const void *handle)
{
    // Acquire, both: the partners are the releases in kernels.c, after the table and the entry were filled.
    struct kernels_slot *slots = atomic_load_explicit(&kernels_slots, memory_order_acquire);
    for (uint32_t i = kernels_hash(handle); slots; i = (i + 1) & (KERNELS_SLOTS - 1)) {
        struct kernel *k = atomic_load_explicit(&slots[i].kernel, memory_order_acquire);
        if (!k || k->handle == handle)
            return k;
    }
    return NULL;
}

// The program has got this handle. A handle that was another kernel's loses all that was known of it. With a
// name or an owner of NULL what is known of them stays.
void kernels_found(const void *handle, enum kernels_kind kind, const void *owner, const char *name);
// The entry of a handle that nobody has told of is made. NULL: there is no room.
struct kernel *kernels_get(const void *handle);
// How many kernels were found so far, for kernels_owner_gone: taken before the driver unloads a module or
// library.
uint64_t kernels_found_so_far(void);
// The module or library has gone. Of its kernels that were found before, the names stay, for reports that
// come late; those found later are another owner's, which has got the same handle.
void kernels_owner_gone(const void *owner, uint64_t before);

const char *kernels_name(const void *handle);  // of the kernel that it stands for; NULL: not known

// The parameters that the program knows; NULL: not known. The driver is asked once, and can tell since CUDA
// 12.4.
const struct kernels_layout *kernels_layout(struct kernel *k);
// A mode knows it from the kernel's text: the driver is not asked. False: there is no room for it.
bool kernels_set_layout(struct kernel *k, const struct kernels_parameter *parameters, uint32_t count);
// The kernel was rewritten, and its last `count` parameters are not the program's.
void kernels_hide(struct kernel *k, uint32_t count);

// `instead` is launched where the program launches `own`, and is nowhere told to the program. One stands for
// one only.
void kernels_stands_for(struct kernel *instead, const struct kernel *own);
// The kernel that the program knows for this one: often itself.
static inline const struct kernel *kernels_own(const struct kernel *k)
{
    // Acquire pairs with the release in kernels_stands_for.
    const struct kernel *own = k ? atomic_load_explicit(&k->own, memory_order_acquire) : NULL;
    return own ? own : k;
}

// What was set by the oldest calls; made where there is none yet. NULL: there is no room.
struct kernels_old *kernels_old(struct kernel *k);

// Once for each mode that keeps something with kernels: an index into `data`, or -1 if all are taken. What is
// kept there is cleared when the handle becomes another kernel's, before modes are told of that one, and when
// its owner ends, after modes are.
int kernels_take_number(void);

void kernels_after_fork(void);

#endif
