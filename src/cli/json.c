// SPDX-License-Identifier: MIT
#include "cli/json.h"

#include "base/mem.h"
#include "cli/ptx_file.h"
#include "report/utf8.h"

int json_check_format(const struct options *options)
{
    if (options->format == OPTION_FORMAT_TEXT || options->format == OPTION_FORMAT_JSON)
        return CLI_OK;
    return cli_error("this command prints text or json; sarif and xml are for reports");
}

cJSON *json_str(struct str s)
{
    char *text = mem_alloc(s.len + 1);
    if (!text)
        return NULL;
    for (size_t i = 0; i < s.len;) {
        // A NUL would end the string.
        size_t n = s.ptr[i] ? utf8_length(str_skip(s, i)) : 0;
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
