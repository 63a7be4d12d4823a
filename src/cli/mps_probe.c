// SPDX-License-Identifier: MIT
#include "cli/mps_probe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/driver.h"

enum { PROBE_SECONDS = 60, NO_DRIVER = -1 };

static int make_context(const char *path)
{
    struct driver d;
    char why[256];
    CUdevice device;
    CUcontext context;
    if (driver_open(&d, path, why, sizeof why) || !d.cuInit || !d.cuDeviceGet || !d.cuDevicePrimaryCtxRetain)
        return NO_DRIVER;
    CUresult r = d.cuInit(0);
    r = r ? r : d.cuDeviceGet(&device, 0);
    return (int)(r ? r : d.cuDevicePrimaryCtxRetain(&context, device));
}

// Waits for the result. Returns false if the process ended without one, or does not answer.
static bool wait_for(int from, int *result)
{
    struct pollfd p = {from, POLLIN, 0};
    int ready;
    do
        ready = poll(&p, 1, PROBE_SECONDS * 1000);
    while (ready < 0 && errno == EINTR);
    return ready > 0 && read(from, result, sizeof *result) == sizeof *result;
}

static enum mps_probe judge(int result, char *why, size_t size)
{
    if (result == NO_DRIVER) {
        snprintf(why, size, "there is no driver that could make a context");
        return MPS_UNKNOWN;
    }
    switch ((CUresult)result) {
    case CUDA_SUCCESS: return MPS_ACCEPTS;
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    // The probe has launched nothing: the fault is that of another client, whose end the server waits for.
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED: return MPS_REFUSES;
    case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
    case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED: return MPS_FULL;
    default: break;
    }
    const char *text = driver_result_text((CUresult)result);
    snprintf(why, size, "a new client gets error %d: %s", result, text ? text : "not known");
    return MPS_UNKNOWN;
}

enum mps_probe mps_probe(const char *driver, char *why, size_t size)
{
    int ends[2], result;
    pid_t child = pipe(ends) ? -1 : fork();
    if (child < 0) {
        snprintf(why, size, "cannot start a client: %s", strerror(errno));
        return MPS_UNKNOWN;
    }
    if (!child) {
        result = make_context(driver);
        ssize_t n = write(ends[1], &result, sizeof result);
        _exit(n < 0);
    }
    close(ends[1]);
    bool answered = wait_for(ends[0], &result);
    close(ends[0]);
    if (!answered)
        kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (answered)
        return judge(result, why, size);
    snprintf(why, size, "a new client has not got a context for %d seconds", PROBE_SECONDS);
    return MPS_UNKNOWN;
}
