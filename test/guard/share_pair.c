// SPDX-License-Identifier: MIT
// Two processes share memory by cuIpcGetMemHandle:
//   share_pair good     both find what the other wrote; handles are opened and closed twice; freed memory
//                       cannot be opened
//   share_pair bad      the second copies one byte too many
// The first starts the second before it uses the driver. They communicate through pipes. Status 0; 77 if the
// driver has no such handles.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/driver.h"

enum { LAZY = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS };
static const uint32_t sizes[] = {100, 100, 4096, (3 << 20) + 17};
enum { BUFFERS = sizeof sizes / sizeof *sizes };

static struct driver d;
static const char *who = "first";

#define NEED(condition) need((condition), #condition, __LINE__)

static void need(bool good, const char *what, int line)
{
    if (good)
        return;
    printf("share_pair.c:%d: %s process: not so: %s\n", line, who, what);
    exit(2);
}

static void say(int to, const void *bytes, size_t size)
{
    NEED(write(to, bytes, size) == (ssize_t)size);
}

static void hear(int from, void *bytes, size_t size)
{
    for (size_t n = 0; n < size;) {
        ssize_t more = read(from, (char *)bytes + n, size - n);
        NEED(more > 0);
        n += (size_t)more;
    }
}

static void start(void)
{
    char why[200];
    CUcontext context;
    if (driver_open(&d, NULL, why, sizeof why)) {
        puts(why);
        exit(77);
    }
    NEED(!d.cuInit(0) && !d.cuDevicePrimaryCtxRetain(&context, 0) && !d.cuCtxSetCurrent(context));
}

static bool all_are(CUdeviceptr p, uint32_t size, unsigned char c)
{
    unsigned char *bytes = malloc(size);
    NEED(bytes && !d.cuMemcpyDtoH_v2(bytes, p, size));
    bool good = true;
    for (uint32_t i = 0; i < size; i++)
        good &= bytes[i] == c;
    free(bytes);
    return good;
}

static void use_one(const CUipcMemHandle *handle, uint32_t size, unsigned char c, bool bad)
{
    CUdeviceptr p, again;
    unsigned char byte[64];
    NEED(!d.cuIpcOpenMemHandle_v2(&p, *handle, LAZY));
    NEED(all_are(p, size, c));
    NEED(!d.cuMemsetD8_v2(p, (unsigned char)(c + 1), size));
    if (bad)
        d.cuMemcpyDtoH_v2(byte, p + size - 10, 11);
    NEED(!d.cuIpcOpenMemHandle_v2(&again, *handle, LAZY) && again == p);
    NEED(!d.cuIpcCloseMemHandle(p));
    NEED(all_are(p, size, (unsigned char)(c + 1)));
    NEED(!d.cuIpcCloseMemHandle(p));
}

static int second(int from, int to, bool bad)
{
    CUipcMemHandle handle;
    CUdeviceptr p;
    who = "second";
    start();
    for (unsigned i = 0; i < BUFFERS; i++) {
        hear(from, &handle, sizeof handle);
        use_one(&handle, sizes[i], (unsigned char)(10 * i), bad && i == 0);
        say(to, "y", 1);
    }
    hear(from, &handle, sizeof handle);  // of a freed buffer
    say(to, d.cuIpcOpenMemHandle_v2(&p, handle, LAZY) ? "n" : "y", 1);
    return 0;
}

// Handles of different buffers differ; handles of one buffer are equal.
static void share_all(int from, int to)
{
    CUdeviceptr buffers[BUFFERS];
    CUipcMemHandle handles[BUFFERS], again;
    char answer;
    for (unsigned i = 0; i < BUFFERS; i++) {
        NEED(!d.cuMemAlloc_v2(&buffers[i], sizes[i]));
        NEED(!d.cuMemsetD8_v2(buffers[i], (unsigned char)(10 * i), sizes[i]) && !d.cuCtxSynchronize());
        CUresult r = d.cuIpcGetMemHandle(&handles[i], buffers[i]);
        if (r == CUDA_ERROR_NOT_SUPPORTED) {
            puts("there are no such handles");
            exit(77);
        }
        NEED(!r && !d.cuIpcGetMemHandle(&again, buffers[i]));
        NEED(memcmp(&again, &handles[i], sizeof again) == 0);
        NEED(i != 1 || memcmp(&handles[0], &handles[1], sizeof again) != 0);
    }
    for (unsigned i = 0; i < BUFFERS; i++) {
        say(to, &handles[i], sizeof handles[i]);
        hear(from, &answer, 1);
        NEED(all_are(buffers[i], sizes[i], (unsigned char)(10 * i + 1)));
    }
    // A stream-ordered free ends the sharing too.
    for (unsigned i = 0; i < BUFFERS; i++)
        NEED(!(i == 3 ? d.cuMemFreeAsync(buffers[i], NULL) : d.cuMemFree_v2(buffers[i])));
    NEED(!d.cuCtxSynchronize());
    say(to, &handles[3], sizeof handles[3]);
    hear(from, &answer, 1);
    printf("what was freed %s\n", answer == 'n' ? "is gone" : "can be opened");
}

int main(int argc, char **argv)
{
    int there[2], back[2], status;
    char numbers[2][16];
    if (argc == 4)
        return second(atoi(argv[2]), atoi(argv[3]), strcmp(argv[1], "bad") == 0);
    if (argc != 2) {
        fputs("usage: share_pair good|bad\n", stderr);
        return 2;
    }
    NEED(!pipe(there) && !pipe(back));
    snprintf(numbers[0], sizeof *numbers, "%d", there[0]);
    snprintf(numbers[1], sizeof *numbers, "%d", back[1]);
    pid_t child = fork();
    if (!child) {
        execl("/proc/self/exe", argv[0], argv[1], numbers[0], numbers[1], (char *)NULL);
        _exit(3);
    }
    NEED(child > 0 && !close(there[0]) && !close(back[1]));
    start();
    share_all(back[0], there[1]);
    NEED(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}
