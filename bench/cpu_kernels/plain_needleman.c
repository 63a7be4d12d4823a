// SPDX-License-Identifier: MIT
#include "plain.h"

enum { MATCH = 3, MISMATCH = -2, GAP = -4 };

KERNEL align(int *scores, const char *a, const char *b, int rows, int columns)
{
    size_t pitch = (size_t)columns + 1;
    for (int c = 0; c <= columns; c++)
        scores[c] = c * GAP;
    for (int r = 1; r <= rows; r++) {
        int *row = &scores[r * pitch];
        const int *above = row - pitch;
        row[0] = r * GAP;
        for (int c = 1; c <= columns; c++) {
            int across = above[c - 1] + (a[r - 1] == b[c - 1] ? MATCH : MISMATCH);
            int gap = (above[c] > row[c - 1] ? above[c] : row[c - 1]) + GAP;
            row[c] = across > gap ? across : gap;
        }
    }
}

int main(int argc, char **argv)
{
    long rows = plain_argument(argc, argv, 1), columns = plain_argument(argc, argv, 2);
    long repeats = plain_argument(argc, argv, 3);
    char *a = plain_numbers_char(rows, 'a', 'd', 1), *b = plain_numbers_char(columns, 'a', 'd', 2);
    size_t cells = (rows + 1) * (columns + 1);
    int *scores = plain_memory(cells, sizeof *scores);
    plain_start();
    for (long i = 0; i < repeats; i++)
        align(scores, a, b, rows, columns);
    plain_stop();
    return plain_end(scores[cells - 1]);
}
