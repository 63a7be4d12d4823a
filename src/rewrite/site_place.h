// SPDX-License-Identifier: MIT
// The place of an access in rewritten code, as reports show it.
#ifndef MOAT_REWRITE_SITE_PLACE_H
#define MOAT_REWRITE_SITE_PLACE_H

#include "driver/driver_fault.h"
#include "pass/pass_check.h"

// Fills in the kernel, its instruction and where that stands in the source. kernel: NULL if unknown; then the
// function that the site is in.
void site_place(struct driver_fault *f, const struct pass_check_site *s, const char *kernel);

#endif
