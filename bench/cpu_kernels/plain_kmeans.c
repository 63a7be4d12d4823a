// SPDX-License-Identifier: MIT
#include <string.h>

#include "plain.h"

enum { DIMENSIONS = 4, CLUSTERS = 8, WIDTH = DIMENSIONS + 1 };

static int nearest(const int *point, const int *centres)
{
    int best = 0, best_distance = INT32_MAX;
    for (int cluster = 0; cluster < CLUSTERS; cluster++) {
        int distance = 0;
        for (int d = 0; d < DIMENSIONS; d++) {
            int difference = point[d] - centres[cluster * DIMENSIONS + d];
            distance += difference * difference;
        }
        if (distance < best_distance) {
            best_distance = distance;
            best = cluster;
        }
    }
    return best;
}

KERNEL assign(unsigned char *labels, unsigned long long *sums, const int *points, const int *centres, int n)
{
    for (int i = 0; i < n; i++) {
        const int *point = &points[i * DIMENSIONS];
        int label = nearest(point, centres);
        labels[i] = (unsigned char)label;
        for (int d = 0; d < DIMENSIONS; d++)
            sums[label * WIDTH + d] += (unsigned long long)point[d];
        sums[label * WIDTH + DIMENSIONS]++;
    }
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), rounds = plain_argument(argc, argv, 2);
    int *points = plain_numbers_int(n * DIMENSIONS, 0, 9999, 1);
    int *centres = plain_numbers_int(CLUSTERS * DIMENSIONS, 0, 9999, 2);
    unsigned char *labels = plain_memory(n, 1);
    unsigned long long sums[CLUSTERS * WIDTH];
    plain_start();
    for (long round = 0; round < rounds; round++) {
        memset(sums, 0, sizeof sums);
        assign(labels, sums, points, centres, n);
        for (int i = 0; i < CLUSTERS * DIMENSIONS; i++) {
            const unsigned long long *row = &sums[i / DIMENSIONS * WIDTH];
            centres[i] = row[DIMENSIONS] ? (int)(row[i % DIMENSIONS] / row[DIMENSIONS]) : centres[i];
        }
    }
    plain_stop();
    return plain_end(centres[0] + labels[n / 2]);
}
