// SPDX-License-Identifier: MIT
// What the `moat ptx` commands share: opening a file and going through its modules.
#ifndef MOAT_CLI_PTX_FILE_H
#define MOAT_CLI_PTX_FILE_H

#include "base/diag.h"
#include "cli/cli.h"
#include "image/image.h"
#include "ptx/ptx.h"

struct ptx_file {
    const struct options *options;
    const char *path;
    struct image *image;
    char *input;  // standard input, where that is the file
    struct image_buffer buffer;
    struct diag_printer printer;
    int status;  // CLI_BAD once anything was wrong
};

// argv: the command's second word, then the file, "-" for standard input. Returns CLI_OK, or CLI_BAD after saying why.
int ptx_file_open(struct ptx_file *f, const struct options *options, int argc, char **argv);
int ptx_file_close(struct ptx_file *f);  // the exit status

bool ptx_file_wants(const struct ptx_file *f, unsigned i);  // by --module
int ptx_file_read(struct ptx_file *f, unsigned i, struct str *data);

// What messages call the module.
void ptx_file_module_name(const struct ptx_file *f, unsigned i, char *name, size_t size);

// Parses each PTX module that is wanted and hands it to visit, which returns 0 to go on. Modules that cannot be
// read or parsed are reported and left out. Says so where there is no PTX at all.
typedef int ptx_file_visit(void *ctx, struct ptx_file *f, unsigned i, const struct ptx_module *m);
void ptx_file_each(struct ptx_file *f, ptx_file_visit *visit, void *ctx);

int ptx_file_no_ptx(const struct ptx_file *f);  // says so; CLI_BAD
const char *ptx_file_kind(const struct image_entry *e);
const char *ptx_file_compression(const struct image_entry *e);
void ptx_file_version(const struct image_entry *e, char text[16]);  // of the PTX ISA, "-" if it has none
void ptx_file_arch(const struct image_entry *e, char text[16]);     // "sm_90a", "-" if not known

#endif
