// SPDX-License-Identifier: MIT
// Images on their way to the driver, in modes that rewrite kernels:
//
//   image ──▶ the PTX for this device ──▶ passes ──▶ the driver's compiler ──▶ machine code ──▶ the driver
//                     └──────────────── cache: content, passes, architecture, driver ──────────────┘
//
// Which images are rewritten, and by which passes, the modes say (rewrite_plan.h).
//
// It happens when a module is loaded, not when one of its kernels is first asked for: handles of modules and libraries
// are the driver's own, so there must be something behind them. For programs on the CUDA runtime that is late enough: it
// loads a library when one of its kernels is first needed.
//
// If anything fails the program's own image is loaded, and counted with the reason (stats.def).
#ifndef MOAT_REWRITE_REWRITE_H
#define MOAT_REWRITE_REWRITE_H

#include "driver/driver.h"
#include "image/cache.h"
#include "pass/pass.h"
#include "rewrite/modules.h"
#include "rewrite/rewrite_plan.h"

struct rewrite;

// A module or library that was loaded rewritten.
struct rewrite_module {
    struct modules_row *row;  // held until all were told; NULL: out of memory, it is not in the registry
    struct pass_result *const *parts;
    unsigned nparts;
};

// Who wants images to be rewritten, and learns what became of them.
struct rewrite_client {
    void (*plan)(const struct rewrite_origin *origin, struct rewrite_plan *plan);
    void (*input_left)(const struct rewrite_origin *origin);  // an input of a link that is linked as it is
    void (*loaded)(const struct rewrite_module *module);
    void (*left)(
        const struct rewrite *r);  // the plan wanted something, and the program's own image was loaded
};

extern bool rewrite_on;  // set once, by rewrite_start

bool rewrite_possible(void);  // the driver has a compiler
void rewrite_start(const struct rewrite_client *client);

// Why the program's own image is loaded.
enum rewrite_why {
    REWRITE_OFF,           // no mode rewrites, or the driver will refuse the call anyway
    REWRITE_MACHINE_CODE,  // there is no PTX in it
    REWRITE_LAUNCHES,      // it needs the device's own launches
    REWRITE_FAILED,        // we could not
    REWRITE_REFUSED,       // the driver would not take what we made
    REWRITE_WHYS
};

// The program's options for the driver's compiler.
struct rewrite_options {
    unsigned count;
    CUjit_option *options;
    void **values;
};

struct rewrite {
    const void *image;  // to load instead; NULL: why tells
    enum rewrite_why why;
    char detail[160];
    struct rewrite_plan plan;
    bool library;
    unsigned registers;          // not 0: the image is PTX, and must be compiled with so many at most
    struct pass_result **parts;  // what there is to know of it
    unsigned nparts;
    // Where the image is.
    struct pass_result *text;
    CUlinkState link;
    struct cache_entry entry;
    bool cached;
};

// An image in memory, of which only the address is known, or in a file. `library`: it must do for every device. True:
// there is one to load instead, and rewrite_end must follow with the driver's answer and the handle that it gave; if that
// is false, or this was, the program's own image is to be loaded, and rewrite_left must follow.
bool rewrite_memory(struct rewrite *r, const void *image, bool library,
                    const struct rewrite_options *options);
bool rewrite_file(struct rewrite *r, const char *path, bool library, const struct rewrite_options *options);
bool rewrite_end(struct rewrite *r, CUresult result, const void *handle, bool library);
void rewrite_left(const struct rewrite *r, CUresult result);

// An input of a link, bytes or a file: the texts that stand for it, each with what there is to know of it, or
// r->why. rewrite_texts_free in any case.
struct rewrite_texts {
    unsigned count;
    struct pass_result **parts;
};
bool rewrite_input(struct rewrite *r, struct rewrite_texts *t, const void *bytes, size_t size,
                   const char *path);
void rewrite_texts_free(struct rewrite_texts *t);
// An input that is linked as it is.
void rewrite_input_left(const void *bytes, size_t size, const char *path);

#endif
