// SPDX-License-Identifier: MIT
// Prints explained kernels: as text, aligned, the most important first; or as JSON, complete.
#ifndef MOAT_CLI_EXPLAIN_PRINT_H
#define MOAT_CLI_EXPLAIN_PRINT_H

#include <cjson/cJSON.h>

#include "base/out.h"
#include "cli/explain_kernel.h"
#include "report/demangle.h"

// Sums over kernels.
struct explain_sums {
    uint64_t kernels, functions, accesses;
    uint64_t bounded_kernels;  // kernels of which every access is bounded
    uint64_t counts[JUDGE_VERDICTS], reasons[PROOF_WHY_COUNT];
};
void explain_sums_add(struct explain_sums *sums, const struct explain_kernel *k);

struct explain_print {
    struct out *o;
    struct demangle names;
    char root[4096];  // paths below this folder are printed relative to it; empty: none
};
void explain_print_kernel(const struct explain_print *p, const struct explain_kernel *k);
void explain_print_sums(const struct explain_print *p, const struct explain_sums *sums);

// explain_json.c
cJSON *explain_json_kernel(const struct demangle *names, const struct explain_kernel *k);
void explain_json_sums(cJSON *to, const struct explain_sums *sums);

// Writes "1,234,567".
void explain_print_number(struct out *o, int64_t n);

#endif
