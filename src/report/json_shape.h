// SPDX-License-Identifier: MIT
// The shape of each event's JSON: the one table that writer (json_out.c) and reader (json_in.c) share.
// doc/reports.md says what the keys mean.
#ifndef MOAT_REPORT_JSON_SHAPE_H
#define MOAT_REPORT_JSON_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

// Kinds of values, with the C type of the field at `offset`.
enum json_kind {
    JSON_TEXT,     // const char *; left out if NULL
    JSON_INT,      // int
    JSON_U32,      // uint32_t
    JSON_U64,      // uint64_t
    JSON_ADDRESS,  // uint64_t, as a string: "0x1f"
    JSON_BOOL,     // bool
    JSON_DIM3,     // uint32_t[3]
    JSON_TYPE,     // enum report_type, as its name
    JSON_ACCESS,   // enum report_access: "read" or "write"; left out if there is none
    JSON_BYTES,    // struct report_bytes: two hex digits for each byte that was touched, ".." for others
    JSON_TEXTS,    // const char *const *, `count` of them
    JSON_OBJECT,   // a struct of `shape` that begins at `offset`
    JSON_ARRAY,    // a pointer to `count` structs of `shape`
};

struct json_field {
    const char *key;
    enum json_kind kind;
    bool always;  // written even if it is 0; else a 0, like an empty array or object, is left out
    size_t offset;
    size_t flag;   // not 0: offset of a bool that says whether the field is present
    size_t count;  // of JSON_TEXTS and JSON_ARRAY: offset of their uint32_t count
    const struct json_shape *shape;
};

struct json_shape {
    const struct json_field *fields;  // by importance: the last are left out first
    size_t nfields, size;             // size of the struct
};

// The shapes, by enum report_event.
struct json_event {
    const char *name;
    size_t offset;  // of its struct in struct report_line
    struct json_shape shape;
};
#define JSON_SHAPE_EVENTS 8
extern const struct json_event json_shape_events[JSON_SHAPE_EVENTS];
extern const char *const json_shape_access[3];  // by enum report_access

#endif
