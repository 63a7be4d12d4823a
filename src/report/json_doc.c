// SPDX-License-Identifier: MIT
#include "report/json_doc.h"

#include "report/utf8.h"

static void write_str(struct out *o, struct str s)
{
    out_char(o, '"');
    while (s.len) {
        size_t n = utf8_length(s);
        unsigned char c = (unsigned char)s.ptr[0];
        if (c == '"' || c == '\\') {
            out_char(o, '\\');
            out_char(o, (char)c);
        } else if (c < 0x20) {
            out_lit(o, "\\u00");
            out_hex(o, c, 2);
        } else {
            out_bytes(o, n ? s.ptr : "?", n ? n : 1);
        }
        s = str_skip(s, n ? n : 1);
    }
    out_char(o, '"');
}

static void start_member(struct json_doc *d, const char *key)
{
    if (d->comma)
        out_char(d->o, ',');
    if (d->depth)
        out_char(d->o, '\n');
    for (unsigned i = 0; i < d->depth; i++)
        out_lit(d->o, "  ");
    if (key) {
        write_str(d->o, str_from(key));
        out_lit(d->o, ": ");
    }
    d->comma = true;
}

void json_doc_open(struct json_doc *d, const char *key, char bracket)
{
    start_member(d, key);
    out_char(d->o, bracket);
    d->depth++;
    d->comma = false;
}

void json_doc_close(struct json_doc *d, char bracket)
{
    d->depth--;
    if (d->comma) {
        out_char(d->o, '\n');
        for (unsigned i = 0; i < d->depth; i++)
            out_lit(d->o, "  ");
    }
    out_char(d->o, bracket);
    d->comma = true;
}

void json_doc_str(struct json_doc *d, const char *key, struct str text)
{
    start_member(d, key);
    write_str(d->o, text);
}

void json_doc_text(struct json_doc *d, const char *key, const char *text)
{
    json_doc_str(d, key, str_from(text));
}

void json_doc_int(struct json_doc *d, const char *key, int64_t v)
{
    start_member(d, key);
    out_i64(d->o, v);
}

void json_doc_bool(struct json_doc *d, const char *key, bool v)
{
    start_member(d, key);
    out_cstr(d->o, v ? "true" : "false");
}
