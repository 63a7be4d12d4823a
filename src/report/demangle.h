// SPDX-License-Identifier: MIT
// Demangled names of functions.
#ifndef MOAT_REPORT_DEMANGLE_H
#define MOAT_REPORT_DEMANGLE_H

#include "base/arena.h"

// A renderer's source of demangled names. Inside a watched process there is none: names stay as they are.
struct demangle {
    const char *(*find)(void *context, const char *name);  // valid as long as the context
    void *context;
};

static inline const char *demangle_name(const struct demangle *d, const char *name)
{
    return d && d->find && name ? d->find(d->context, name) : name;
}

// Returns a sentence with its mangled names replaced, in `buffer`, truncated to its size; the text itself if
// there are none.
const char *demangle_text(const struct demangle *d, const char *text, char *buffer, size_t size);

// The C++ library's own demangler, loaded for the first mangled name; where there is none, names stay
// mangled. For the command only. It never fails: if out of memory, names stay as they are.
struct demangler;
struct demangler *demangle_new(void);  // NULL if out of memory; demangle_with(NULL) is valid
void demangle_free(struct demangler *d);
struct demangle demangle_with(struct demangler *d);
struct demangle demangle_brief_with(struct demangler *d);  // brief_name of each

#endif
