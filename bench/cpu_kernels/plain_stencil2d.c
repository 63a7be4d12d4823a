// SPDX-License-Identifier: MIT
#include "plain.h"

KERNEL stencil(float *out, const float *in, int width, int height)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int i = y * width + x;
            float centre = in[i];
            if (x > 0 && y > 0 && x < width - 1 && y < height - 1)
                centre = 0.5f * centre + 0.125f * ((in[i - width] + in[i + width]) + (in[i - 1] + in[i + 1]));
            out[i] = centre;
        }
}

int main(int argc, char **argv)
{
    long width = plain_argument(argc, argv, 1), height = plain_argument(argc, argv, 2);
    long steps = plain_argument(argc, argv, 3), repeats = plain_argument(argc, argv, 4);
    size_t cells = width * height;
    float *in = plain_numbers_float(cells, 0, 1000, 1);
    float *buffers[2] = {plain_memory(cells, sizeof *in), plain_memory(cells, sizeof *in)};
    plain_start();
    for (long i = 0; i < repeats * steps; i++) {
        long step = i % steps;
        stencil(buffers[step % 2], step == 0 ? in : buffers[(step - 1) % 2], width, height);
    }
    plain_stop();
    return plain_end(buffers[(steps - 1) % 2][cells / 2]);
}
