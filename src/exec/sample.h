// SPDX-License-Identifier: MIT
// What a texture unit computes: from coordinates to texels. Internal to src/exec.
#ifndef MOAT_EXEC_SAMPLE_H
#define MOAT_EXEC_SAMPLE_H

#include "exec/texture.h"

enum sample_how { SAMPLE_PLAIN, SAMPLE_BASE, SAMPLE_LEVEL, SAMPLE_GRADIENT };

// One lane's question.
struct sample {
    uint8_t shape;   // enum texture_shape: the instruction's
    uint8_t how;     // enum sample_how
    bool integers;   // of place: coordinates are
    uint8_t gather;  // tld4: the channel + 1; 0: tex
    union {
        float f;
        int32_t i;
        uint32_t u;
    } place[3];  // x, y, z; SAMPLE_LEVEL with integers: level is one, too
    uint32_t layer;
    float level;
    float dx[3], dy[3];  // SAMPLE_GRADIENT
    int32_t offset[3];
};

// The four components. False: memory that the kernel may not read, at *bad.
bool sample_read(const struct texture *t, const struct sample *s, uint32_t out[4], uint64_t *bad);

#endif
