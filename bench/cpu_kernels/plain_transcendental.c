// SPDX-License-Identifier: MIT
#include <math.h>

#include "plain.h"

enum { FUNCTIONS = 12 };

#define EVALUATE(T, name, f)                                               \
    static T name(int function, T x)                                       \
    {                                                                      \
        switch (function) {                                                \
        case 0: return sin##f(x);                                          \
        case 1: return cos##f(x) + tan##f(x / 8);                          \
        case 2: return exp##f(x / 4);                                      \
        case 3: return log##f(x + 1);                                      \
        case 4: return pow##f(x + 1, x / 10);                              \
        case 5: return erf##f(x - 3);                                      \
        case 6: return tgamma##f(x / 4 + 1);                               \
        case 7: return atan2##f(x, x + 2) + asin##f(x / 16);               \
        case 8: return sqrt##f(x) + cbrt##f(x);                            \
        case 9: return sinh##f(x / 4) + tanh##f(x);                        \
        case 10: return fmod##f(x * 7, 3) + floor##f(x) - log2##f(x + 2);  \
        default: return hypot##f(x, 3) + acos##f(x / 16) + exp2##f(x / 4); \
        }                                                                  \
    }
EVALUATE(double, evaluate, )
EVALUATE(float, evaluatef, f)

KERNEL evaluate_all(double *doubles, float *floats, const double *in, int n)
{
    for (int i = 0; i < n; i++) {
        doubles[i] = evaluate(i % FUNCTIONS, in[i]);
        floats[i] = evaluatef(i % FUNCTIONS, (float)in[i]);
    }
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2);
    double *in = plain_numbers_double(n, 0, 16 << 10, 1), *doubles = plain_memory(n, sizeof *doubles);
    float *floats = plain_memory(n, sizeof *floats);
    for (long i = 0; i < n; i++)
        in[i] = ldexp(in[i], -10);
    plain_start();
    for (long i = 0; i < repeats; i++)
        evaluate_all(doubles, floats, in, n);
    plain_stop();
    return plain_end(doubles[n / 2] + (double)floats[n / 3]);
}
