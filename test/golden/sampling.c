// SPDX-License-Identifier: MIT
// What a GPU answers to texture and surface instructions, and whether another device answers the same.
//   sampling list            the cases, one a line
//   sampling raw FILE        runs all and writes all results to FILE
//   sampling diff FILE       runs all and shows where the results differ from such a file
//   sampling pack RAW FILE   makes a packed file from such a file
//   sampling check FILE      runs all and compares the results with a packed file
// --libcuda=PATH  instead of libcuda.so.1
// --only=TEXT     cases with it in their names
#include "sampling_results.h"

static struct outcome now, then;

static int raw(struct sampler *s, const struct samplings *all, const char *path, const char *only)
{
    FILE *f = fopen(path, "wb");
    unsigned refused = 0;
    int bad = !f;
    for (size_t i = 0; i < all->n && !bad; i++) {
        const struct sampling *c = &all->items[i];
        if (only && !strstr(c->name, only))
            continue;
        sampler_run(s, c, &now);
        bad = raw_write(f, c, &now);
        refused += now.stage != STAGE_DONE;
        if (now.stage)
            fprintf(stderr, "%s: stage %d, result %d %s\n", c->name, (int)now.stage, (int)now.result,
                    now.stage == STAGE_MODULE ? s->log : "");
    }
    printf("%s: %zu cases, %u refused\n", s->device, all->n, refused);
    return bad || fclose(f);
}

static void show(const struct sampling *c, unsigned row, unsigned word)
{
    unsigned i = row * SAMPLING_OUT + word;
    printf("   row %u word %u: %08x (%g), not %08x (%g), at", row, word, now.words[i],
           (double)bits_float(now.words[i]), then.words[i], (double)bits_float(then.words[i]));
    for (unsigned w = 0; w < SAMPLING_IN && c->words[w]; w++)
        printf(" %.9g[%d]", (double)bits_float(sampling_word(c, row, w)), (int)sampling_word(c, row, w));
    printf("\n");
}

static int diff(struct sampler *s, const struct samplings *all, const char *path, const char *only)
{
    FILE *f = fopen(path, "rb");
    unsigned same = 0, other = 0;
    const struct sampling *c;
    while (f && (c = raw_read(f, all, &then))) {
        unsigned words = 0;
        if (only && !strstr(c->name, only))
            continue;
        sampler_run(s, c, &now);
        bool equal = now.stage == then.stage && now.result == then.result && now.n == then.n;
        for (unsigned i = 0; i < now.n && equal; i++)
            words += now.words[i] != then.words[i];
        same += equal && !words;
        other += !equal || words;
        if (!equal)
            printf("%s: stage %d, result %d, not %d, %d\n", c->name, (int)now.stage, (int)now.result,
                   (int)then.stage, (int)then.result);
        if (words)
            printf("%s: %u of %u words differ\n", c->name, words, now.n);
        for (unsigned i = 0, shown = 0; i < now.n && words && shown < 3; i++)
            if (now.words[i] != then.words[i]) {
                show(c, i / SAMPLING_OUT, i % SAMPLING_OUT);
                shown++;
            }
    }
    if (f)
        fclose(f);
    printf("%u the same, %u differ\n", same, other);
    return other != 0;
}

static int pack_file(const struct samplings *all, const char *from, const char *to)
{
    static const char line[] = "moat sampling 1: NVIDIA H200\n";
    FILE *f = fopen(from, "rb");
    bytes out = {0};
    const struct sampling *c;
    int bad = !f || put(&out, line, sizeof line - 1);
    while (!bad && (c = raw_read(f, all, &then)))
        bad = packed_add(&out, c, &then);
    if (f)
        fclose(f);
    bad = bad || packed_write(to, &out);
    vec_free(&out);
    return bad;
}

// --- check ------------------------------------------------------------------------------------------------

