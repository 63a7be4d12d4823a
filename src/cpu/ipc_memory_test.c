// SPDX-License-Identifier: MIT
#include <sys/wait.h>
#include <unistd.h>

#include "cpu/memory_fake.h"
#include "cpu/memory_pool.h"
#include "cpu/share_file.h"

enum { LAZY = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, MIB = 1 << 20 };

static bool all_are(CUdeviceptr p, size_t size, unsigned char c)
{
    const unsigned char *bytes = (const unsigned char *)space_host(p);
    size_t n = 0;
    while (n < size && bytes[n] == c)
        n++;
    return n == size;
}

static bool is_shared(CUdeviceptr p)
{
    return *memory_slab_share(memory_plain, p);
}

// An exported allocation moves with its neighbours; nothing else moves, and the move cannot be seen.
static void good_moved(void **state)
{
    size_t before = fake_free_bytes();
    CUdeviceptr small[3], large = fake_alloc(5 * MIB), alone = fake_alloc(3 * MIB);
    CUipcMemHandle a, b, c;
    for (unsigned i = 0; i < 3; i++) {
        small[i] = fake_alloc(1000);
        OK(cuMemsetD8_v2(small[i], (unsigned char)(i + 1), 1000));
    }
    OK(cuMemsetD8_v2(large, 9, 5 * MIB));
    assert_false(is_shared(small[0]));
    OK(cuIpcGetMemHandle(&a, small[1]));
    OK(cuIpcGetMemHandle(&b, small[1] + 999));
    OK(cuIpcGetMemHandle(&c, small[2]));
    assert_memory_equal(&a, &b, sizeof a);
    assert_memory_not_equal(&a, &c, sizeof a);
    OK(cuIpcGetMemHandle(&c, large));
    assert_true(is_shared(small[0]) && is_shared(large) && !is_shared(alone));
    for (unsigned i = 0; i < 3; i++)
        assert_true(all_are(small[i], 1000, (unsigned char)(i + 1)));
    assert_true(all_are(large, 5 * MIB, 9) && space_allows(large, 5 * MIB, SPACE_READ | SPACE_WRITE));
    // Its addresses are private memory again afterwards.
    OK(cuMemFree_v2(large));
    assert_int_equal(fake_alloc(5 * MIB), large);
    assert_false(is_shared(large));
    assert_true(all_are(large, 5 * MIB, 0));
    OK(cuMemFree_v2(large));
    OK(cuMemFree_v2(alone));
    for (unsigned i = 0; i < 3; i++)
        OK(cuMemFree_v2(small[i]));
    assert_int_equal(fake_free_bytes(), before);
    assert_true(memory_slab_valid(memory_plain));
}

// What another process finds, whose tables are a copy of the exporting process's.
static void other_process(const CUipcMemHandle *live, const CUipcMemHandle *dead)
{
    CUdeviceptr p, again;
    size_t size;
    OK(cuIpcOpenMemHandle_v2(&p, *live, LAZY));
    OK(cuIpcOpenMemHandle(&again, *live, LAZY));
    assert_int_equal(p, again);
    OK(cuMemGetAddressRange_v2(&again, &size, p + 10));
    assert_true(again == p && size == 1000);
    assert_true(all_are(p, 1000, 5));
    OK(cuMemsetD8_v2(p, 6, 1000));
    INVALID(cuMemsetD8_v2(p, 6, 1001));
    INVALID(cuMemFree_v2(p));
    INVALID(cuMemFreeAsync(p, NULL));
    INVALID(cuIpcCloseMemHandle(p + 1));
    INVALID(cuIpcOpenMemHandle_v2(&again, *dead, LAZY));
    OK(cuIpcCloseMemHandle(p));
    OK(cuMemsetD8_v2(p, 7, 10));
    OK(cuIpcCloseMemHandle(p));
    INVALID(cuIpcCloseMemHandle(p));
    INVALID(cuMemsetD8_v2(p, 7, 10));
    // Whichever allocation fails, the call returns an error and nothing stays open.
    for (long n = 0; n < 3; n++) {
        mem_fail_after(n);
        CUresult r = cuIpcOpenMemHandle_v2(&p, *live, LAZY);
        mem_fail_after(-1);
        assert_true(r == CUDA_ERROR_OUT_OF_MEMORY || r == CUDA_SUCCESS);
        if (!r)
            OK(cuIpcCloseMemHandle(p));
    }
    // A context that ends closes what it has opened.
    OK(cuIpcOpenMemHandle_v2(&p, *live, LAZY));
    memory_context_free(&fake_ctx);
    assert_false(space_allows(p, 1, SPACE_READ));
}

