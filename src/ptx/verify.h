// SPDX-License-Identifier: MIT
// Private to the verifier's files.
#ifndef MOAT_PTX_VERIFY_H
#define MOAT_PTX_VERIFY_H

#include <stdarg.h>

#include "ptx/ptx.h"

struct verifier {
    const struct ptx_module *m;
    const struct ptx_func *f;
    const struct ptx_loc *loc;  // the last one before the statement; NULL if there is none
    struct diag_sink *sink;
    unsigned errors, wrong_accesses;
};

// verify.c
void verify_report(struct verifier *v, enum diag_severity severity, uint32_t pos, size_t len, const char *fmt,
                   ...) __attribute__((format(printf, 5, 6)));
void verify_vreport(struct verifier *v, enum diag_severity severity, uint32_t pos, size_t len,
                    const char *fmt, va_list args);
uint32_t verify_place(const struct verifier *v, const char *at);  // offset in the source, PTX_NONE if outside

#define error_at(v, s, ...) verify_report((v), DIAG_ERROR, (s)->pos, (s)->form->name.len, __VA_ARGS__)

// verify_mem.c
void verify_access(struct verifier *v, const struct ptx_stmt *s, const struct ptx_mem *mem);

// verify_var.c
void verify_var(struct verifier *v, const struct ptx_var *var);
void verify_var_signature(struct verifier *v, const struct ptx_func *f);

#endif
