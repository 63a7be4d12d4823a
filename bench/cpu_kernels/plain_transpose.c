// SPDX-License-Identifier: MIT
#include "plain.h"

KERNEL transpose(unsigned *out, const unsigned *in, int rows, int columns)
{
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            out[(size_t)column * rows + row] = in[(size_t)row * columns + column];
}

int main(int argc, char **argv)
{
    long rows = plain_argument(argc, argv, 1), columns = plain_argument(argc, argv, 2);
    long repeats = plain_argument(argc, argv, 3);
    unsigned *in = plain_numbers_unsigned(rows * columns, 0, 1 << 30, 1);
    unsigned *out = plain_memory(rows * columns, sizeof *out);
    plain_start();
    for (long i = 0; i < repeats; i++)
        transpose(out, in, rows, columns);
    plain_stop();
    return plain_end(out[rows * columns / 3]);
}
