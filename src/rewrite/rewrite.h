// SPDX-License-Identifier: MIT
// Images on their way to the driver, in modes that rewrite kernels:
//
//   image ──▶ the PTX for this device ──▶ passes ──▶ the driver's compiler ──▶ machine code ──▶ the driver
//                     └──────────────── cache: content, passes, architecture, driver ──────────────┘
//
// The modes decide which images are rewritten, and by which passes (rewrite_plan.h).
//
// An image is rewritten when its module is loaded, not when one of its kernels is first requested: handles of
// modules and libraries are the driver's own, so there must be something behind them. For programs on the
// CUDA runtime that is late enough: it loads a library when one of its kernels is first needed.
//
// If anything fails, the program's own image is loaded and counted with the reason (stats.def).
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
    // held until all modes are informed; NULL: out of memory, it is not in the registry
    struct modules_row *row;
    struct pass_result *const *parts;
    unsigned nparts;
};

// The client decides which images are rewritten, and is informed of the outcome.
struct rewrite_client {
    void (*plan)(const struct rewrite_origin *origin, struct rewrite_plan *plan);
    void (*input_left)(const struct rewrite_origin *origin);  // an input of a link is linked unchanged
    void (*loaded)(const struct rewrite_module *module);
    // The plan wanted passes, but the program's own image was loaded.
    void (*left)(const struct rewrite *r);
};

extern bool rewrite_on;  // set once, by rewrite_start

bool rewrite_possible(void);  // the driver has a compiler
void rewrite_start(const struct rewrite_client *client);

// Why the program's own image is loaded.
enum rewrite_why {
    REWRITE_OFF,           // no mode rewrites it, or the driver will refuse the call anyway
    REWRITE_MACHINE_CODE,  // it contains no PTX
    REWRITE_LAUNCHES,      // it uses device-side launches
    REWRITE_FAILED,        // moat could not rewrite it
    REWRITE_REFUSED,       // the driver refused the rewritten image
    REWRITE_WHYS
};

// The program's options for the driver's compiler.
struct rewrite_options {
    unsigned count;
    CUjit_option *options;
    void **values;
    bool together;  // variants of kernels must be in one module with the program's own
};

struct rewrite_later;

struct rewrite {
    const void *image;  // to load instead; NULL: `why` gives the reason, or `own` is true
    bool own;           // the program's own image is to be loaded, by the program's own call
    enum rewrite_why why;
    char detail[160];
    struct rewrite_plan plan;
    bool library;
    unsigned registers;          // not 0: the image is PTX, and must be compiled with at most this many
    struct pass_result **parts;  // the results of the passes
    unsigned nparts;
    struct rewrite_later *later;  // variants are compiled when they are wanted; NULL: the image has them
    // What holds the image.
    char *program;  // the program's own text, with a NUL
    struct pass_result *text;
    CUlinkState link;
    struct cache_entry entry;
    bool cached;
};

// Rewrite an image in memory, of which only the address is known, or in a file. `library`: the image must
// work on every device. If they return true, there is an image to load instead, and rewrite_end must follow
// with the driver's result and the handle it returned. If they or rewrite_end return false, the program's own
// image must be loaded, and rewrite_left must follow.
bool rewrite_memory(struct rewrite *r, const void *image, bool library,
                    const struct rewrite_options *options);
bool rewrite_file(struct rewrite *r, const char *path, bool library, const struct rewrite_options *options);
bool rewrite_end(struct rewrite *r, CUresult result, const void *handle, bool library);
// Returns true if variants could not be compiled later for a module that was loaded, because a variable's
// address is not to be had: it was unloaded, and the image must be rewritten once more, with
// options->together.
// Call it before rewrite_end.
bool rewrite_again(struct rewrite *r, struct rewrite_options *options, CUresult result, const void *handle,
                   bool library);
void rewrite_left(const struct rewrite *r, CUresult result);

// Rewrites an input of a link, bytes or a file, into texts, each with the result of its passes. If it returns
// false, r->why gives the reason. rewrite_texts_free must follow in either case.
struct rewrite_texts {
    unsigned count;
    struct pass_result **parts;
};
bool rewrite_input(struct rewrite *r, struct rewrite_texts *t, const void *bytes, size_t size,
                   const char *path);
void rewrite_texts_free(struct rewrite_texts *t);
// Informs the client of an input that is linked unchanged.
void rewrite_input_left(const void *bytes, size_t size, const char *path);

#endif
