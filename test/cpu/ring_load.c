// SPDX-License-Identifier: MIT
// The ring of errors, written by kernels and read while they run.
//   ring_load RECORDS BLOCKS THREADS CALLS
// Each of BLOCKS * THREADS threads reports CALLS times with the function that passes put into modules. Every
// record that arrives is checked; all others must be counted as lost. Then some threads report and one of
// them traps: what was reported must arrive all the same. Prints "records N lost M"; exits with 1 if
// something was wrong.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "kheap/kheap.h"
#include "ring/error_ring.h"

enum { KIND = 3, SITE = 7, LAST_THREADS = 64 };

// The heap's functions as well, because a module may need both.
static const char head_text[] = ".version 6.3\n.target sm_70\n.address_size 64\n";
static const char kernel_text[] =
    ".visible .entry report_all(.param .u32 calls, .param .u64 what, .param .u32 trapping)\n"
    "{\n"
    ".reg .pred %p<3>;\n"
    ".reg .b32 %r<8>;\n"
    ".reg .b64 %rd<6>;\n"
    "ld.param.u32 %r1, [calls];\n"
    "ld.param.u64 %rd1, [what];\n"
    "ld.param.u32 %r6, [trapping];\n"
    "mov.u32 %r2, %ctaid.x;\n"
    "mov.u32 %r3, %ntid.x;\n"
    "mov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r2, %r2, %r3, %r4;\n"
    "cvt.u64.u32 %rd2, %r2;\n"
    "shl.b64 %rd3, %rd2, 4;\n"
    "not.b64 %rd4, %rd2;\n"
    "mov.u32 %r5, 0;\n"
    "more:\n"
    "setp.ge.u32 %p1, %r5, %r1;\n"
    "@%p1 bra done;\n"
    "cvt.u64.u32 %rd5, %r5;\n"
    "{\n"
    ".param .b64 a;\n.param .b64 b;\n.param .b64 c;\n.param .b64 d;\n.param .b64 e;\n"
    "st.param.b64 [a], %rd1;\n"
    "st.param.b64 [b], %rd3;\n"
    "st.param.b64 [c], %rd2;\n"
    "st.param.b64 [d], %rd5;\n"
    "st.param.b64 [e], %rd4;\n"
    "call " ERROR_RING_REPORT ", (a, b, c, d, e);\n"
    "}\n"
    "add.u32 %r5, %r5, 1;\n"
    "bra more;\n"
    "done:\n"
    "bar.sync 0;\n"
    "setp.eq.u32 %p2, %r2, %r6;\n"
    "@%p2 trap;\n"
    "ret;\n"
    "}\n";

static struct driver d;
static struct error_ring *ring;
static struct error_ring_reader reader;
static CUfunction report_all;
static CUdeviceptr writer_at;
static uint64_t expected;  // contents of the kernel's records

static void try(CUresult r, const char *call)
{
    if (!r)
        return;
    fprintf(stderr, "ring_load: %s: error %d\n", call, r);
    exit(1);
}
#define TRY(call) try((call), #call)

static void load(void)
{
    size_t room = sizeof head_text + sizeof kernel_text + strlen(error_ring_functions_ptx) +
                  strlen(kheap_functions_ptx) + 1;
    char *text = malloc(room);
    CUmodule module;
    CUdeviceptr at;
    size_t bytes;
    int registers = 0;
    if (!text)
        exit(1);
    snprintf(text, room, "%s%s%s%s", head_text, error_ring_functions_ptx, kheap_functions_ptx, kernel_text);
    TRY(d.cuModuleLoadData(&module, text));
    TRY(d.cuModuleGetFunction(&report_all, module, "report_all"));
    TRY(d.cuModuleGetGlobal_v2(&at, &bytes, module, ERROR_RING_VARIABLE));
    TRY(d.cuMemcpyHtoD_v2(at, &writer_at, sizeof writer_at));
    TRY(d.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, report_all));
    printf("registers %d\n", registers);
    free(text);
}

static void make_ring(uint64_t size)
{
    struct error_ring_writer w;
    CUdeviceptr where;
    TRY(d.cuMemHostAlloc((void **)&ring, error_ring_bytes(size), CU_MEMHOSTALLOC_DEVICEMAP));
    memset(ring, 0, error_ring_bytes(size));
    TRY(d.cuMemHostGetDevicePointer_v2(&where, ring, 0));
    TRY(d.cuMemAlloc_v2(&writer_at, sizeof w));
    error_ring_writer_start(&w, where, size);
    error_ring_reader_start(&reader, ring, size);
    TRY(d.cuMemcpyHtoD_v2(writer_at, &w, sizeof w));
}

