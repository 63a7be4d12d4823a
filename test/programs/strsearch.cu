// SPDX-License-Identifier: MIT
// Search for a string in a text: byte loads, early exits from a loop, matches appended atomically.
#include "program.h"

enum { MOST = 64 };
__constant__ char pattern[MOST];

__global__ void search(int *matches, int *count, const char *text, int positions, int length)
{
    int position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= positions)
        return;
    for (int i = 0; i < length; i++)
        if (text[position + i] != pattern[i])
            return;
    matches[atomicAdd(count, 1)] = position;
}

static std::vector<int> reference(const std::vector<char> &text, const char *word, long length)
{
    std::vector<int> matches;
    for (size_t i = 0; i + length <= text.size(); i++)
        if (text[i] == *word && memcmp(&text[i], word, length) == 0)
            matches.push_back((int)i);
    return matches;
}

int main(int argc, char **argv)
{
    long size = 10000, length = 4, repeats = 1;
    program_arguments(argc, argv, {{"text_size", &size, MOST, 1 << 28},
                                   {"length", &length, 1, MOST},
                                   {"repeats", &repeats, 1, 100000}});
    std::vector<char> text = program_numbers<char>(size, 'a', 'd', 1);
    const char *word = &text[(size - length) / 2]; // one match at least
    char *device_text = program_upload(text);
    long positions = size - length + 1;
    int *matches = program_allocate<int>(positions), *count = program_allocate<int>(1);
    CUDA_TRY(cudaMemcpyToSymbol(pattern, word, length));

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        CUDA_TRY(cudaMemset(count, 0, sizeof *count));
        search<<<program_blocks(positions, 256), 256>>>(matches, count, device_text, positions,
                                                        length);
    }
    program_stop(start);

    std::vector<int> found = program_download(matches, program_download(count, 1)[0]);
    std::sort(found.begin(), found.end());
    program_free(device_text, matches, count);
    return program_result("strsearch", program_compare(found, reference(text, word, length)));
}
