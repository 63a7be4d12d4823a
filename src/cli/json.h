// SPDX-License-Identifier: MIT
// What commands that print JSON share, over cJSON.
#ifndef MOAT_CLI_JSON_H
#define MOAT_CLI_JSON_H

#include <cjson/cJSON.h>

#include "base/out.h"
#include "base/str.h"

// A string of bytes that may be anything: what is not ASCII becomes '?', for JSON must be UTF-8.
cJSON *json_str(struct str s);

// Prints root and a newline and deletes it. Returns the exit status.
int json_print(cJSON *root, struct out *o);

#endif
