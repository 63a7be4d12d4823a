// SPDX-License-Identifier: MIT
#include "runtime/rt_channel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

struct row {
    cudaChannelFormatKind kind;
    int bits;
    unsigned channels;
    CUarray_format format;
};

static const struct row rows[] = {
#define CHANNEL(kind, bits, channels, format) \
    {cudaChannelFormatKind##kind, bits, channels, CU_AD_FORMAT_##format},
#include "runtime/rt_channels.def"
};

static cudaChannelFormatDesc describe(int bits, unsigned channels, cudaChannelFormatKind kind)
{
    return (cudaChannelFormatDesc){bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0,
                                   channels > 3 ? bits : 0, kind};
}

// Every format that can be described is converted back to itself.
static void test_back_and_forth(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (unsigned channels = 1; channels <= 4; channels++) {
            cudaChannelFormatDesc desc = describe(rows[i].bits, channels, rows[i].kind), found;
            CUarray_format format;
            unsigned count;
            bool allowed = rows[i].channels ? channels == rows[i].channels : channels != 3;

            assert_int_equal(rt_channel_to_driver(&desc, &format, &count),
                             allowed ? cudaSuccess : cudaErrorInvalidChannelDescriptor);
            if (!allowed)
                continue;
            assert_int_equal(format, rows[i].format);
            assert_int_equal(count, channels);
            assert_int_equal(rt_channel_from_driver(format, count, &found), cudaSuccess);
            assert_memory_equal(&found, &desc, sizeof desc);
        }
    }
}

static void test_refused(void **state)
{
    static const cudaChannelFormatDesc bad[] = {
        {0, 0, 0, 0, cudaChannelFormatKindUnsigned}, {8, 16, 0, 0, cudaChannelFormatKindUnsigned},
        {8, 0, 8, 0, cudaChannelFormatKindUnsigned}, {0, 8, 0, 0, cudaChannelFormatKindUnsigned},
        {64, 0, 0, 0, cudaChannelFormatKindSigned},  {8, 0, 0, 0, cudaChannelFormatKindFloat},
        {32, 32, 32, 0, cudaChannelFormatKindFloat}, {32, 0, 0, 0, cudaChannelFormatKindNone},
        {8, 0, 0, 0, (cudaChannelFormatKind)1000},   {-8, -8, 0, 0, cudaChannelFormatKindSigned},
    };
    CUarray_format format;
    unsigned channels;
    cudaChannelFormatDesc desc;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(rt_channel_to_driver(&bad[i], &format, &channels),
                         cudaErrorInvalidChannelDescriptor);
    assert_int_equal(rt_channel_from_driver((CUarray_format)0x7777, 1, &desc),
                     cudaErrorInvalidChannelDescriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_back_and_forth),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
