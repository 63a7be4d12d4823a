// SPDX-License-Identifier: MIT
#include "mps/mps_answer.h"

#include <errno.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct str trim(struct str s)
{
    while (s.len && is_blank(*s.ptr))
        s = str_skip(s, 1);
    while (s.len && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

// Takes a line from the front, without blanks around it. Returns false at the end.
static bool take_line(struct str *text, struct str *line)
{
    if (!text->len)
        return false;
    const char *end = memchr(text->ptr, '\n', text->len);
    size_t n = end ? (size_t)(end - text->ptr) : text->len;
    *line = trim((struct str){text->ptr, n});
    *text = str_skip(*text, n + (end != NULL));
    return true;
}

static bool is_number(struct str s, uint64_t most, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || *value > most / 10)
            return false;
        *value = *value * 10 + (uint64_t)(s.ptr[i] - '0');
    }
    return s.len && *value <= most;
}

int mps_answer_pids(struct str text, int *pids, int most)
{
    struct str line;
    int count = 0;
    while (take_line(&text, &line)) {
        uint64_t pid;
        if (!line.len)
            continue;
        if (!is_number(line, MPS_LARGEST_PID, &pid) || !pid)
            return -EINVAL;
        if (count == most)
            return -E2BIG;
        pids[count++] = (int)pid;
    }
    return count;
}

bool mps_answer_is_success(struct str text)
{
    struct str line = mps_answer_last_line(text);
    return !line.len || str_eq(line, STR("0"));
}

struct str mps_answer_last_line(struct str text)
{
    struct str line, last = {"", 0};
    while (take_line(&text, &line))
        if (line.len)
            last = line;
    return last;
}

bool mps_answer_memory(struct str text, int pid, uint64_t *bytes)
{
    struct str line;
    bool found = false;
    *bytes = 0;
    while (take_line(&text, &line)) {
        const char *comma = line.len ? memchr(line.ptr, ',', line.len) : NULL;
        uint64_t process, mib;
        if (!comma)
            continue;
        size_t n = (size_t)(comma - line.ptr);
        if (!is_number(trim((struct str){line.ptr, n}), MPS_LARGEST_PID, &process) ||
            process != (uint64_t)pid)
            continue;
        // No GPU has 2^40 MiB, and no sum of lines may come around.
        if (!is_number(trim(str_skip(line, n + 1)), 1ull << 40, &mib) || *bytes > UINT64_MAX - (mib << 20))
            return false;
        *bytes += mib << 20;
        found = true;
    }
    return found;
}
