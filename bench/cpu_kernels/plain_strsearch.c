// SPDX-License-Identifier: MIT
#include <string.h>

#include "plain.h"

enum { MOST = 64 };
static char pattern[MOST];

KERNEL search(int *matches, int *count, const char *text, int positions, int length)
{
    for (int position = 0; position < positions; position++) {
        int i = 0;
        while (i < length && text[position + i] == pattern[i])
            i++;
        if (i == length)
            matches[(*count)++] = position;
    }
}

int main(int argc, char **argv)
{
    long size = plain_argument(argc, argv, 1), length = plain_argument(argc, argv, 2);
    long repeats = plain_argument(argc, argv, 3), positions = size - length + 1;
    char *text = plain_numbers_char(size, 'a', 'd', 1);
    int *matches = plain_memory(positions, sizeof *matches), count = 0;
    memcpy(pattern, &text[(size - length) / 2], length < MOST ? length : MOST);
    plain_start();
    for (long i = 0; i < repeats; i++) {
        count = 0;
        search(matches, &count, text, positions, length);
    }
    plain_stop();
    return plain_end(count);
}
