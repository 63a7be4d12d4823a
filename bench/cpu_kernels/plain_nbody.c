// SPDX-License-Identifier: MIT
#include <math.h>

#include "plain.h"

struct vector {
    float x, y, z, w;
};
static const float SOFTENING = 0.01f;

KERNEL accelerate(struct vector *accelerations, const struct vector *bodies, int n)
{
    for (int i = 0; i < n; i++) {
        struct vector me = bodies[i], sum = {0, 0, 0, 0};
        for (int j = 0; j < n; j++) {
            float x = bodies[j].x - me.x, y = bodies[j].y - me.y, z = bodies[j].z - me.z;
            float inverse = 1 / sqrtf(x * x + y * y + z * z + SOFTENING);
            float pull = bodies[j].w * inverse * inverse * inverse;
            sum.x += pull * x;
            sum.y += pull * y;
            sum.z += pull * z;
        }
        accelerations[i] = sum;
    }
}

KERNEL advance(struct vector *bodies, struct vector *velocities, const struct vector *accelerations,
               float time, int n)
{
    for (int i = 0; i < n; i++) {
        velocities[i].x += accelerations[i].x * time;
        velocities[i].y += accelerations[i].y * time;
        velocities[i].z += accelerations[i].z * time;
        bodies[i].x += velocities[i].x * time;
        bodies[i].y += velocities[i].y * time;
        bodies[i].z += velocities[i].z * time;
    }
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), steps = plain_argument(argc, argv, 2);
    struct vector *bodies = (struct vector *)plain_numbers_float(4 * n, 0, 1 << 20, 1);
    struct vector *velocities = plain_memory(n, sizeof *velocities);
    struct vector *accelerations = plain_memory(n, sizeof *accelerations);
    for (long i = 0; i < 4 * n; i++)
        ((float *)bodies)[i] /= 1 << 20;
    plain_start();
    for (long step = 0; step < steps; step++) {
        if (step > 0)
            advance(bodies, velocities, accelerations, 1e-5f, n);
        accelerate(accelerations, bodies, n);
    }
    plain_stop();
    return plain_end(accelerations[n / 2].x);
}
