// SPDX-License-Identifier: MIT
// fence_text PASS FILE.ptx: prints the text that a GPU's driver gets for a module under --mode=fence, without
// the functions that it is linked with. Their text: fence_text --functions.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "kfence/kfence.h"
#include "pass/pass.h"

static char *read_all(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    long size = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
    char *text = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (text && (fseek(f, 0, SEEK_SET) || fread(text, 1, (size_t)size, f) != (size_t)size)) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    *len = text ? (size_t)size : 0;
    return text;
}

int main(int argc, char **argv)
{
    struct diag_sink sink = {0};
    struct pass_result *r = NULL;
    size_t len = 0;
    if (argc == 2 && !strcmp(argv[1], "--functions")) {
        printf(".version 7.8\n.target sm_90\n.address_size 64\n%s", kfence_functions_ptx);
        return 0;
    }
    char *text = argc == 3 ? read_all(argv[2], &len) : NULL;
    if (!text) {
        fprintf(stderr, "usage: fence_text PASS FILE.ptx | fence_text --functions\n");
        return 2;
    }
    const struct pass_request request = {.passes = argv[1], .linked = true};
    int err = pass_rewrite(argv[2], (struct str){text, len}, &request, &sink, &r);
    if (!err)
        fwrite(r->text.ptr, 1, r->text.len, stdout);
    else
        fprintf(stderr, "fence_text: %s: error %d\n", argv[2], err);
    pass_result_free(r);
    free(text);
    return err != 0;
}
