// SPDX-License-Identifier: MIT
#include "plain.h"

KERNEL stencil(float *restrict out, const float *restrict in, int side)
{
    int plane = side * side, i = 0;
    for (int z = 0; z < side; z++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++, i++) {
                float centre = in[i];
                if (x > 0 && y > 0 && z > 0 && x < side - 1 && y < side - 1 && z < side - 1)
                    centre =
                        0.25f * centre + 0.125f * (((in[i - 1] + in[i + 1]) + (in[i - side] + in[i + side])) +
                                                   (in[i - plane] + in[i + plane]));
                out[i] = centre;
            }
}

int main(int argc, char **argv)
{
    long side = plain_argument(argc, argv, 1), steps = plain_argument(argc, argv, 2);
    long repeats = plain_argument(argc, argv, 3);
    size_t cells = side * side * side;
    float *in = plain_numbers_float(cells, 0, 1000, 1);
    float *buffers[2] = {plain_memory(cells, sizeof *in), plain_memory(cells, sizeof *in)};
    plain_start();
    for (long i = 0; i < repeats * steps; i++) {
        long step = i % steps;
        stencil(buffers[step % 2], step == 0 ? in : buffers[(step - 1) % 2], side);
    }
    plain_stop();
    return plain_end(buffers[(steps - 1) % 2][cells / 2]);
}
