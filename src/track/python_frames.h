// SPDX-License-Identifier: MIT
// The Python functions and lines in which the calling thread is, as frames of script_frames.h, for any call
// that Python code makes into the driver or a runtime: by ctypes, cffi or an extension module.
//
// The interpreter's own structures are read, without its lock: a thread's frames do not change while it is
// inside of the call, and they hold their code objects and the texts of these. Nothing of the interpreter
// is called but functions that only read. CPython 3.6 to 3.13 keep the structures that are read the same
// within a version; before they are trusted, one stack is read through the kernel, which cannot fault.
#ifndef MOAT_TRACK_PYTHON_FRAMES_H
#define MOAT_TRACK_PYTHON_FRAMES_H

#include <stdint.h>

enum { PYTHON_FRAMES_MOST = 16 };

// Looks for an interpreter in the program and the libraries that it was started with. Takes the dynamic
// loader's lock.
void python_frames_init(void);

// What identifies the frames of a thread: their code objects with the texts of these, and the instructions.
struct python_walk {
    unsigned count;
    uint64_t hash;  // over all of them
    struct python_row {
        const char *frame, *code, *name, *file;
        uint64_t at;  // bytes into the code, or the line
    } rows[PYTHON_FRAMES_MOST];
};

// Walks the calling thread's frames, innermost first, at most `most`, and returns how many there are: 0 if it
// runs no Python code, or in an interpreter whose structures are not known.
unsigned python_frames_walk(struct python_walk *walk, unsigned most);

// Stores the addresses of the frames of a walk that the calling thread has just made, and returns how many it
// could make.
unsigned python_frames_get(const struct python_walk *walk, uint64_t *pcs);

#endif
