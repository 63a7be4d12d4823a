// SPDX-License-Identifier: MIT
// What there is to know of a rewritten image, as text: its parts, or why there is none. And images that links made of
// rewritten texts, which come back to be loaded.
#ifndef MOAT_REWRITE_REWRITE_ABOUT_H
#define MOAT_REWRITE_REWRITE_ABOUT_H

#include "rewrite/rewrite.h"

void rewrite_about_parts(struct pass_result *const *parts, unsigned nparts, struct out *to);
void rewrite_about_left(enum rewrite_why why, const char *detail, struct out *to);

// The same back into r: its parts, or why and detail. 0, -EINVAL or -ENOMEM.
int rewrite_about_read(struct str about, struct rewrite *r);

// An image, and what it was made of: copied.
void rewrite_about_remember(const void *image, size_t size, struct str about);
// False: no such image. Else as rewrite_about_read.
bool rewrite_about_recall(const void *image, struct rewrite *r);

void rewrite_about_after_fork(void);

#endif
