// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_runtime.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/guard.h"

enum { PATH = 4096 };

CUresult rewrite_runtime_add(CUlinkState link, const struct rewrite_source *s, struct diag_sink *sink)
{
    struct image_buffer buffer = {0};
    struct str code;
    CUresult r = CUDA_SUCCESS;
    for (unsigned i = 0; !r && i < s->ncodes; i++)
        r = rewrite_source_code(s, i, sink, &buffer, &code)
                ? CUDA_ERROR_INVALID_IMAGE
                : guard.real.cuLinkAddData_v2(link, CU_JIT_INPUT_CUBIN, (void *)code.ptr, code.len, "library",
                                              0, NULL, NULL);
    image_buffer_free(&buffer);
    return r;
}

// --- installed toolkits ------------------------------------------------------------------------------------

struct place {
    char *path;
    size_t size;
};

static bool is_in(const struct place *p, const char *folder, size_t len, const char *below)
{
    int n = snprintf(p->path, p->size, "%.*s%s/libcudadevrt.a", (int)len, folder, below);
    return n > 0 && (size_t)n < p->size && !access(p->path, R_OK);
}

static int look_beside(struct dl_phdr_info *info, size_t size, void *argument)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    return slash && strncmp(slash + 1, "libcudart.so", 12) == 0 &&
           is_in(argument, info->dlpi_name, (size_t)(slash - info->dlpi_name), "");
}

bool rewrite_runtime_find(char *path, size_t size)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    struct place p = {path, size};
    for (unsigned i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *home = getenv(variables[i]);
        if (home && *home && is_in(&p, home, strlen(home), "/lib64"))
            return true;
    }
    if (dl_iterate_phdr(look_beside, &p))
        return true;
    static const char usual[] = "/usr/local/cuda";
    return is_in(&p, usual, sizeof usual - 1, "/lib64");
}

CUresult rewrite_runtime_add_installed(CUlinkState link)
{
    char path[PATH];
    if (!guard.real.cuLinkAddFile_v2 || !rewrite_runtime_find(path, sizeof path))
        return CUDA_SUCCESS;
    return guard.real.cuLinkAddFile_v2(link, CU_JIT_INPUT_LIBRARY, path, 0, NULL, NULL);
}
