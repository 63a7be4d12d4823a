// SPDX-License-Identifier: MIT
// What NVIDIA's programs answer: nvidia-cuda-mps-control to a command on its standard input, and nvidia-smi.
// Their texts are theirs: whatever is not as documented is refused or left out, and nothing grows with it.
#ifndef MOAT_MPS_MPS_ANSWER_H
#define MOAT_MPS_MPS_ANSWER_H

#include <stdint.h>

#include "base/str.h"

enum { MPS_LARGEST_PID = 1 << 22 };

// The numbers of processes that get_server_list and get_client_list print, one in each line. Returns how many
// there are, at most `most`; -EINVAL: a line is no such number; -E2BIG: there are more.
int mps_answer_pids(struct str text, int *pids, int most);

// Whether terminate_client has succeeded: it answers 0, or nothing.
bool mps_answer_is_success(struct str text);

// The last line of a text that has anything in it, without blanks around it; for messages.
struct str mps_answer_last_line(struct str text);

// The memory of a process in "PID, MIB" lines of
//   nvidia-smi --query-compute-apps=pid,used_gpu_memory --format=csv,noheader,nounits
// added up over GPUs. Returns false if it is not there, or for a process whose line has no number.
bool mps_answer_memory(struct str text, int pid, uint64_t *bytes);

#endif
