// SPDX-License-Identifier: MIT
// Replaces image/elf_image.c in libmoat.so, which is loaded into any program and must not bring libelf with
// it: a program may have its own. Objects and archives are searched for fatbins anywhere in them; machine
// code is not inspected.
#include <errno.h>

#include "image/image_internal.h"

int elf_image_walk(struct image *im, const struct image_place *p)
{
    return fatbin_search(im, p);
}

int elf_image_archive(struct image *im)
{
    return fatbin_search(im, &(struct image_place){0, im->len, {"", 0}});
}

int elf_image_kernels(struct str cubin, image_visit *visit, void *ctx, const char **why)
{
    *why = "machine code is not read here";
    return -EINVAL;
}
