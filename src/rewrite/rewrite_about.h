// SPDX-License-Identifier: MIT
// Serialises what is known about a rewritten image: its parts, or why there is none. Also remembers images
// that links made of rewritten texts, because the program passes them back to be loaded.
#ifndef MOAT_REWRITE_REWRITE_ABOUT_H
#define MOAT_REWRITE_REWRITE_ABOUT_H

#include "rewrite/rewrite.h"

void rewrite_about_parts(struct pass_result *const *parts, unsigned nparts, struct out *to);
void rewrite_about_left(enum rewrite_why why, const char *detail, struct out *to);

// Reads either back into r: its parts, or `why` and `detail`. Returns 0, -EINVAL or -ENOMEM.
int rewrite_about_read(struct str about, struct rewrite *r);

// Remembers an image and what it was made of; both are copied or hashed.
void rewrite_about_remember(const void *image, size_t size, struct str about);
// Returns false if the image is unknown, or as rewrite_about_read failed. Otherwise fills r as
// rewrite_about_read does.
bool rewrite_about_recall(const void *image, struct rewrite *r);

void rewrite_about_after_fork(void);

#endif
