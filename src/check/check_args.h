// SPDX-License-Identifier: MIT
// The arguments of kernels that run unchecked.
//
// An argument of 8 bytes whose value lies in a freed buffer is noted, with the kernel and the buffer, and
// counted. It is no error: the kernel may never use it, and a correct program may pass it. Null pointers are
// not noted, since many kernels take them for "none".
#ifndef MOAT_CHECK_CHECK_ARGS_H
#define MOAT_CHECK_CHECK_ARGS_H

struct launch_call;
void check_args_look(const struct launch_call *l);

#endif
