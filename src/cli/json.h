// SPDX-License-Identifier: MIT
// Functions for commands that print JSON, over cJSON.
#ifndef MOAT_CLI_JSON_H
#define MOAT_CLI_JSON_H

#include <cjson/cJSON.h>

#include "base/option.h"
#include "base/out.h"
#include "base/str.h"
#include "image/image.h"

// Returns CLI_OK, or CLI_BAD for a format that only reports have.
int json_check_format(const struct options *options);

// Makes a string of any bytes: those that are not UTF-8, which JSON requires, become '?'.
cJSON *json_str(struct str s);

// Makes the object that describes a module: its number, kind, architecture and ISA version, null where not
// known.
cJSON *json_module(unsigned i, const struct image_entry *e);

// Prints root and a newline, and deletes root. Returns the exit status.
int json_print(cJSON *root, struct out *o);

#endif
