// SPDX-License-Identifier: MIT
// Options inside a watched process: `moat` puts them into a variable, and each of moat's libraries reads it once.
#ifndef MOAT_BASE_OPTION_VARIABLE_H
#define MOAT_BASE_OPTION_VARIABLE_H

#include "base/option.h"

#define OPTION_VARIABLE "MOAT_OPTIONS"

// Fills options with defaults and what text says, the variable's value, which may be NULL. A value that is wrong, or
// an option that there is not, becomes one line, without its newline, for complain (NULL: nobody wants to know), and the
// default holds. 0 or -ENOMEM: then options holds nothing. option_free(set) ends the life of strings in options.
int option_read_variable(struct option_set *set, struct options *options, const char *text,
                         void (*complain)(void *ctx, const char *line), void *ctx);

#endif
