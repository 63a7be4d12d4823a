// SPDX-License-Identifier: MIT
// Shares of memory and multiprocessors, by settings of MPS: for all clients of servers that start later, or
// for one program by its environment. MPS takes the smaller one where both are set.
#ifndef MOAT_CLI_MPS_LIMITS_H
#define MOAT_CLI_MPS_LIMITS_H

#include "base/option.h"

// By NVIDIA's manual page, for GPUs of compute capability 7.0 and later. Newer drivers may take more.
enum { MPS_CLIENTS_OF_SERVER = 48 };

// How many GPUs the kernel has made devices for, at least one.
int mps_limits_devices(void);
// Sets the defaults of the control daemon. Returns CLI_OK, or CLI_BAD after a message.
int mps_limits_set(const struct options *options);
// Sets the variables of a program. Returns 0 or a negative code.
int mps_limits_export(const struct options *options);

#endif
