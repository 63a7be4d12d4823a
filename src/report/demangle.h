// SPDX-License-Identifier: MIT
// Names of functions as their authors wrote them.
#ifndef MOAT_REPORT_DEMANGLE_H
#define MOAT_REPORT_DEMANGLE_H

#include "base/arena.h"

// How a renderer asks for names. Inside a watched process there is none: names stay as they are.
struct demangle {
    const char *(*find)(void *context, const char *name);  // valid as long as the context
    void *context;
};

static inline const char *demangle_name(const struct demangle *d, const char *name)
{
    return d && d->find && name ? d->find(d->context, name) : name;
}

// A sentence with the mangled names in it replaced, in `buffer`, cut where that ends; the text itself if there are none.
const char *demangle_text(const struct demangle *d, const char *text, char *buffer, size_t size);

// The C++ library's own demangler, loaded when the first mangled name comes; where there is none, names stay mangled.
// For the command only. Never fails: without memory too, names stay as they are.
struct demangler;
struct demangler *demangle_new(void);  // NULL without memory: demangle_with(NULL) is fine
void demangle_free(struct demangler *d);
struct demangle demangle_with(struct demangler *d);

#endif
