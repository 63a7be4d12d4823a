// SPDX-License-Identifier: MIT
// Frees in the order of a stream that race with a kernel in another one: cuMemFreeAsync of a buffer that a
// kernel is using which has not ended, and which nothing orders before the free.
//
// Found on the host, when the buffer is freed. Only what is certain is an error, so whatever might give the
// two an order counts as one that does (enum mode_order), and so does what is not known:
//
//   the kernel     was proved (check_prove.h), so that all it accesses are the buffers that it was passed, in
//                  memory of the device, and one thread at least accesses the buffer that is freed. It has no
//                  atomics and no volatile loads, with which it could wait for another kernel
//   its stream     has not run empty, and nothing was launched into it since but such kernels
//   since then     no event that was recorded after it was used, and no call was made of which more is not
//                  known than that it has to do with streams, or with the host's knowledge of them
//   the free       is in another stream, which the implicit order of the legacy stream does not order either,
//                  and in which no kernel runs that may wait for another one in its own way
#ifndef MOAT_CHECK_CHECK_RACE_H
#define MOAT_CHECK_CHECK_RACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"
#include "mode/mode.h"

struct launch_call;
struct check_prove;

void check_race_after_fork(void);

// Memory is allocated in the order of a stream: from now on launches are kept.
void check_race_alloc(CUstream stream, bool per_thread);
void check_race_order(enum mode_order what);
// A kernel is about to be launched. plain: its proof, if it covers all that the kernel accesses, and the
// kernel cannot wait for another one; else NULL. parameters: the program's.
// Returns whether launches are looked at: from the first allocation in the order of a stream on.
bool check_race_is_on(void);
void check_race_launch(const struct launch_call *l, const struct check_prove *plain, const void *parameters,
                       size_t size);
// The buffer at base is about to be freed in the order of a stream; it is known as freed already.
void check_race_free(uint64_t base, CUstream stream, bool per_thread);

#endif