static void launch(unsigned blocks, unsigned threads, unsigned calls, unsigned trapping)
{
    void *arguments[] = {&calls, &expected, &trapping};
    expected = ERROR_RING_WHAT(ERROR_RING_CHECK, KIND, SITE);
    TRY(d.cuLaunchKernel(report_all, blocks, 1, 1, threads, 1, 1, 0, NULL, arguments, NULL));
}

static bool is_right(const struct error_ring_record *r, unsigned blocks, unsigned threads, unsigned calls)
{
    uint64_t id = r->payload[0];
    bool rest = false;
    for (unsigned i = 3; i < ERROR_RING_WORDS; i++)
        rest |= r->payload[i];
    return r->client == ERROR_RING_CHECK && r->kind == KIND && r->site == SITE && r->address == id * 16 &&
           r->block[0] < blocks && r->thread[0] < threads && id == r->block[0] * threads + r->thread[0] &&
           !(r->block[1] | r->block[2] | r->thread[1] | r->thread[2]) && r->payload[1] < calls &&
           r->payload[2] == ~id && !rest;
}

// Returns how many records there were in a round.
static unsigned take_all(unsigned blocks, unsigned threads, unsigned calls)
{
    struct error_ring_record r;
    unsigned n = 0;
    for (; error_ring_take(&reader, &r); n++)
        if (!is_right(&r, blocks, threads, calls)) {
            fprintf(stderr, "ring_load: record %llu is wrong\n", (unsigned long long)r.sequence);
            exit(1);
        }
    return n;
}

static int run(unsigned blocks, unsigned threads, unsigned calls)
{
    struct error_ring_writer w;
    CUresult r;
    CUevent done;
    uint64_t early = 0;
    TRY(d.cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
    launch(blocks, threads, calls, UINT32_MAX);
    TRY(d.cuEventRecord(done, NULL));
    while ((r = d.cuEventQuery(done)) == CUDA_ERROR_NOT_READY)
        early += take_all(blocks, threads, calls);
    try(r, "cuEventQuery");
    take_all(blocks, threads, calls);
    TRY(d.cuMemcpyDtoH_v2(&w, writer_at, sizeof w));
    printf("while it ran %llu\n", (unsigned long long)early);
    printf("records %llu lost %llu\n", (unsigned long long)w.next, (unsigned long long)w.lost);
    if (w.next + w.lost != (uint64_t)blocks * threads * calls || reader.returned != w.next || reader.bad ||
        error_ring_skip(&reader) || error_ring_lost(&reader) > w.lost ||
        !error_ring_lost(&reader) != !w.lost || !error_ring_valid(ring, &w)) {
        fprintf(stderr, "ring_load: %llu were read, %llu were bad, the ring says %llu were lost\n",
                (unsigned long long)reader.returned, (unsigned long long)reader.bad,
                (unsigned long long)error_ring_lost(&reader));
        return 1;
    }
    return 0;
}

// The context is unusable afterwards; the ring is not.
static int run_trapping(void)
{
    launch(1, LAST_THREADS, 1, LAST_THREADS / 2);
    if (!d.cuCtxSynchronize()) {
        fprintf(stderr, "ring_load: nothing trapped\n");
        return 1;
    }
    unsigned wanted = reader.size < LAST_THREADS ? (unsigned)reader.size : LAST_THREADS;
    unsigned n = take_all(1, LAST_THREADS, 1);
    if (n != wanted)
        fprintf(stderr, "ring_load: %u records of a kernel that trapped\n", n);
    return n != wanted;
}

int main(int argc, char **argv)
{
    char why[300];
    CUcontext context;
    unsigned n[4];
    if (argc != 5) {
        fprintf(stderr, "ring_load RECORDS BLOCKS THREADS CALLS\n");
        return 2;
    }
    for (int i = 0; i < 4; i++)
        n[i] = (unsigned)strtoul(argv[i + 1], NULL, 0);
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "ring_load: %s\n", why);
        return 77;
    }
    if (!error_ring_bytes(n[0]))
        return 2;
    TRY(d.cuInit(0));
    TRY(d.cuDevicePrimaryCtxRetain(&context, 0));
    TRY(d.cuCtxSetCurrent(context));
    make_ring(n[0]);
    load();
    return run(n[1], n[2], n[3]) | run_trapping();
}
