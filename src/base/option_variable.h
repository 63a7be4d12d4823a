// SPDX-License-Identifier: MIT
// Options inside a watched process: `moat` puts them into an environment variable, and each of moat's
// libraries reads it once.
#ifndef MOAT_BASE_OPTION_VARIABLE_H
#define MOAT_BASE_OPTION_VARIABLE_H

#include "base/option.h"

#define OPTION_VARIABLE "MOAT_OPTIONS"

// Fills options with the defaults and with the settings in text, the variable's value, which may be NULL. For
// a wrong value or an unknown option, complain (may be NULL) gets one line without its newline, and the
// default holds. Returns 0, or -ENOMEM: then options holds nothing. Strings in options live until
// option_free(set).
int option_read_variable(struct option_set *set, struct options *options, const char *text,
                         void (*complain)(void *ctx, const char *line), void *ctx);

#endif
