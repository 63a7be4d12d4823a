// SPDX-License-Identifier: MIT
#include "base/near.h"

enum { LONGEST = 40 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

// Returns the number of insertions, deletions, replacements and swaps of neighbours that lead from a to b
// (optimal string alignment).
static unsigned distance(struct str a, struct str b)
{
    unsigned rows[3][LONGEST + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    for (unsigned j = 0; j <= b.len; j++)
        before[j] = last[j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            char x = a.ptr[i - 1], y = b.ptr[j - 1];
            row[j] = least(last[j - 1] + (x != y), least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && x == b.ptr[j - 2] && y == a.ptr[i - 2])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        unsigned *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b.len];
}

void near_init(struct near *n, struct str word)
{
    *n = (struct near){.word = word, .distance = (unsigned)(word.len < 4 ? 1 : word.len < 8 ? 2 : 3) + 1};
}

void near_offer(struct near *n, const char *candidate)
{
    struct str c = str_from(candidate);
    if (n->word.len > LONGEST || c.len > LONGEST)
        return;
    unsigned d = distance(n->word, c);
    if (d < n->distance && d < c.len) {
        n->distance = d;
        n->best = candidate;
    }
}
