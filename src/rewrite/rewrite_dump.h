// SPDX-License-Identifier: MIT
// --dump-rewritten=DIR: each text that the driver is given in place of a program's own, in a file of its own.
// The file is the text as the driver gets it, below a comment that says what it is.
//
// Files are named PID-NUMBER-MODULE.ptx. They are made new (O_EXCL), so that no process or thread overwrites
// what another has written, and never through a symbolic link. Whatever fails is noted once, and the program
// goes on.
#ifndef MOAT_REWRITE_REWRITE_DUMP_H
#define MOAT_REWRITE_REWRITE_DUMP_H

#include <stdbool.h>

#include "base/str.h"

extern bool rewrite_dump_on;  // set once, by rewrite_dump_start

// Makes the folder that the options name, if they name one. A relative name counts from the working directory
// that the process has now.
void rewrite_dump_start(void);

// A text of a module: one of `texts`, counted from 1.
struct rewrite_dump {
    const char *name;  // of the module, whatever is in it
    unsigned module;   // from rewrite_dump_module
    unsigned text, texts;
    const char *from;    // how it came to the driver: "a fatbin in memory"
    const char *passes;  // as pass_rewrite takes them
    unsigned arch;       // 90 for sm_90
};
unsigned rewrite_dump_module(void);  // the number of a module: 1 for the first of the process
void rewrite_dump(const struct rewrite_dump *d, struct str text);

// --- for tests -------------------------------------------------------------------------------------------

// The name of a file: only letters, digits, '.', '-' and '_', whatever the module's name is.
enum { REWRITE_DUMP_NAME = 128 };
void rewrite_dump_name(char name[REWRITE_DUMP_NAME], int pid, unsigned number, const char *module);

// Writes a new file with the header and the text. 0; -EEXIST: there is something of that name; or another
// negative code: the folder has no such file.
int rewrite_dump_write(const char *folder, const char *name, struct str header, struct str text);

#endif
