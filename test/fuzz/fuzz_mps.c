// SPDX-License-Identifier: MIT
// The input is what NVIDIA's control program or nvidia-smi may answer, or what the file of a fenced process
// may hold: nothing is read behind it, and a file that is accepted is what moat would have written.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mps/client_file.h"
#include "mps/mps_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_file(struct str text)
{
    struct client_file c;
    char again[CLIENT_FILE_MOST];
    if (client_file_parse(text, &c))
        return;
    size_t n = client_file_print(&c, again);
    assert(n == text.len && !memcmp(again, text.ptr, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 8 };
    int pids[MOST];
    uint64_t bytes;
    char *copy = malloc(size ? size : 1);  // so that a sanitizer sees its end
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    struct str text = {copy, size};
    int n = mps_answer_pids(text, pids, MOST);
    assert(n <= MOST);
    for (int i = 0; i < n; i++)
        assert(pids[i] > 0 && pids[i] <= MPS_LARGEST_PID);
    struct str line = mps_answer_last_line(text);
    assert(!line.len || (line.ptr >= copy && line.ptr + line.len <= copy + size));
    mps_answer_is_success(text);
    mps_answer_memory(text, 17, &bytes);
    try_file(text);
    free(copy);
    return 0;
}
