// SPDX-License-Identifier: MIT
// What the device records about a fault: address, kernel, block, thread, line of PTX and of source. Linked
// with the library's code, because programs cannot query this.
#include "cpu/cpu.h"
#include "driver_check.h"

// Returns the line of `text` that first contains `what` in the body of the kernel that starts with `head`.
static unsigned line_of(const char *text, const char *head, const char *what)
{
    const char *start = strstr(text, head), *body = start ? strchr(start, '{') : NULL;
    const char *at = body ? strstr(body, what) : NULL;
    unsigned line = 1;
    check_need(at);
    for (const char *p = text; p < at; p++)
        line += *p == '\n';
    return line;
}

struct expected {
    const char *kernel, *instruction, *space;
    enum exec_fault_kind kind;
    bool write;
    CUdeviceptr address;  // 0: not checked
};

static void compare(const struct exec_fault *f, const struct expected *e, const char *text)
{
    EQUAL(f->kind, e->kind);
    CHECK(f->kernel && str_eq(f->kernel->name, str_from(e->kernel)));
    EQUAL(f->block[0], 1);
    EQUAL(f->block[1], 0);
    EQUAL(f->block[2], 0);
    EQUAL(f->thread[0], 37);
    EQUAL(f->thread[1], 0);
    EQUAL(f->thread[2], 0);
    char head[100];
    snprintf(head, sizeof head, ".entry %s(", e->kernel);
    EQUAL(f->line, line_of(text, head, e->instruction));
    CHECK(f->instruction.len >= strlen(e->instruction) &&
          str_starts(f->instruction, str_from(e->instruction)));
    if (!e->address)
        return;
    EQUAL(f->address, e->address);
    EQUAL(f->size, 4);
    CHECK(f->write == e->write);
    CHECK(f->space && strcmp(f->space, e->space) == 0);
}

static void fault(const struct expected *e)
{
    CUcontext context;
    TRY(cuCtxCreate_v2(&context, 0, 0));
    CUmodule module = check_module("faults.ptx");
    CUdeviceptr out = check_zeroed(64), p = e->address;
    char *text = check_read("faults.ptx");
    TRY(LAUNCH(check_function(module, e->kernel), 3, 64, 0, NULL, &p, &out));
    CHECK(cuCtxSynchronize() != CUDA_SUCCESS);
    compare(&context->fault, e, text);
    free(text);
    cuCtxDestroy_v2(context);
}

// The demo's kernel has source lines.
static void source_line(void)
{
    CUcontext context;
    CUmodule module;
    TRY(cuCtxCreate_v2(&context, 0, 0));
    TRY(cuModuleLoad(&module, "demo/smooth.ptx"));
    CUdeviceptr x = check_zeroed(1024);
    TRY(LAUNCH(check_function(module, "_Z6smoothPf"), 1, 256, 0, NULL, &x));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    const struct exec_fault *f = &context->fault;
    EQUAL(f->thread[0], 0);
    EQUAL(f->source_line, 11);
    CHECK(str_eq(f->source_file, STR("demo/smooth.cu")));
    CHECK(f->space && strcmp(f->space, "shared") == 0);
    cuCtxDestroy_v2(context);
}

int main(void)
{
    static const struct expected faults[] = {
        {"write", "st.global.u32", "global", EXEC_ILLEGAL_ADDRESS, true, 0x123456789000},
        {"read", "ld.u32", "generic", EXEC_ILLEGAL_ADDRESS, false, 0x123456789000},
        {"add_to", "atom.global.add.u32", "global", EXEC_ILLEGAL_ADDRESS, true, 0x123456789000},
        {"write", "st.global.u32", "global", EXEC_MISALIGNED_ADDRESS, true, 0x123456789002},
        {"trap_there", "trap", NULL, EXEC_LAUNCH_FAILED, false, 0},
        {"assert_there", "call.uni __assertfail", NULL, EXEC_ASSERT, false, 0},
    };
    TRY(cuInit(0));
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        fault(&faults[i]);
    source_line();
    return check_end("fault_record");
}
