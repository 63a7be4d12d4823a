// SPDX-License-Identifier: MIT
// Whose memory it is that a checked kernel accesses and moat does not know: the driver is asked, on the host,
// when the record of the access is read.
//
// Much may lie there that neither knows: memory that the device's own functions give to kernels (malloc in
// kernels, parameters of kernels that kernels launch, what cooperative launches share), what kernels of
// machine code pass on, host memory on machines whose kernels may access it, memory of a graphics API, which
// is gone without anyone waiting. In a process that has any of that, no such access is called an error.
#ifndef MOAT_CHECK_CHECK_STRAY_H
#define MOAT_CHECK_CHECK_STRAY_H

#include "ring/error_ring.h"

struct context;

enum check_stray {
    CHECK_STRAY_UNKNOWN,
    CHECK_STRAY_DRIVERS,  // the driver knows memory there
    CHECK_STRAY_HOST,     // it is the process's own
    CHECK_STRAY_NOBODYS,  // certain: there is none
    CHECK_STRAYS,
};

// Asks in the context in which the kernel ran.
enum check_stray check_stray_ask(const struct error_ring_record *r, const struct context *ctx);

// From now on kernels may get memory that is unknown to moat and to the driver.
void check_stray_unseen(void);

#endif
