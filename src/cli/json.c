// SPDX-License-Identifier: MIT
#include "cli/json.h"

#include "base/mem.h"
#include "cli/ptx_file.h"

int json_check_format(const struct options *options)
{
    if (options->format == OPTION_FORMAT_TEXT || options->format == OPTION_FORMAT_JSON)
        return CLI_OK;
    return cli_error("this command prints text or json; the format chosen is one of reports");
}

// Bytes of the UTF-8 character that s begins with, 0 if it begins with none.
static size_t utf8_length(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    if (n > s.len || p[0] == 0)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool surrogate = (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF4 && p[1] > 0x8F);
    return overlong || surrogate ? 0 : n;
}

cJSON *json_str(struct str s)
{
    char *text = mem_alloc(s.len + 1);
    if (!text)
        return NULL;
    for (size_t i = 0; i < s.len;) {
        size_t n = utf8_length(str_skip(s, i));
        memcpy(text + i, n ? s.ptr + i : "?", n ? n : 1);
        i += n ? n : 1;
    }
    text[s.len] = 0;
    cJSON *j = cJSON_CreateString(text);
    mem_free(text);
    return j;
}

static cJSON *json_known(const char *text)
{
    return strcmp(text, "-") == 0 ? cJSON_CreateNull() : cJSON_CreateString(text);
}

cJSON *json_module(unsigned i, const struct image_entry *e)
{
    char arch[16], version[16];
    ptx_file_arch(e, arch);
    ptx_file_version(e, version);
    cJSON *row = cJSON_CreateObject();
    cJSON_AddNumberToObject(row, "module", i + 1);
    cJSON_AddStringToObject(row, "kind", ptx_file_kind(e));
    cJSON_AddItemToObject(row, "arch", json_known(arch));
    cJSON_AddItemToObject(row, "version", json_known(version));
    return row;
}

int json_print(cJSON *root, struct out *o)
{
    char *text = cJSON_Print(root);
    int status = CLI_OK;
    if (text) {
        out_cstr(o, text);
        out_char(o, '\n');
    } else {
        status = cli_error("out of memory");
    }
    cJSON_free(text);
    cJSON_Delete(root);
    return status;
}
