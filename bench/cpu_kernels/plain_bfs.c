// SPDX-License-Identifier: MIT
#include "plain.h"

KERNEL expand(int *distances, const int *starts, const int *neighbours, const int *frontier, int size,
              int *next, int *next_size, int level)
{
    for (int i = 0; i < size; i++)
        for (int edge = starts[frontier[i]]; edge < starts[frontier[i] + 1]; edge++)
            if (distances[neighbours[edge]] == -1) {
                distances[neighbours[edge]] = level;
                next[(*next_size)++] = neighbours[edge];
            }
}

int main(int argc, char **argv)
{
    long vertices = plain_argument(argc, argv, 1), mean = plain_argument(argc, argv, 2);
    long repeats = plain_argument(argc, argv, 3);
    struct plain_csr graph = plain_csr_make(vertices, mean, 2);
    int *distances = plain_memory(vertices, sizeof(int)), visited = 0;
    int *queues[2] = {plain_memory(vertices, sizeof(int)), plain_memory(vertices, sizeof(int))};
    for (long i = 0; i < repeats; i++) {
        for (long v = 0; v < vertices; v++)
            distances[v] = -1;
        distances[0] = queues[0][0] = 0;
        visited = 1;
        plain_start();
        for (int level = 1, size = 1, next; size > 0; level++, size = next) {
            next = 0;
            expand(distances, graph.starts, graph.columns, queues[(level - 1) % 2], size, queues[level % 2],
                   &next, level);
            visited += next;
        }
        plain_stop();
    }
    return plain_end(visited);
}
