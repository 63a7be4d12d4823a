// SPDX-License-Identifier: MIT
// Writes an indented JSON document of any depth, one call per member. Keys are NULL for elements of arrays.
#ifndef MOAT_REPORT_JSON_DOC_H
#define MOAT_REPORT_JSON_DOC_H

#include <stdbool.h>

#include "base/out.h"

struct json_doc {
    struct out *o;
    unsigned depth;
    bool comma;  // before the next member
};

void json_doc_open(struct json_doc *d, const char *key, char bracket);  // '{' or '['
void json_doc_close(struct json_doc *d, char bracket);                  // '}' or ']'
void json_doc_text(struct json_doc *d, const char *key, const char *text);
void json_doc_str(struct json_doc *d, const char *key, struct str text);  // any bytes
void json_doc_int(struct json_doc *d, const char *key, int64_t v);
void json_doc_bool(struct json_doc *d, const char *key, bool v);

#endif
