// SPDX-License-Identifier: MIT
// Records what a device computes.
#ifndef MOAT_TEST_GOLDEN_RECORD_H
#define MOAT_TEST_GOLDEN_RECORD_H

#include "run.h"

struct recorder {
    struct run run;  // first: callbacks get a pointer to it
    struct out file, notes;
    unsigned done, refused, faults;
};

static void record_done(struct run *r, size_t i, const struct inputs *in)
{
    static unsigned char bytes[KEPT * KERNEL_WORDS * 8];
    struct recorder *rec = (struct recorder *)r;
    const struct combo *c = &r->all->list.items[i];
    uint32_t len = (uint32_t)pack_results(c, r->rows, bytes);
    results_put(&rec->file,
                &(struct record){combo_key(c, in), hash_results(c, r->rows, KEPT, INPUT_COUNT), len, bytes});
    rec->done++;
}

static void record_refused(struct run *r, size_t i)
{
    struct recorder *rec = (struct recorder *)r;
    rec->refused++;
    out_fmt(&rec->notes, "refused: %s (%s)\n", r->all->list.items[i].label, run_log(r));
}

static void record_fault(struct run *r, size_t i, CUresult result)
{
    struct recorder *rec = (struct recorder *)r;
    rec->faults++;
    out_fmt(&rec->notes, "fault %s: %s\n", driver_result_name(result), r->all->list.items[i].label);
}

// Copies what is in the file already, and leaves only the other combinations.
static unsigned record_keep(struct recorder *rec, struct combos *all, const struct results *old)
{
    size_t left = 0;
    out_fmt(&rec->file, "%s\n", old->device);
    for (size_t i = 0; i < all->list.len; i++) {
        const struct inputs *in = bank_find(&rec->run.bank, &all->list.items[i]);
        const struct record *has = in ? results_find(old, combo_key(&all->list.items[i], in)) : NULL;
        if (has) {
            results_put(&rec->file, has);
            combo_free(&all->list.items[i]);
        } else {
            all->list.items[left++] = all->list.items[i];
        }
    }
    unsigned kept = (unsigned)(all->list.len - left);
    all->list.len = left;
    return kept;
}

// A file holds the results of one device.
static bool record_same_device(const struct recorder *rec, const struct results *old)
{
    char line[200];
    int len = snprintf(line, sizeof line, "moat golden 1: %s, CUDA ", rec->run.device.name);
    return !strncmp(old->device, line, (size_t)len);
}

static int record_write(struct recorder *rec, const char *path)
{
    char notes[4096];
    snprintf(notes, sizeof notes, "%s.txt", path);
    int err = write_compressed(path, &rec->file);
    return err ? err : write_file(notes, rec->notes.buf, rec->notes.len);
}

// missing: a file of results to which only missing ones are added; NULL: all are recorded.
static int record(struct combos *all, const char *path, const char *libcuda, const char *missing)
{
    struct recorder rec = {
        .run = {.all = all, .done = record_done, .refused = record_refused, .fault = record_fault}};
    struct results old = {0};
    unsigned kept = 0;
    if (out_to_memory(&rec.file) || out_to_memory(&rec.notes))
        return -ENOMEM;
    int err = missing ? results_read(&old, missing) : 0;
    if (!err)
        err = run_open(&rec.run, libcuda);
    if (!err && missing && !record_same_device(&rec, &old)) {
        fprintf(stderr, "golden: %s is of another device than %s\n", missing, rec.run.device.name);
        err = -EINVAL;
    }
    if (!err && missing)
        kept = record_keep(&rec, all, &old);
    else if (!err)
        out_fmt(&rec.file, "moat golden 1: %s, CUDA %d\n", rec.run.device.name, rec.run.device.version);
    if (!err)
        err = run_all(&rec.run);
    if (!err)
        err = record_write(&rec, path);
    if (!err)
        printf("%s: %u combinations recorded, %u kept, %u refused, %u faults\n", rec.run.device.name,
               rec.done, kept, rec.refused, rec.faults);
    results_free(&old);
    run_close(&rec.run);
    out_close(&rec.file);
    out_close(&rec.notes);
    return err;
}

#endif
