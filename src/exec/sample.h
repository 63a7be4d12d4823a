// SPDX-License-Identifier: MIT
// What a texture unit computes: texels from coordinates. Internal to src/exec.
#ifndef MOAT_EXEC_SAMPLE_H
#define MOAT_EXEC_SAMPLE_H

#include "exec/texture.h"

enum sample_how { SAMPLE_PLAIN, SAMPLE_BASE, SAMPLE_LEVEL, SAMPLE_GRADIENT };

// One lane's access.
struct sample {
    uint8_t shape;   // enum texture_shape, from the instruction
    uint8_t how;     // enum sample_how
    bool integers;   // coordinates in place are integers
    uint8_t gather;  // tld4: the channel + 1; 0: tex
    union {
        float f;
        int32_t i;
        uint32_t u;
    } place[3];  // x, y, z
    uint32_t layer;
    float level;         // SAMPLE_LEVEL; integral if `integers`
    float dx[3], dy[3];  // SAMPLE_GRADIENT
    int32_t offset[3];
};

// Computes the four components. Returns false if the kernel may not read the memory at *bad.
bool sample_read(const struct texture *t, const struct sample *s, uint32_t out[4], uint64_t *bad);

#endif
