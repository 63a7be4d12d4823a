// SPDX-License-Identifier: MIT
#include <math.h>

#include "plain.h"

struct complex {
    float x, y;
};

KERNEL stage(struct complex *out, const struct complex *in, int n, int half, int batches)
{
    for (int batch = 0; batch < batches; batch++, in += n, out += n)
        for (int i = 0; i < n / 2; i++) {
            int k = i & (half - 1), target = 2 * i - k;
            float angle = -(float)k / (float)half * (float)M_PI, sine, cosine;
            sincosf(angle, &sine, &cosine);
            struct complex a = in[i], b = in[i + n / 2];
            struct complex turned = {b.x * cosine - b.y * sine, b.x * sine + b.y * cosine};
            out[target] = (struct complex){a.x + turned.x, a.y + turned.y};
            out[target + half] = (struct complex){a.x - turned.x, a.y - turned.y};
        }
}

int main(int argc, char **argv)
{
    long exponent = plain_argument(argc, argv, 1), batches = plain_argument(argc, argv, 2);
    long repeats = plain_argument(argc, argv, 3);
    size_t n = (size_t)1 << exponent, count = n * batches;
    float *parts = plain_numbers_float(2 * count, -1000, 1000, 1);
    struct complex *in = plain_memory(count, sizeof *in);
    struct complex *buffers[2] = {plain_memory(count, sizeof *in), plain_memory(count, sizeof *in)};
    for (size_t i = 0; i < count; i++)
        in[i] = (struct complex){parts[2 * i] / 1000, parts[2 * i + 1] / 1000};
    plain_start();
    for (long i = 0; i < repeats * exponent; i++) {
        long level = i % exponent;
        stage(buffers[level % 2], level == 0 ? in : buffers[(level - 1) % 2], n, 1 << level, batches);
    }
    plain_stop();
    return plain_end(buffers[(exponent - 1) % 2][1].x);
}
