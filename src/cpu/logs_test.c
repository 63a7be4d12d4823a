// SPDX-License-Identifier: MIT
// Logs, notifications and settings of core dumps.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "cpu/logs.h"
#include "cpu/whole_testing.h"

static char heard[4096];

static void hear(void *data, CUlogLevel level, char *text, size_t len)
{
    assert_int_equal(level, CU_LOG_LEVEL_ERROR);
    assert_int_equal(strlen(text), len);
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s%s|", (char *)data, text);
}

static void add(const char *text)
{
    logs_add(text, strlen(text));
    logs_notify();
}

static void test_callbacks(void **state)
{
    CUlogsCallbackHandle a, b;
    OK(cuLogsRegisterCallback(hear, "a:", &a));
    OK(cuLogsRegisterCallback(hear, "b:", &b));
    add("one");
    OK(cuLogsUnregisterCallback(a));
    IS(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(a));
    add("two");
    OK(cuLogsUnregisterCallback(b));
    add("three");
    assert_string_equal(heard, "a:one|b:one|b:two|");
    IS(CUDA_ERROR_INVALID_VALUE, cuLogsRegisterCallback(NULL, NULL, &a));
    // Other messages of the device go there, too.
    heard[0] = 0;
    OK(cuLogsRegisterCallback(hear, "", &a));
    for (int i = 0; i < 2; i++) {
        heard[0] = 0;
        IS(CUDA_ERROR_NOT_SUPPORTED, cuGLInit());
        assert_non_null(strstr(heard, "cuGLInit"));
    }
    // Of more messages than are kept, the last ones are delivered.
    heard[0] = 0;
    for (int i = 0; i < 60; i++)
        logs_add("z", 1);
    logs_notify();
    assert_int_equal(strlen(heard), 50 * strlen("z|"));
    OK(cuLogsUnregisterCallback(a));
}

static CUlogsCallbackHandle own;
static CUresult own_result;
static unsigned own_calls;

// Causes a message itself, which is delivered afterwards, but not to a callback that was unregistered.
static void leave(void *data, CUlogLevel level, char *text, size_t len)
{
    own_calls++;
    logs_add("caused by a callback", 20);
    logs_notify();
    own_result = cuLogsUnregisterCallback(own);
}

static void test_callback_leaves(void **state)
{
    CUlogsCallbackHandle other;
    OK(cuLogsRegisterCallback(leave, NULL, &own));
    heard[0] = 0;
    OK(cuLogsRegisterCallback(hear, "", &other));
    own_result = CUDA_ERROR_UNKNOWN;
    add("go");
    OK(own_result);
    assert_int_equal(own_calls, 1);
    assert_string_equal(heard, "go|caused by a callback|");
    OK(cuLogsUnregisterCallback(other));
}

static void test_callback_hears_what_follows(void **state)
{
    CUlogsCallbackHandle a;
    logs_add("before", 6);
    heard[0] = 0;
    OK(cuLogsRegisterCallback(hear, "", &a));
    add("after");
    assert_string_equal(heard, "after|");
    OK(cuLogsUnregisterCallback(a));
}

// A callback that is running in another thread.
static atomic_int stage;

static void linger(void *data, CUlogLevel level, char *text, size_t len)
{
    atomic_store(&stage, 1);
    usleep(100000);
    atomic_store(&stage, 2);
}

static void *add_slowly(void *arg)
{
    add("slow");
    return NULL;
}

static void test_unregister_waits(void **state)
{
    CUlogsCallbackHandle a, b;
    pthread_t t;
    OK(cuLogsRegisterCallback(linger, NULL, &a));
    assert_int_equal(pthread_create(&t, NULL, add_slowly, NULL), 0);
    while (!atomic_load(&stage))
        usleep(1000);
    OK(cuLogsUnregisterCallback(a));
    assert_int_equal(atomic_load(&stage), 2);
    OK(cuLogsRegisterCallback(hear, "", &b));
    OK(cuLogsUnregisterCallback(b));
    pthread_join(t, NULL);
}

// Two callbacks unregister each other, each in a thread of its own.
static CUlogsCallbackHandle pair[2];
static pthread_barrier_t both_in;

static void drop_other(void *data, CUlogLevel level, char *text, size_t len)
{
    uintptr_t me = (uintptr_t)data;
    if (text[0] != (char)('0' + me))
        return;
    pthread_barrier_wait(&both_in);
    OK(cuLogsUnregisterCallback(pair[!me]));
}

static void *add_one(void *arg)
{
    add(arg);
    return NULL;
}

