// SPDX-License-Identifier: MIT
// The source lines of a statement, as a call stack: functions that were inlined, innermost first, and the
// function itself.
#ifndef MOAT_FLOW_PLACE_H
#define MOAT_FLOW_PLACE_H

#include "ptx/ptx.h"

enum { PLACE_FRAMES = 16, PLACE_NAME = 512 };

struct place_frame {
    struct str function;  // of an inlined function: for ptx_debug_text; empty if not known
    struct str file;      // as .file has it; empty if not known
    uint32_t line;        // 0 if not known
    bool inlined;         // into the next frame
};

// Stores the frames and returns their number, at least 1.
unsigned place_frames(const struct ptx_module *m, const struct ptx_func *f, uint32_t stmt,
                      struct place_frame frames[PLACE_FRAMES]);

// Copies the name of a frame's function, truncated to PLACE_NAME bytes with its NUL.
void place_function(const struct place_frame *frame, char name[PLACE_NAME]);

// Returns the line of the statement in the PTX text, from 1; 0 if it is not from a text.
uint32_t place_ptx_line(const struct ptx_module *m, const struct ptx_func *f, uint32_t stmt);

#endif
