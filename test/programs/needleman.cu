// SPDX-License-Identifier: MIT
// Needleman-Wunsch alignment scores: a wavefront of tiles over launches, of cells inside a tile.
#include "program.h"

enum { TILE = 32, MATCH = 3, MISMATCH = -2, GAP = -4 };

__host__ __device__ int cell_score(int above_left, int above, int left, bool same)
{
    int across = above_left + (same ? MATCH : MISMATCH);
    int gap = (above > left ? above : left) + GAP;
    return across > gap ? across : gap;
}

__global__ void fill_borders(int *scores, int rows, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= columns)
        scores[i] = i * GAP;
    if (i <= rows)
        scores[(size_t)i * (columns + 1)] = i * GAP;
}

// Tile (first + block, diagonal - first - block). Row r and column c of it, from 1, are the scores
// of row top + r and column left + c; row and column 0 were left by the tiles before.
__global__ void align_tiles(int *scores, const char *a, const char *b, int rows, int columns,
                            int diagonal, int first)
{
    __shared__ int tile[TILE + 1][TILE + 1];
    int top = (first + blockIdx.x) * TILE, left = (diagonal - first - blockIdx.x) * TILE;
    int height = min(TILE, rows - top), width = min(TILE, columns - left), c = threadIdx.x + 1;
    size_t pitch = columns + 1;
    int *corner = &scores[top * pitch + left];
    if (c == 1)
        tile[0][0] = corner[0];
    if (c <= width)
        tile[0][c] = corner[c];
    if (c <= height)
        tile[c][0] = corner[c * pitch];
    for (int step = 2; step <= height + width; step++) {
        int r = step - c;
        __syncthreads();
        if (c <= width && r >= 1 && r <= height)
            tile[r][c] = cell_score(tile[r - 1][c - 1], tile[r - 1][c], tile[r][c - 1],
                                    a[top + r - 1] == b[left + c - 1]);
    }
    __syncthreads();
    if (c <= width)
        for (int r = 1; r <= height; r++)
            corner[r * pitch + c] = tile[r][c];
}

static void align(int *scores, const char *a, const char *b, int rows, int columns)
{
    int tile_rows = program_blocks(rows, TILE), tile_columns = program_blocks(columns, TILE);
    fill_borders<<<program_blocks(std::max(rows, columns) + 1, 128), 128>>>(scores, rows, columns);
    for (int diagonal = 0; diagonal < tile_rows + tile_columns - 1; diagonal++) {
        int first = std::max(0, diagonal - tile_columns + 1);
        int last = std::min(tile_rows - 1, diagonal);
        align_tiles<<<last - first + 1, TILE>>>(scores, a, b, rows, columns, diagonal, first);
    }
}

static long check(const int *scores, const char *a, const char *b, int rows, int columns)
{
    long errors = 0;
    std::vector<int> line(columns + 1);
    for (int c = 0; c <= columns; c++)
        line[c] = c * GAP;
    for (int r = 1; r <= rows; r++) {
        int *row = line.data(), above_left = row[0];
        row[0] = r * GAP;
        for (int c = 1; c <= columns; c++) {
            int score = cell_score(above_left, row[c], row[c - 1], a[r - 1] == b[c - 1]);
            above_left = row[c];
            row[c] = score;
            size_t i = (size_t)r * (columns + 1) + c;
            if (scores[i] != score)
                errors += program_wrong(i, scores[i], score);
        }
    }
    return errors;
}

int main(int argc, char **argv)
{
    long rows = 100, columns = 120, repeats = 1;
    program_arguments(argc, argv, {{"rows", &rows, 1, 32768}, {"columns", &columns, 1, 32768},
                                   {"repeats", &repeats, 1, 10000}});
    std::vector<char> a = program_numbers<char>(rows, 'a', 'd', 1);
    std::vector<char> b = program_numbers<char>(columns, 'a', 'd', 2);
    size_t cells = (rows + 1) * (columns + 1);
    char *device_a = program_upload(a), *device_b = program_upload(b);
    int *scores = program_allocate<int>(cells);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        align(scores, device_a, device_b, rows, columns);
    program_stop(start);

    std::vector<int> out = program_download(scores, cells);
    program_free(device_a, device_b, scores);
    return program_result("needleman", check(out.data(), a.data(), b.data(), rows, columns));
}