static void test_unregister_each_other(void **state)
{
    pthread_t t[2];
    pthread_barrier_init(&both_in, NULL, 2);
    for (uintptr_t i = 0; i < 2; i++)
        OK(cuLogsRegisterCallback(drop_other, (void *)i, &pair[i]));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, add_one, i ? "1" : "0"), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 2; i++)
        IS(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(pair[i]));
    pthread_barrier_destroy(&both_in);
}

// A callback that writes to its text does not change that of the others.
static void scribble(void *data, CUlogLevel level, char *text, size_t len)
{
    memset(text, '#', len);
}

static void test_text_is_own(void **state)
{
    CUlogsCallbackHandle a, b;
    OK(cuLogsRegisterCallback(scribble, NULL, &a));
    OK(cuLogsRegisterCallback(hear, "", &b));
    heard[0] = 0;
    add("clean");
    assert_string_equal(heard, "clean|");
    OK(cuLogsUnregisterCallback(a));
    OK(cuLogsUnregisterCallback(b));
}

// Calls that hold locks when they report an error.
static void test_told_at_once(void **state)
{
    CUcontext ctx = whole_context();
    CUlogsCallbackHandle a;
    CUgraph g;
    CUgraphNode n;
    CUlibrary l;
    CUkernel k;
    CUlinkState s;
    CUgraphNodeParams semaphore = {.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT};
    char wrong[] = WHOLE_HEAD ".visible .entry f() { nonsense; }\n";
    OK(cuGraphCreate(&g, 0));
    OK(cuLogsRegisterCallback(hear, "", &a));
    heard[0] = 0;
    IS(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &semaphore));
    assert_non_null(strstr(heard, "external semaphores"));
    heard[0] = 0;
    OK(cuLibraryLoadData(&l, wrong, NULL, NULL, 0, NULL, NULL, 0));
    assert_true(cuLibraryGetKernel(&k, l, "f") != CUDA_SUCCESS);
    assert_non_null(strstr(heard, "nonsense"));
    heard[0] = 0;
    OK(cuLinkCreate_v2(0, NULL, NULL, &s));
    assert_true(cuLinkAddData_v2(s, CU_JIT_INPUT_PTX, wrong, sizeof wrong, NULL, 0, NULL, NULL) ||
                cuLinkComplete(s, &(void *){NULL}, &(size_t){0}));
    assert_non_null(strstr(heard, "nonsense"));
    OK(cuLinkDestroy(s));
    OK(cuLibraryUnload(l));
    OK(cuLogsUnregisterCallback(a));
    OK(cuGraphDestroy(g));
    OK(cuCtxDestroy_v2(ctx));
}

static void test_told_of_captured_work(void **state)
{
    CUcontext ctx = whole_context();
    CUlogsCallbackHandle a;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_HOST};
    CUmemoryPool pool;
    CUstream stream;
    CUdeviceptr p;
    heard[0] = 0;
    OK(cuLogsRegisterCallback(hear, "", &a));
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    IS(CUDA_ERROR_NOT_SUPPORTED, cuMemAllocFromPoolAsync(&p, 64, pool, stream));
    assert_non_null(strstr(heard, "host memory"));
    OK(cuMemPoolDestroy(pool));
    OK(cuLogsUnregisterCallback(a));
    OK(cuCtxDestroy_v2(ctx));
}

static void test_dump(void **state)
{
    CUlogIterator at, again;
    char text[64];
    size_t size = sizeof text;
    OK(cuLogsCurrent(&at, 0));
    again = at;
    OK(cuLogsDumpToMemory(&at, text, &size, 0));
    assert_int_equal(size, 0);
    add("first");
    add("second");
    size = sizeof text;
    OK(cuLogsDumpToMemory(&at, text, &size, 0));
    assert_string_equal(text, "first\nsecond\n");
    assert_int_equal(size, strlen(text));
    size = sizeof text;
    OK(cuLogsDumpToMemory(&at, text, &size, 0));
    assert_string_equal(text, "");
    // Not all messages fit, then none does.
    at = again;
    add("a third one, which is the last");
    size = sizeof text;
    OK(cuLogsDumpToMemory(&at, text, &size, 0));
    assert_string_equal(text, "first\nsecond\na third one, which is the last\n");
    at = again;
    for (int i = 0; i < 3; i++)
        add("x");
    size = 36;
    OK(cuLogsDumpToMemory(&at, text, &size, 0));
    assert_string_equal(text, "(earlier messages are lost)\nx\nx\nx\n");
    at = again;
    size = 2;
    IS(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&at, text, &size, 0));
    assert_int_equal(size, 0);
    assert_int_equal(at, again);
    IS(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&at, text, NULL, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuLogsCurrent(&at, 1));
}

