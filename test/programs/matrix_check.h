// SPDX-License-Identifier: MIT
// Checks a matrix product of whole numbers, all of it or a sample: exact in any order of summation.
#ifndef MATRIX_CHECK_H
#define MATRIX_CHECK_H

#include "program.h"

// All matrices by rows: a is rows x inner, b is inner x columns.
inline long matrix_check(const std::vector<float> &product, const std::vector<float> &a,
                         const std::vector<float> &b, size_t rows, size_t inner, size_t columns)
{
    long errors = 0;
    for (size_t index : program_sample(rows * columns, 4096)) {
        const float *row = &a[index / columns * inner], *column = &b[index % columns];
        float sum = 0;
        for (size_t k = 0; k < inner; k++)
            sum += row[k] * column[k * columns];
        errors += program_wrong(index, product[index], sum);
    }
    return errors;
}

#endif
