// SPDX-License-Identifier: MIT
// Functions that the `moat ptx` commands share: opening a file and walking its modules.
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
    char *input;  // contents of standard input, if that is the file
    struct image_buffer buffer;
    struct diag_printer printer;
    int status;  // CLI_BAD after any error
};

// Opens a file. argv: the command's second word, then the file, "-" for standard input. Returns CLI_OK, or
// CLI_BAD after a message.
int ptx_file_open(struct ptx_file *f, const struct options *options, int argc, char **argv);
int ptx_file_close(struct ptx_file *f);  // returns the exit status

bool ptx_file_wants(const struct ptx_file *f, unsigned i);  // by --module
int ptx_file_read(struct ptx_file *f, unsigned i, struct str *data);

// Writes the module's name for messages.
void ptx_file_module_name(const struct ptx_file *f, unsigned i, char *name, size_t size);

// Parses each selected PTX module and calls visit, which returns 0 to continue. Modules that cannot be read
// or parsed are reported and skipped. Prints an error if there is no PTX at all.
typedef int ptx_file_visit(void *ctx, struct ptx_file *f, unsigned i, const struct ptx_module *m);
void ptx_file_each(struct ptx_file *f, ptx_file_visit *visit, void *ctx);

int ptx_file_no_ptx(const struct ptx_file *f);  // prints that; returns CLI_BAD
const char *ptx_file_kind(const struct image_entry *e);
const char *ptx_file_compression(const struct image_entry *e);
void ptx_file_version(const struct image_entry *e, char text[16]);  // of the PTX ISA, "-" if it has none
void ptx_file_arch(const struct image_entry *e, char text[16]);     // "sm_90a", "-" if not known

#endif
