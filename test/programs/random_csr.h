// SPDX-License-Identifier: MIT
// A random sparse matrix, or graph, by compressed rows; rows have from 0 to twice the mean entries.
#ifndef RANDOM_CSR_H
#define RANDOM_CSR_H

#include "program.h"

struct random_csr {
    std::vector<int> starts; // the entries of row r are starts[r] to starts[r + 1] - 1
    std::vector<int> columns;
};

inline random_csr random_csr_make(int rows, int mean, uint64_t seed)
{
    random_csr csr;
    program_random random = {seed};
    csr.starts.resize((size_t)rows + 1);
    for (int row = 0; row < rows; row++)
        csr.starts[row + 1] = csr.starts[row] + (int)program_below(&random, 2 * mean + 1);
    csr.columns.resize(csr.starts[rows]);
    for (int &column : csr.columns)
        column = (int)program_below(&random, rows);
    return csr;
}

#endif
