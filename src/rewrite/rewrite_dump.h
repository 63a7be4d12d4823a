// SPDX-License-Identifier: MIT
// --dump-rewritten=DIR: each text that the driver gets in place of a program's own is written to a file. The
// file is the text as the driver gets it, preceded by a comment that describes it.
//
// Files are named PID-NUMBER-MODULE.ptx. They are created with O_EXCL, so that no process or thread
// overwrites another's, and never through a symbolic link. The first failure is noted, and the program goes
// on.
#ifndef MOAT_REWRITE_REWRITE_DUMP_H
#define MOAT_REWRITE_REWRITE_DUMP_H

#include <stdbool.h>

#include "base/str.h"

extern bool rewrite_dump_on;  // set once, by rewrite_dump_start

// Creates the folder that the options name, if they name one. A relative name is relative to the working
// directory at this moment.
void rewrite_dump_start(void);

// A text of a module: number `text` of `texts`, counted from 1.
struct rewrite_dump {
    const char *name;  // of the module; may contain any character
    unsigned module;   // as rewrite_dump_module returned it
    unsigned text, texts;
    const char *from;    // its origin: "a fatbin in memory"
    const char *passes;  // as pass_rewrite takes them
    unsigned arch;       // 90 for sm_90
};
unsigned rewrite_dump_module(void);  // the number of the next module: 1 for the first of the process
void rewrite_dump(const struct rewrite_dump *d, struct str text);

// --- for tests -------------------------------------------------------------------------------------------

// Makes the name of a file: only letters, digits, '.', '-' and '_', whatever the module's name is.
enum { REWRITE_DUMP_NAME = 128 };
void rewrite_dump_name(char name[REWRITE_DUMP_NAME], int pid, unsigned number, const char *module);

// Writes a new file with the header and the text. Returns 0; -EEXIST if the name is taken; or another
// negative code, and then the folder has no such file.
int rewrite_dump_write(const char *folder, const char *name, struct str header, struct str text);

#endif
