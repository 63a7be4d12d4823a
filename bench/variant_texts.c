// SPDX-License-Identifier: MIT
// variant_texts FILE.ptx FOLDER: writes the texts that the driver's compiler gets of a module under
// --mode=check into FOLDER: together.ptx, all in one; judge.ptx, which each link needs as well; and, if the
// variants of its kernels can be modules of their own, variant-N.ptx for each. Prints the processor seconds
// that moat takes for the former, for the latter up to the load, and for all variants after it, and how many
// variants there are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/diag.h"
#include "kcheck/kcheck.h"
#include "pass/pass.h"
#include "pass/pass_check.h"
#include "pass/pass_variants.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void emit(struct diag_sink *sink, const struct diag *d)
{
    fprintf(stderr, "variant_texts: %s\n", d->message);
}

static struct diag_sink sink = {.emit = emit};

static char *read_text(const char *path, size_t *size)
{
    FILE *f = fopen(path, "r");
    char *text = f ? calloc(1, 1 << 28) : NULL;
    if (!text) {
        perror(path);
        exit(2);
    }
    *size = fread(text, 1, (1 << 28) - 1, f);
    fclose(f);
    return text;
}

static void write_text(const char *folder, const char *name, const char *head, struct str text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fprintf(f, "%s" STR_FMT, head, STR_ARG(text)) < 0 || fclose(f)) {
        perror(path);
        exit(2);
    }
}

static struct pass_result *rewrite(struct str text, const char *passes)
{
    const struct pass_request request = {.passes = passes, .arch = 90, .linked = true};
    struct pass_result *r;
    if (pass_rewrite("module", text, &request, &sink, &r))
        exit(1);
    return r;
}

// Finds how many registers the file `limits` allows a kernel.
static struct pass_variants_way way_of(const char *limits, struct str kernel)
{
    char name[4096];
    unsigned registers, beside;
    struct pass_variants_way way = {.cold = true};
    FILE *f = limits ? fopen(limits, "r") : NULL;
    while (f && fscanf(f, "%4095s %u %u", name, &registers, &beside) == 3)
        if (str_eq(str_from(name), kernel))
            way = (struct pass_variants_way){registers, beside, true};
    if (f)
        fclose(f);
    return way;
}

static unsigned cut(const struct pass_result *r, const char *folder, const char *prefix, struct str kernel,
                    unsigned n, const char *limits)
{
    char name[4096], file[40];
    struct out out;
    const struct pass_variants_way way = way_of(limits, kernel);
    snprintf(name, sizeof name, "%s" STR_FMT, prefix, STR_ARG(kernel));
    snprintf(file, sizeof file, "variant-%u", n);
    if (out_to_memory(&out) || pass_variants_cut(r->text, str_from(name), &way, &sink, &out))
        exit(1);
    write_text(folder, file, "", (struct str){out.buf, out.len - 1});
    out_close(&out);
    return n + 1;
}

int main(int argc, char **argv)
{
    size_t size;
    unsigned n = 0;
    if (argc != 3 && argc != 4)
        return 2;
    const char *limits = argc == 4 ? argv[3] : NULL;
    char *text = read_text(argv[1], &size);
    double begin = now();
    struct pass_result *together = rewrite((struct str){text, size}, "check");
    double made = now();
    struct pass_result *apart = rewrite((struct str){text, size}, "check,variants");
    double left = now();
    write_text(argv[2], "together", "", together->text);
    write_text(argv[2], "judge", ".version 7.8\n.target sm_90\n.address_size 64\n",
               str_from(pass_check_apart.text));
    const struct pass_check *c = apart->check;
    double cutting = now();
    for (uint32_t i = 0; c && c->apart && i < c->nkernels; i++) {
        n = cut(apart, argv[2], KCHECK_PREFIX, c->kernels[i].name, n, limits);
        if (pass_check_has_rest(c->kernels[i].proved))
            n = cut(apart, argv[2], KCHECK_REST_PREFIX, c->kernels[i].name, n, limits);
    }
    printf("%.3f %.3f %.3f %u\n", made - begin, left - made, now() - cutting, n);
    pass_result_free(together);
    pass_result_free(apart);
    free(text);
    return 0;
}
