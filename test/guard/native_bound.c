// SPDX-License-Identifier: MIT
// native_bound FILE...: prints the functions of each PTX file, linked with the judge of --mode=check, that
// the CPU device executes in C when libmoat.so offers what it offers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exec/exec_program.h"
#include "exec/native.h"
#include "exec/space.h"
#include "kcheck/kcheck.h"
#include "kcheck/kcheck_native.h"
#include "kheap/kheap_native.h"

enum { MEMORY = 64 << 20 };
static uint64_t used = 4096;

static uint64_t place(void *ctx, enum exec_variable_kind kind, uint64_t size, uint64_t align)
{
    (void)ctx, (void)kind;
    uint64_t at = (used + align - 1) / align * align;
    used = at + size;
    return used < MEMORY ? space.device_base + at : 0;
}

static char *read_file(const char *name, size_t *size)
{
    FILE *f = fopen(name, "r");
    char *text = NULL;
    size_t capacity = 0;
    if (!f || getdelim(&text, &capacity, 0, f) < 0) {
        perror(name);
        exit(1);
    }
    fclose(f);
    *size = strlen(text);
    return text;
}

static void print_bound(const char *name, const char *judge)
{
    struct exec_host host = {.place = place};
    struct diag_printer printer = {0};
    diag_printer_init(&printer, 5);
    size_t size;
    char *text = read_file(name, &size);
    const struct exec_text texts[] = {{name, {text, size}}, {"the judge", str_from(judge)}};
    struct exec_program *p;
    if (exec_load(texts, 2, &host, &printer.sink, &p))
        exit(1);
    for (uint32_t k = 0; k < p->nfuncs; k++)
        if (p->funcs[k]->native)
            printf("%.*s\n", (int)p->funcs[k]->name.len, p->funcs[k]->name.ptr);
    exec_program_free(p);
    free(text);
}

int main(int argc, char **argv)
{
    char *judge;
    if (space_init() ||
        asprintf(&judge, ".version 6.3\n.target sm_70\n.address_size 64\n%s", kcheck_functions_ptx) < 0)
        return 1;
    if (mmap(space_host(space.device_base), MEMORY, PROT_READ | PROT_WRITE,
             MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return 1;
    space_set(space.device_base, MEMORY, SPACE_READ | SPACE_WRITE);
    if (exec_native_add(kheap_native, KHEAP_NATIVE, &kprim_native_space) ||
        exec_native_add(kcheck_native, KCHECK_NATIVE, &kprim_native_space))
        return 1;
    for (int i = 1; i < argc; i++)
        print_bound(argv[i], judge);
    free(judge);
    return 0;
}