static const struct packed *find(const char *data, size_t size, uint64_t key, const char **words)
{
    static struct packed p;
    size_t at = 0;
    while (at < size && data[at++] != '\n')
        continue;
    for (; at + sizeof p <= size; at += 4 * (size_t)p.kept) {
        memcpy(&p, data + at, sizeof p);
        at += sizeof p;
        if (p.key == key && 4 * (size_t)p.kept <= size - at) {
            *words = data + at;
            return &p;
        }
    }
    return NULL;
}

static bool far(uint32_t a, uint32_t b, double by)
{
    double x = (double)bits_float(a), y = (double)bits_float(b);
    return a != b && !(by > 0 && fabs(x - y) <= by);
}

// Counts the kept rows that are not near enough.
static unsigned count_far(const struct sampling *c, const struct packed *p, double by)
{
    unsigned rows = 0, shown = 0;
    for (unsigned i = 0; i < p->kept; i += SAMPLING_OUT) {
        bool differs = false;
        for (unsigned k = i; k < i + SAMPLING_OUT && k < p->kept; k++)
            if (far(now.words[k], then.words[k], by) && !differs) {
                differs = true;
                if (shown++ < 3)
                    show(c, i / SAMPLING_OUT, k - i);
            }
        rows += differs;
    }
    return rows;
}

static bool agrees(const struct sampling *c, const struct packed *p)
{
    struct packed own = pack(c, &now);
    const struct near *near = near_of(c);
    if (own.stage != p->stage || own.result != p->result || own.n != p->n)
        return false;
    if (own.hash == p->hash)
        return true;
    unsigned rows = count_far(c, p, near ? near->by : 0);
    return near && rows <= (uint64_t)p->kept / SAMPLING_OUT * near->more / 1000;
}

static int check(struct sampler *s, const struct samplings *all, const char *path, const char *only)
{
    size_t size;
    char *data = packed_read(path, &size);
    unsigned same = 0, near = 0, missing = 0, other = 0;
    for (size_t i = 0; i < all->n && data; i++) {
        const struct sampling *c = &all->items[i];
        const char *words;
        if (only && !strstr(c->name, only))
            continue;
        const struct packed *p = find(data, size, case_key(c), &words);
        missing += !p;
        if (!p)
            continue;
        sampler_run(s, c, &now);
        memcpy(then.words, words, 4 * (size_t)p->kept);
        if (agrees(c, p)) {
            if (near_of(c))
                near++;
            else
                same++;
        } else {
            other++;
            printf("%s: stage %d, result %d; the file has %u, %u, or other words\n", c->name, (int)now.stage,
                   (int)now.result, p->stage, p->result);
        }
    }
    free(data);
    printf("%u cases agree, %u as far as we know the hardware; %u differ, %u are not in the file\n", same,
           near, other, missing);
    return !data || other || missing || !same;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "", *path[2] = {NULL, NULL}, *libcuda = NULL, *only = NULL;
    struct samplings all = {0};
    static struct sampler s;
    for (int i = 2; i < argc; i++) {
        if (!strncmp(argv[i], "--libcuda=", 10))
            libcuda = argv[i] + 10;
        else if (!strncmp(argv[i], "--only=", 7))
            only = argv[i] + 7;
        else
            path[path[0] != NULL] = argv[i];
    }
    sampling_collect(&all);
    int status = 2;
    if (!strcmp(command, "list")) {
        for (size_t i = 0; i < all.n; i++)
            printf("%s | %s\n", all.items[i].name, all.items[i].code);
        status = 0;
    } else if (!strcmp(command, "pack") && path[1]) {
        status = pack_file(&all, path[0], path[1]);
    } else if (path[0] && !sampler_open(&s, libcuda)) {
        status = !strcmp(command, "raw")     ? raw(&s, &all, path[0], only)
                 : !strcmp(command, "diff")  ? diff(&s, &all, path[0], only)
                 : !strcmp(command, "check") ? check(&s, &all, path[0], only)
                                             : 2;
        sampler_close(&s);
    } else {
        fprintf(stderr, "usage: sampling list|raw FILE|diff FILE|pack RAW FILE|check FILE [--libcuda=PATH] "
                        "[--only=TEXT]\n");
    }
    free(all.items);
    return status;
}
