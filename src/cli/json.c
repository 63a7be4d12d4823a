// SPDX-License-Identifier: MIT
#include "cli/json.h"

#include "base/mem.h"
#include "cli/cli.h"

cJSON *json_str(struct str s)
{
    char *text = mem_alloc(s.len + 1);
    if (!text)
        return NULL;
    for (size_t i = 0; i < s.len; i++)
        text[i] = s.ptr[i] > 0 ? s.ptr[i] : '?';
    text[s.len] = 0;
    cJSON *j = cJSON_CreateString(text);
    mem_free(text);
    return j;
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
