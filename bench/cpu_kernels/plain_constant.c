// SPDX-License-Identifier: MIT
#include "plain.h"

enum { RADIUS = 8, TAPS = 2 * RADIUS + 1 };

static float weights[TAPS];
static const float scales[4] = {1, -1, 2, -2};

KERNEL convolve(float *out, const float *in, int n)
{
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int tap = 0; tap < TAPS; tap++) {
            int source = i + tap - RADIUS;
            if (source >= 0 && source < n)
                sum += weights[tap] * in[source];
        }
        out[i] = sum * scales[i % 4];
    }
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2);
    float *in = plain_numbers_float(n, -100, 100, 1), *taps = plain_numbers_float(TAPS, -20, 20, 2);
    float *out = plain_memory(n, sizeof *out);
    for (int i = 0; i < TAPS; i++)
        weights[i] = taps[i];
    plain_start();
    for (long i = 0; i < repeats; i++)
        convolve(out, in, n);
    plain_stop();
    return plain_end(out[n / 2]);
}
