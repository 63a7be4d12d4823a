// SPDX-License-Identifier: MIT
#include "cpu/whole_testing.h"

static void test_not_before_init(void **state)
{
    int n;
    IS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&n));
    IS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    OK(cuDriverGetVersion(&n));
    assert_int_equal(n, 13000);
    IS(CUDA_ERROR_INVALID_VALUE, cuDriverGetVersion(NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    OK(cuInit(0));
    OK(cuInit(0));
}

static void test_there_is_one(void **state)
{
    CUdevice d = -7;
    int n;
    OK(cuDeviceGetCount(&n));
    assert_int_equal(n, 1);
    OK(cuDeviceGet(&d, 0));
    assert_int_equal(d, 0);
    IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&d, 1));
    IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&d, -1));
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(NULL, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetCount(NULL));
}

static int attribute(CUdevice_attribute a)
{
    int v = -77;
    OK(cuDeviceGetAttribute(&v, a, 0));
    return v;
}

static void test_every_attribute_answers(void **state)
{
    int v;
    for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
        assert_int_not_equal(attribute((CUdevice_attribute)i), -77);
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&v, (CUdevice_attribute)0, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&v, (CUdevice_attribute)-1, 0));
    IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1));
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
}

static void test_attributes_agree(void **state)
{
    CUdevprop p;
    int major, minor;
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) >= 1);
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), device_sm_count());
    OK(cuDeviceComputeCapability(&major, &minor, 0));
    assert_int_equal(major * 10 + minor, device_capability());
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), major);
    OK(cuDeviceGetProperties(&p, 0));
    assert_int_equal(p.maxThreadsDim[2], attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) +
                         attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK),
                     attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_NUMA_ID), -1);
}

static void test_names(void **state)
{
    char name[100], id[13];
    CUuuid a, b;
    CUdevice d;
    size_t width;
    OK(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 0));
    assert_int_equal(width, 268435456);
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 3, 0));
    OK(cuDeviceGetName(name, sizeof name, 0));
    assert_int_equal(strncmp(name, "moat CPU device (", 17), 0);
    OK(cuDeviceGetName(name, 5, 0));
    assert_string_equal(name, "moat");
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(name, 0, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(NULL, 5, 0));
    IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, 5, 2));
    OK(cuDeviceGetPCIBusId(id, sizeof id, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(name, 12, 0));
    assert_string_equal(name, "0000:00:00.");
    OK(cuDeviceGetByPCIBusId(&d, id));
    assert_int_equal(d, 0);
    OK(cuDeviceGetByPCIBusId(&d, "00:00.0"));
    IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&d, "0000:ff:00.0"));
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&d, "zzz"));
    OK(cuDeviceGetUuid(&a, 0));
    OK(cuDeviceGetUuid_v2(&b, 0));
    assert_memory_equal(&a, &b, sizeof a);
}

static void test_memory(void **state)
{
    size_t all;
    unsigned some;
    OK(cuDeviceTotalMem_v2(&all, 0));
    assert_int_equal(all, device_memory());
    OK(cuDeviceTotalMem(&some, 0));
    assert_true(some == all || some == UINT32_MAX);
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceTotalMem(NULL, 0));
    IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem_v2(&all, 1));
}

static void test_no_peers(void **state)
{
    int v = 7;
    OK(cuDeviceCanAccessPeer(&v, 0, 0));
    assert_int_equal(v, 0);
    IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&v, 0, 1));
    IS(CUDA_ERROR_INVALID_DEVICE,
       cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_before_init),  // must be the first
        cmocka_unit_test(test_there_is_one),     cmocka_unit_test(test_every_attribute_answers),
        cmocka_unit_test(test_attributes_agree), cmocka_unit_test(test_names),
        cmocka_unit_test(test_memory),           cmocka_unit_test(test_no_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
