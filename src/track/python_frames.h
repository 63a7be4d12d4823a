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

// Stores the addresses of the calling thread's frames, innermost first, at most `most`, and returns how many:
// 0 if it runs no Python code, or in an interpreter whose structures are not known.
unsigned python_frames_get(uint64_t *pcs, unsigned most);

#endif