static void test_dump_to_file(void **state)
{
    char path[] = "/tmp/moat-logs-XXXXXX";
    static char text[40000];
    CUlogIterator at;
    close(mkstemp(path));
    OK(cuLogsCurrent(&at, 0));
    add("to a file");
    OK(cuLogsDumpToFile(&at, path, 0));
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, text, sizeof text), strlen("to a file\n"));
    assert_string_equal(text, "to a file\n");
    // Long messages, and many: the oldest are dropped.
    char line[600];
    memset(line, 'y', sizeof line);
    for (int i = 0; i < 70; i++)
        logs_add(line, sizeof line);
    OK(cuLogsDumpToFile(NULL, path, 0));
    lseek(fd, 0, SEEK_SET);
    assert_int_equal(read(fd, text, sizeof text), 50 * 512 + strlen("(earlier messages are lost)\n"));
    close(fd);
    unlink(path);
    IS(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(NULL, "/no such folder/x", 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(NULL, NULL, 0));
}

static void over_budget(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
}

static void test_notifications(void **state)
{
    CUasyncCallbackHandle a, b;
    OK(cuInit(0));
    OK(cuDeviceRegisterAsyncNotification(0, over_budget, NULL, &a));
    OK(cuDeviceRegisterAsyncNotification(0, over_budget, NULL, &b));
    assert_ptr_not_equal(a, b);
    IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceRegisterAsyncNotification(9, over_budget, NULL, &b));
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceRegisterAsyncNotification(0, NULL, NULL, &b));
    OK(cuDeviceUnregisterAsyncNotification(0, a));
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceUnregisterAsyncNotification(0, a));
    OK(cuDeviceUnregisterAsyncNotification(0, b));
}

static bool flag(bool global, CUcoredumpSettings a)
{
    bool on = false;
    size_t size = sizeof on;
    OK(global ? cuCoredumpGetAttributeGlobal(a, &on, &size) : cuCoredumpGetAttribute(a, &on, &size));
    return on;
}

static void test_coredump(void **state)
{
    CUcontext ctx = whole_context();
    char text[1024], want[64];
    bool on = true, off = false;
    int flags = -1;
    size_t size = 0, one = sizeof on, number = sizeof flags;
    assert_false(flag(true, CU_COREDUMP_ENABLE_ON_EXCEPTION));
    assert_true(flag(false, CU_COREDUMP_TRIGGER_HOST));
    // Global settings hold for a context that has none of its own.
    OK(cuCoredumpSetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, &on, &one));
    assert_true(flag(false, CU_COREDUMP_LIGHTWEIGHT));
    OK(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &number));
    assert_int_equal(flags, CU_COREDUMP_LIGHTWEIGHT_FLAGS);
    OK(cuCoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, &off, &one));
    assert_false(flag(false, CU_COREDUMP_LIGHTWEIGHT));
    assert_true(flag(true, CU_COREDUMP_LIGHTWEIGHT));
    flags = CU_COREDUMP_SKIP_ABORT;
    OK(cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &number));
    assert_false(flag(false, CU_COREDUMP_TRIGGER_HOST));
    flags = 0x1000;
    IS(CUDA_ERROR_INVALID_VALUE, cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &number));
    OK(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &one));
    assert_true(flag(false, CU_COREDUMP_ENABLE_ON_EXCEPTION));
    IS(CUDA_ERROR_NOT_PERMITTED, cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_USER_TRIGGER, &on, &one));
    // Names.
    OK(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, NULL, &size));
    OK(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, &size));
    assert_int_equal(strlen(text) + 1, size);
    snprintf(want, sizeof want, ".%d", (int)getpid());
    assert_true(!strncmp(text, "core.cuda.", 10) && strstr(text, want));
    size = 4;
    IS(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, &size));
    size = 5;
    OK(cuCoredumpSetAttribute(CU_COREDUMP_FILE, "mine", &size));
    size = sizeof text;
    OK(cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, &size));
    assert_string_equal(text, "mine");
    IS(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_MAX, text, &size));
    OK(cuCtxDestroy_v2(ctx));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, &size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_callback_leaves),
        cmocka_unit_test(test_callback_hears_what_follows),
        cmocka_unit_test(test_unregister_waits),
        cmocka_unit_test(test_unregister_each_other),
        cmocka_unit_test(test_text_is_own),
        cmocka_unit_test(test_told_at_once),
        cmocka_unit_test(test_told_of_captured_work),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_dump_to_file),
        cmocka_unit_test(test_notifications),
        cmocka_unit_test(test_coredump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