static void good_opened(void **state)
{
    CUdeviceptr p = fake_alloc(1000), gone = fake_alloc(1000);
    CUipcMemHandle live, dead;
    int status;
    OK(cuMemsetD8_v2(p, 5, 1000));
    OK(cuIpcGetMemHandle(&live, p));
    OK(cuIpcGetMemHandle(&dead, gone));
    OK(cuMemFree_v2(gone));
    pid_t child = fork();
    if (!child) {
        other_process(&live, &dead);
        _exit(0);
    }
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    assert_true(all_are(p, 10, 7) && all_are(p + 10, 990, 6));
    OK(cuMemFree_v2(p));
}

static void bad_handles(void **state)
{
    CUdeviceptr p = fake_alloc(100), q;
    CUipcMemHandle good, handle;
    struct share_ticket t;
    OK(cuIpcGetMemHandle(&good, p));
    INVALID(cuIpcOpenMemHandle_v2(&q, good, 0));
    INVALID(cuIpcOpenMemHandle_v2(NULL, good, LAZY));
    assert_int_equal(cuIpcOpenMemHandle_v2(&q, good, LAZY), CUDA_ERROR_INVALID_CONTEXT);
    memset(&handle, 0, sizeof handle);
    INVALID(cuIpcOpenMemHandle_v2(&q, handle, LAZY));
    // Tickets with wrong contents, as if from another process.
    for (int i = 0; i < 7; i++) {
        assert_true(share_file_read(&t, SHARE_MEMORY, &good));
        t.pid = i == 0 ? 0 : (uint32_t)getppid();
        t.size += i == 1 ? 1 : i == 2 ? MEMORY_UNIT : 0;
        t.offset += i == 3 ? t.size : i == 4 ? 1 : 0;
        t.bytes += i == 5 ? t.size : 0;
        t.id += i == 6;
        share_file_write(&t, &handle);
        INVALID(cuIpcOpenMemHandle_v2(&q, handle, LAZY));
    }
    INVALID(cuIpcGetMemHandle(NULL, p));
    INVALID(cuIpcGetMemHandle(&handle, p + 100));
    INVALID(cuIpcCloseMemHandle(p));
    OK(cuMemFree_v2(p));
    INVALID(cuIpcGetMemHandle(&handle, p));
}

static void bad_no_memory(void **state)
{
    CUdeviceptr p = fake_alloc(100);
    CUipcMemHandle handle;
    OK(cuMemsetD8_v2(p, 3, 100));
    mem_fail_after(0);
    assert_int_equal(cuIpcGetMemHandle(&handle, p), CUDA_ERROR_OUT_OF_MEMORY);
    mem_fail_after(-1);
    assert_true(!is_shared(p) && all_are(p, 100, 3));
    OK(cuIpcGetMemHandle(&handle, p));
    assert_true(is_shared(p) && all_are(p, 100, 3));
    OK(cuMemFree_v2(p));
}

// A pool's memory lies in its file from the start.
static void good_pool(void **state)
{
    enum { FD = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    CUmemPoolPtrExportData data;
    CUmemoryPool pool, other;
    CUdeviceptr p, q;
    size_t before = fake_free_bytes();
    int fd;
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&p, 3000, pool, NULL));
    OK(cuMemsetD8_v2(p, 4, 3000));
    OK(cuMemPoolExportPointer(&data, p));
    OK(cuMemPoolExportToShareableHandle(&fd, pool, (CUmemAllocationHandleType)FD, 0));
    OK(cuMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)fd, (CUmemAllocationHandleType)FD, 0));
    close(fd);
    INVALID(cuMemPoolImportPointer(&q, pool, &data));
    OK(cuMemPoolImportPointer(&q, other, &data));
    assert_true(q != p && all_are(q, 3000, 4));
    OK(cuMemsetD8_v2(q, 8, 3000));
    assert_true(all_are(p, 3000, 8));
    INVALID(cuMemAllocFromPoolAsync(&q, 10, other, NULL));
    OK(cuMemPoolImportPointer(&q, other, &data));
    OK(cuMemFreeAsync(q, NULL));
    fake_run(NULL);
    assert_false(space_allows(q, 1, SPACE_READ));
    data.reserved[23] ^= 0x80;
    INVALID(cuMemPoolImportPointer(&q, other, &data));
    OK(cuMemPoolDestroy(other));
    OK(cuMemFree_v2(p));
    OK(cuMemPoolDestroy(pool));
    assert_int_equal(fake_free_bytes(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_moved),    cmocka_unit_test(good_opened), cmocka_unit_test(bad_handles),
        cmocka_unit_test(bad_no_memory), cmocka_unit_test(good_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
