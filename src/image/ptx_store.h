// SPDX-License-Identifier: MIT
// The PTX that machine code was compiled from, on disk, for compilers that are programs of their own, such as
// ptxas, and have ended when the machine code is loaded. The pairs are entries of the cache (cache.h) and are
// found by the machine code. Before ptx_store_use, and where there is no cache, nothing is kept and nothing
// found.
#ifndef MOAT_IMAGE_PTX_STORE_H
#define MOAT_IMAGE_PTX_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "image/cache.h"

// Sets the cache's folder and size, as for cache_open, which is called when the store is first needed. Called
// before other threads may use the store. The folder's name is copied.
void ptx_store_use(const char *folder, uint64_t size);
bool ptx_store_is_used(void);

int ptx_store_put(struct str code, struct str ptx);  // 0, -EBADF if there is no cache, or as cache_put

// After true, the text is found->image, and the caller must call cache_entry_free.
bool ptx_store_get(struct str code, struct cache_entry *found);

#endif
