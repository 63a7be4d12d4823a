// SPDX-License-Identifier: MIT
#include <unistd.h>

#include "cpu/memory_fake.h"

static const size_t G = MEMORY_UNIT;
static const CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, cpu = {CU_MEM_LOCATION_TYPE_HOST, 0};
static char host[4096];

static CUmemGenericAllocationHandle make(size_t size)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = device};
    CUmemGenericAllocationHandle h = 0;
    OK(cuMemCreate(&h, size, &prop, 0));
    return h;
}

static CUdeviceptr reserve(size_t size)
{
    CUdeviceptr p = 0;
    OK(cuMemAddressReserve(&p, size, 0, 0, 0));
    return p;
}

static CUresult access_set(CUdeviceptr p, size_t size, CUmemAccess_flags flags)
{
    CUmemAccessDesc d = {device, flags};
    return cuMemSetAccess(p, size, &d, 1);
}

static void good_mapping(void **state)
{
    size_t before = fake_free_bytes();
    CUdeviceptr r = reserve(4 * G);
    CUmemGenericAllocationHandle h = make(2 * G), again;
    unsigned long long flags;
    assert_int_equal(fake_free_bytes(), before - 2 * G);
    OK(cuMemMap(r, 2 * G, 0, h, 0));
    assert_false(space_allows(r, 1, SPACE_READ));
    INVALID(cuMemsetD8_v2(r, 1, 1));
    OK(access_set(r, 2 * G, CU_MEM_ACCESS_FLAGS_PROT_READ));
    assert_true(space_allows(r, 2 * G, SPACE_READ));
    assert_false(space_allows(r, 1, SPACE_WRITE));
    INVALID(cuMemcpyHtoD_v2(r, host, 8));
    OK(cuMemcpyDtoH_v2(host, r, 8));
    OK(access_set(r, 2 * G, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    OK(cuMemcpyHtoD_v2(r, host, 8));
    OK(cuMemGetAccess(&flags, &device, r + G));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    // The same memory mapped twice: stores through one mapping are seen through the other.
    OK(cuMemMap(r + 2 * G, 2 * G, 0, h, 0));
    OK(access_set(r + 2 * G, 2 * G, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    OK(cuMemsetD8_v2(r + G, 5, 10));
    assert_int_equal(space_host(r + 3 * G)[9], 5);
    OK(cuMemsetD8_v2(r + G, 6, 2 * G));  // one memset over two mappings
    INVALID(cuMemsetD8_v2(r + G, 6, 3 * G + 1));
    // A handle may be released while there are mappings, and retained again from one.
    OK(cuMemRelease(h));
    INVALID(cuMemRelease(h));
    OK(cuMemUnmap(r, 2 * G));
    assert_false(space_allows(r, 1, SPACE_READ));
    assert_int_equal(space_host(r + 2 * G)[0], 6);
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(r + 3 * G)));
    assert_int_equal(again, h);
    OK(cuMemUnmap(r + 2 * G, 2 * G));
    assert_int_equal(fake_free_bytes(), before - 2 * G);
    OK(cuMemRelease(h));
    assert_int_equal(fake_free_bytes(), before);
    assert_int_equal(space_host(r)[0], 0);  // still mapped, for kernels that are late
    OK(cuMemAddressFree(r, 4 * G));
}

// A kernel that checked its rights just before the unmapping must not reach the memory behind it.
static void good_late_write(void **state)
{
    CUdeviceptr r = reserve(2 * G);
    CUmemGenericAllocationHandle h = make(G);
    OK(cuMemMap(r, G, 0, h, 0));
    OK(access_set(r, G, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    OK(cuMemsetD8_v2(r, 1, G));
    OK(cuMemUnmap(r, G));
    space_host(r)[5] = 9;
    OK(cuMemMap(r + G, G, 0, h, 0));
    assert_int_equal(space_host(r + G)[5], 1);
    OK(cuMemUnmap(r, 2 * G));
    OK(cuMemAddressFree(r, 2 * G));
    OK(cuMemRelease(h));
}

// A copy may span mappings, but not memory of another kind that happens to lie behind.
static void bad_neighbour(void **state)
{
    CUdeviceptr at = fake_alloc(4 * G), r, next;
    OK(cuMemFree_v2(at));
    OK(cuMemAddressReserve(&r, G, 0, at, 0));
    next = fake_alloc(3 * G);
    assert_int_equal(next, r + G);
    CUmemGenericAllocationHandle h = make(G);
    OK(cuMemMap(r, G, 0, h, 0));
    OK(access_set(r, G, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    OK(cuMemsetD8_v2(r, 1, G));
    INVALID(cuMemsetD8_v2(r, 1, G + 1));
    OK(cuMemUnmap(r, G));
    OK(cuMemAddressFree(r, G));
    OK(cuMemRelease(h));
    OK(cuMemFree_v2(next));
}

static void bad_mapping(void **state)
{
    CUdeviceptr r = reserve(8 * G), plain = fake_alloc(2 * G);
    CUmemGenericAllocationHandle h = make(2 * G), one = make(G), x;
    assert_int_equal(cuMemMap(r, G, 0, h, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuMemMap(r, G, G, h, 0), CUDA_ERROR_NOT_SUPPORTED);
    INVALID(cuMemMap(r + 4096, 2 * G, 0, h, 0));
    INVALID(cuMemMap(r, 2 * G, 0, h, 1));
    INVALID(cuMemMap(r, 2 * G, 0, 12345, 0));
    INVALID(cuMemMap(plain, 2 * G, 0, h, 0));
    INVALID(cuMemMap(r + 7 * G, 2 * G, 0, h, 0));
    OK(cuMemMap(r, 2 * G, 0, h, 0));
    INVALID(cuMemMap(r + G, 2 * G, 0, h, 0));
    OK(cuMemMap(r + 2 * G, G, 0, one, 0));
    INVALID(access_set(r, G, CU_MEM_ACCESS_FLAGS_PROT_READ));
    INVALID(access_set(r + G, 2 * G, CU_MEM_ACCESS_FLAGS_PROT_READ));
    INVALID(access_set(r, 4 * G, CU_MEM_ACCESS_FLAGS_PROT_READ));
    INVALID(access_set(r, 2 * G, 2));
    INVALID(access_set(plain, 2 * G, CU_MEM_ACCESS_FLAGS_PROT_READ));
    OK(access_set(r, 3 * G, CU_MEM_ACCESS_FLAGS_PROT_READ));
    CUmemAccessDesc d = {cpu, CU_MEM_ACCESS_FLAGS_PROT_READ};
    assert_int_equal(cuMemSetAccess(r, 2 * G, &d, 1), CUDA_ERROR_NOT_SUPPORTED);
    INVALID(cuMemSetAccess(r, 2 * G, &d, 0));
    INVALID(cuMemSetAccess(r, 2 * G, NULL, 1));
    INVALID(cuMemUnmap(r, G));
    INVALID(cuMemUnmap(r + G, 2 * G));
    INVALID(cuMemUnmap(r, 9 * G));
    INVALID(cuMemUnmap(r, 0));
    INVALID(cuMemFree_v2(r));
    INVALID(cuMemAddressFree(r, 8 * G));
    INVALID(cuMemRetainAllocationHandle(&x, (void *)(uintptr_t)plain));
    OK(cuMemUnmap(r, 8 * G));
    INVALID(cuMemAddressFree(r, G));
    OK(cuMemAddressFree(r, 8 * G));
    INVALID(cuMemAddressFree(r, 8 * G));
    INVALID(cuMemMap(r, 2 * G, 0, h, 0));
    OK(cuMemRelease(h));
    OK(cuMemRelease(one));
    INVALID(cuMemRelease(12345));
    OK(cuMemFree_v2(plain));
}

static void bad_create(void **state)
{
    CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = device}, q = p;
    CUmemGenericAllocationHandle h;
    CUdeviceptr r;
    size_t g;
    INVALID(cuMemCreate(&h, 100, &p, 0));
    INVALID(cuMemCreate(&h, 0, &p, 0));
    INVALID(cuMemCreate(&h, G, &p, 1));
    INVALID(cuMemCreate(NULL, G, &p, 0));
    INVALID(cuMemCreate(&h, G, NULL, 0));
    assert_int_equal(cuMemCreate(&h, (size_t)1 << 45, &p, 0), CUDA_ERROR_OUT_OF_MEMORY);
    q.location.id = 5;
    assert_int_equal(cuMemCreate(&h, G, &q, 0), CUDA_ERROR_INVALID_DEVICE);
    q = p;
    q.type = 0;
    INVALID(cuMemCreate(&h, G, &q, 0));
    OK(cuMemGetAllocationGranularity(&g, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    assert_int_equal(g, G);
    INVALID(cuMemGetAllocationGranularity(&g, &p, 2));
    INVALID(cuMemAddressReserve(&r, 4096, 0, 0, 0));
    INVALID(cuMemAddressReserve(&r, 0, 0, 0, 0));
    INVALID(cuMemAddressReserve(&r, G, 3, 0, 0));
    INVALID(cuMemAddressReserve(&r, G, 0, 100, 0));
    INVALID(cuMemAddressReserve(NULL, G, 0, 0, 0));
    assert_int_equal(cuMemAddressReserve(&r, (size_t)1 << 47, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAddressReserve(&r, G, (size_t)1 << 30, 0, 0));
    assert_int_equal(r % (1 << 30), 0);
    OK(cuMemAddressFree(r, G));
    CUdeviceptr s;
    OK(cuMemAddressReserve(&s, G, 0, r, 0));
    assert_int_equal(s, r);  // a preferred address that is free
    OK(cuMemAddressFree(r, G));
}

// Host memory in the device's range: host and device see it at one address.
static void good_host_mapping(void **state)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = cpu};
    CUmemGenericAllocationHandle h;
    size_t before = fake_free_bytes();
    CUdeviceptr r = reserve(G);
    OK(cuMemCreate(&h, G, &prop, 0));
    assert_int_equal(fake_free_bytes(), before);
    OK(cuMemMap(r, G, 0, h, 0));
    CUmemAccessDesc d[] = {{device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                           {cpu, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    OK(cuMemSetAccess(r, G, d, 2));
    OK(cuMemsetD8_v2(r, 3, G));
    assert_int_equal(((char *)(uintptr_t)r)[G - 1], 3);
    ((char *)(uintptr_t)r)[0] = 4;
    assert_int_equal(space_host(r)[0], 4);
    OK(cuMemUnmap(r, G));
    OK(cuMemRelease(h));
    OK(cuMemAddressFree(r, G));
}

static void good_export(void **state)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = device},
                        got;
    CUmemGenericAllocationHandle h, other, plain = make(G);
    int fd;
    size_t before = fake_free_bytes();
    OK(cuMemCreate(&h, G, &prop, 0));
    INVALID(cuMemExportToShareableHandle(&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    INVALID(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_WIN32, 0));
    OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    INVALID(cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    INVALID(cuMemImportFromShareableHandle(&other, (void *)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUdeviceptr r = reserve(2 * G);
    OK(cuMemMap(r, G, 0, h, 0));
    OK(cuMemMap(r + G, G, 0, other, 0));
    OK(access_set(r, 2 * G, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    OK(cuMemsetD8_v2(r, 8, G));
    assert_int_equal(space_host(r + 2 * G - 1)[0], 8);
    OK(cuMemGetAllocationPropertiesFromHandle(&got, h));
    assert_int_equal(got.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    INVALID(cuMemGetAllocationPropertiesFromHandle(&got, 77));
    OK(cuMemRelease(h));
    OK(cuMemRelease(other));
    OK(cuMemUnmap(r, 2 * G));
    assert_int_equal(fake_free_bytes(), before);
    OK(cuMemRelease(plain));
    OK(cuMemAddressFree(r, 2 * G));
}

// --- random sequences against a model ----------------------------------------------------------------------

enum { BUFFERS = 12, HANDLES = 4, SLOTS = 8, MARKS = 5 };

// A few bytes of each allocation are tracked, by their offsets.
struct memory {
    CUdeviceptr p;  // plain: address
    CUmemGenericAllocationHandle h;
    size_t size;
    unsigned char marks[MARKS];
    bool known[MARKS];
};

static struct memory buffers[BUFFERS], handles[HANDLES];
static CUdeviceptr window;
static int mapped[SLOTS];  // handle in each slot of 2 units; -1: none
static unsigned rights[SLOTS];

static size_t mark_at(const struct memory *m, unsigned i)
{
    return i * (m->size - 1) / (MARKS - 1);
}

static void poke(CUdeviceptr p, struct memory *m, unsigned i, bool allowed)
{
    unsigned char v = (unsigned char)fake_random();
    CUresult r = fake_random() % 2 ? cuMemcpyHtoD_v2(p + mark_at(m, i), &v, 1)
                                   : cuMemsetD8_v2(p + mark_at(m, i), v, 1);
    assert_int_equal(r, allowed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    if (allowed) {
        m->marks[i] = v;
        m->known[i] = true;
    }
}

static void peek(CUdeviceptr p, const struct memory *m, unsigned i, bool allowed)
{
    unsigned char v = 0;
    CUresult r = cuMemcpyDtoH_v2(&v, p + mark_at(m, i), 1);
    assert_int_equal(r, allowed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    if (allowed && m->known[i])
        assert_int_equal(v, m->marks[i]);
}

static void step_plain(void)
{
    struct memory *m = &buffers[fake_random() % BUFFERS];
    unsigned i = fake_random() % MARKS;
    if (!m->p) {
        *m = (struct memory){.size = MARKS + fake_random() % (fake_random() % 3 ? 3000 : 5 << 20)};
        m->p = fake_alloc(m->size);
    } else if (fake_random() % 6 == 0) {
        OK(cuMemFree_v2(m->p));
        INVALID(cuMemsetD8_v2(m->p, 0, 1));
        m->p = 0;
    } else if (fake_random() % 2) {
        poke(m->p, m, i, true);
        INVALID(cuMemsetD8_v2(m->p, 0, m->size + 1));
    } else {
        peek(m->p, m, i, true);
    }
}

static void step_mapped(void)
{
    unsigned s = fake_random() % SLOTS, i = fake_random() % MARKS;
    CUdeviceptr p = window + s * 2 * G;
    if (mapped[s] < 0) {
        mapped[s] = (int)(fake_random() % HANDLES);
        struct memory *m = &handles[mapped[s]];
        if (!m->h)
            *m = (struct memory){.h = make(2 * G), .size = 2 * G};
        INVALID(cuMemsetD8_v2(p, 0, 1));
        OK(cuMemMap(p, 2 * G, 0, m->h, 0));
        rights[s] = 0;
        return;
    }
    struct memory *m = &handles[mapped[s]];
    assert_int_equal(space_allows(p, 2 * G, SPACE_READ), rights[s] & SPACE_READ);
    switch (fake_random() % 6) {
    case 0:
        OK(cuMemUnmap(p, 2 * G));
        mapped[s] = -1;
        assert_false(space_allows(p, 1, SPACE_READ));
        break;
    case 1:
        rights[s] = (unsigned[]){0, 1, 3, 3}[fake_random() % 4];
        OK(access_set(p, 2 * G, rights[s]));
        break;
    case 2: poke(p, m, i, rights[s] & SPACE_WRITE); break;
    default: peek(p, m, i, rights[s] & SPACE_READ);
    }
}

static void good_random(void **state)
{
    size_t before = fake_free_bytes();
    window = reserve(SLOTS * 2 * G);
    for (int s = 0; s < SLOTS; s++)
        mapped[s] = -1;
    for (int step = 0; step < 20000; step++) {
        if (fake_random() % 2)
            step_plain();
        else
            step_mapped();
    }
    OK(cuMemUnmap(window, SLOTS * 2 * G));
    OK(cuMemAddressFree(window, SLOTS * 2 * G));
    for (int i = 0; i < HANDLES; i++)
        OK(cuMemRelease(handles[i].h));
    for (int i = 0; i < BUFFERS; i++)
        OK(cuMemFree_v2(buffers[i].p));
    assert_int_equal(fake_free_bytes(), before);
}

static void bad_no_memory(void **state)
{
    size_t before = fake_free_bytes();
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = device};
    for (int n = 0; n < 10; n++) {
        CUdeviceptr r = 0;
        CUmemGenericAllocationHandle h = 0;
        mem_fail_after(n);
        cuMemAddressReserve(&r, G, 0, 0, 0);
        cuMemCreate(&h, G, &prop, 0);
        bool done = r && h && !cuMemMap(r, G, 0, h, 0);
        mem_fail_after(-1);
        if (done)
            OK(cuMemUnmap(r, G));
        if (r)
            OK(cuMemAddressFree(r, G));
        if (h)
            OK(cuMemRelease(h));
        assert_int_equal(fake_free_bytes(), before);
    }
}

// Reserves all addresses that it gets, largest pieces first. There is still room for allocations.
static void good_addresses_for_allocations(void **state)
{
    CUdeviceptr p, r[64];
    size_t size[64], most = 0;
    unsigned n = 0;
    for (size_t want = space.device_size; want >= G; want /= 2)
        for (; n < 64 && !cuMemAddressReserve(&r[n], want, 0, 0, 0); n++)
            most += size[n] = want;
    assert_true(n && n < 64 && most >= space.device_size / 2);
    OK(cuMemAlloc_v2(&p, 40 * G));
    OK(cuMemFree_v2(p));
    while (n--)
        OK(cuMemAddressFree(r[n], size[n]));
    OK(cuMemAddressFree(reserve(most), most));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_mapping),  cmocka_unit_test(good_late_write),
        cmocka_unit_test(bad_neighbour), cmocka_unit_test(bad_mapping),
        cmocka_unit_test(bad_create),    cmocka_unit_test(good_host_mapping),
        cmocka_unit_test(good_export),   cmocka_unit_test(good_random),
        cmocka_unit_test(bad_no_memory), cmocka_unit_test(good_addresses_for_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
