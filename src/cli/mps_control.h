// SPDX-License-Identifier: MIT
// Runs NVIDIA's programs and takes what they print: nvidia-cuda-mps-control gets a command on its standard
// input, as its manual page describes. Neither time nor memory that they take is without a limit.
#ifndef MOAT_CLI_MPS_CONTROL_H
#define MOAT_CLI_MPS_CONTROL_H

#include <stddef.h>

#include "base/str.h"

enum { MPS_ANSWER_MOST = 64 << 10 };

struct mps_answer {
    int status;  // exit status of the program
    size_t len;
    char text[MPS_ANSWER_MOST];
};

static inline struct str mps_answer_text(const struct mps_answer *a)
{
    return (struct str){a->text, a->len};
}

// Runs a program, found in PATH, with `input` on its standard input (NULL: none), for at most `seconds`.
// Returns 0, or a negative code: -ENOENT: there is no such program; -ETIMEDOUT; -EOVERFLOW: it printed more
// than fits. In the last two cases it was killed.
int mps_control_run(char *const argv[], const char *input, int seconds, struct mps_answer *a);

// Gives the control program a command. The variables of the share's folder are set. Returns CLI_OK, or
// CLI_BAD after a message: it cannot be run, or it says no.
int mps_control_ask(struct mps_answer *a, int seconds, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Returns whether a control daemon answers, without a message if none does. Its servers are in the answer.
bool mps_control_answers(struct mps_answer *a);

enum { MPS_SECONDS = 20 };  // for a command that only asks

#endif
