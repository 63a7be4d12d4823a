// SPDX-License-Identifier: MIT
// What commands that print JSON share, over cJSON.
#ifndef MOAT_CLI_JSON_H
#define MOAT_CLI_JSON_H

#include <cjson/cJSON.h>

#include "base/option.h"
#include "base/out.h"
#include "base/str.h"
#include "image/image.h"

// CLI_OK, or CLI_BAD where the format is one that only reports have.
int json_check_format(const struct options *options);

// A string of bytes that may be anything: what is not UTF-8 becomes '?', for JSON must be.
cJSON *json_str(struct str s);

// What is said of a module everywhere: its number, kind, architecture and ISA version, null where not known.
cJSON *json_module(unsigned i, const struct image_entry *e);

// Prints root and a newline and deletes it. Returns the exit status.
int json_print(cJSON *root, struct out *o);

#endif
