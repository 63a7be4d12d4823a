// SPDX-License-Identifier: MIT
#include "report/report.h"

#include <stdio.h>
#include <string.h>

const struct report_row report_rows[REPORT_TYPES] = {
#define ERROR(id, name, family, cwe, text) {name, #family, text, cwe},
#include "report/errors.def"
#undef ERROR
};

int report_type_find(const char *name)
{
    for (int i = 0; i < REPORT_TYPES; i++)
        if (strcmp(report_rows[i].name, name) == 0)
            return i;
    return -1;
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

static bool begins(const char *name, const char *const *beginnings)
{
    for (; name && *beginnings; beginnings++)
        if (strncmp(name, *beginnings, strlen(*beginnings)) == 0)
            return true;
    return false;
}

bool report_is_interpreter(const char *object)
{
    static const char *const names[] = {"python",  "libpython", "libtorch",      "libc10",
                                        "_ctypes", "libffi.",   "_cffi_backend", NULL};
    return begins(base_name(object), names);
}

// Returns whether a folder of headers is a toolkit's, by the path before "/include/".
static bool is_toolkit_folder(const char *path, size_t len)
{
    static const char *const folders[] = {"/cuda",       "/cuda-",        "/cuda_runtime", "/cuda_cccl",
                                          "/cuda_nvcc",  "/cu12",         "/cu13",         "/x86_64-linux",
                                          "/sbsa-linux", "/aarch64-linux"};
    if (len == 4 && memcmp(path, "/usr", 4) == 0)
        return true;
    size_t at = len;
    while (at && path[at - 1] != '/')
        at--;
    const char *last = at ? path + at - 1 : path;
    size_t n = (size_t)(path + len - last);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t k = strlen(folders[i]);
        bool version = n > k && folders[i][k - 1] == '-' && last[k] >= '0' && last[k] <= '9';
        if ((version || n == k) && memcmp(last, folders[i], k) == 0)
            return true;
    }
    return false;
}

bool report_is_toolkit_header(const char *file)
{
    const char *name = base_name(file);
    if (name && (strncmp(name, "__clang_cuda_", 13) == 0 || strcmp(name, "cuda_runtime.h") == 0 ||
                 strcmp(name, "cuda_runtime_api.h") == 0))
        return true;
    for (const char *at = file ? strstr(file, "/include/") : NULL; at; at = strstr(at + 1, "/include/"))
        if (is_toolkit_folder(file, (size_t)(at - file)))
            return true;
    return false;
}

// Returns whether a mangled name is a template of the CUDA runtime's headers: _Z10cudaMallocIiE9cudaError...
static bool is_runtime_template(const char *name)
{
    if (strncmp(name, "_Z", 2))
        return false;
    name += 2;
    name += *name == 'L';
    size_t n = strspn(name, "0123456789");
    return n && strncmp(name + n, "cuda", 4) == 0 && strstr(name + n, "E9cudaError");
}

// A runtime linked into the program leaves no source lines there, only names.
static bool is_runtime_function(const char *name)
{
    static const char *const names[] = {"libcudart_static_", "__cuda", "__device_stub__", NULL};
    if (!name)
        return false;
    bool api = strncmp(name, "cuda", 4) == 0 && name[4] >= 'A' && name[4] <= 'Z';
    return api || begins(name, names) || is_runtime_template(name) || strstr(name, "__device_stub__");
}

bool report_is_start_code(const struct report_frame *f)
{
    static const char *const names[] = {"__libc_start_", "__libc_csu_", NULL};
    return f->function && (strcmp(f->function, "_start") == 0 || begins(f->function, names));
}

bool report_is_runtime(const char *object)
{
    static const char *const objects[] = {"libcudart.", "libcuda.",   "libmoat",      "libc.so",  "libc-2.",
                                          "ld-linux",   "libpthread", "libstdc++",    "libgcc_s", "libasan.",
                                          "libtsan.",   "libubsan.",  "libclang_rt.", NULL};
    return begins(base_name(object), objects);
}

static bool is_foreign(const struct report_frame *f)
{
    // Frames of Python code have a file and no object.
    return report_is_runtime(f->object) || report_is_interpreter(f->object) || report_is_start_code(f) ||
           report_is_toolkit_header(f->file) || (!f->file && is_runtime_function(f->function));
}

// Returns how many of the innermost frames are those of a runtime that is part of the program: functions of
// any name that one of its calls has called.
static uint32_t count_runtime(const struct report_stack *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->count && !s->frames[i].file; i++)
        if (is_runtime_function(s->frames[i].function))
            n = i + 1;
        else if (n)
            break;
    return n;
}

// Returns whether a stub of nvcc's, whose name ends in the mangled name of a kernel, is that of the kernel
// that `function` is the host's side of, mangled or not.
static bool is_stub_of(const char *stub, const char *function)
{
    char name[200];
    if (!function || !*function)
        return false;
    if (strncmp(function, "_Z", 2) == 0)
        return strstr(stub, function);
    size_t len = strcspn(function, "<("), start = len;
    while (start && function[start - 1] != ':')
        start--;
    snprintf(name, sizeof name, "%zu%.*s", len - start, (int)(len - start), function + start);
    return len > start && strstr(stub, name);
}

// Returns how many of the innermost frames are those with which nvcc's code launches a kernel: the runtime's,
// the stubs, and the host's side of the kernel, unless the compiler has inlined it.
static uint32_t count_stubs(const struct report_stack *s)
{
    enum { DEEPEST = 8 };  // frames of a runtime and its headers below a stub
    const char *stub = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->count && i < DEEPEST; i++) {
        const char *function = s->frames[i].function;
        const char *here = function ? strstr(function, "__device_stub_") : NULL;
        stub = stub ? stub : here;
        n = here ? i + 1 : n;
    }
    return n && n < s->count && is_stub_of(stub, s->frames[n].function) ? n + 1 : n;
}

uint32_t report_first_shown(const struct report_stack *s)
{
    uint32_t n = count_stubs(s);
    if (n && n < s->count)
        return n;
    n = count_runtime(s);
    for (uint32_t i = 0; i < n; i++)
        if (is_runtime_function(s->frames[i].function))
            return i;
    return 0;
}

// Returns whether a frame is of an installed package of Python's, or of Python's own library.
static bool is_packaged(const struct report_frame *f)
{
    const char *path = f->object ? f->object : f->file;
    return path && (strstr(path, "/site-packages/") || strstr(path, "/dist-packages/") ||
                    (!f->object && (strstr(path, "/lib/python3") || path[0] == '<')));
}

const struct report_frame *report_frame_of_program(const struct report_stack *s)
{
    uint32_t first = count_runtime(s), stubs = count_stubs(s);
    first = first > stubs ? first : stubs;
    const struct report_frame *any = NULL, *named = NULL, *packaged = NULL;
    for (uint32_t i = first; i < s->count; i++) {
        const struct report_frame *f = &s->frames[i];
        if (is_foreign(f))
            continue;
        if (is_packaged(f)) {
            packaged = packaged ? packaged : f;
            continue;
        }
        // Python code always has a line, which is no reason to pass over a function that it has called.
        if (f->file && (f->object || !named))
            return f;
        any = any ? any : f;
        named = named || !f->function ? named : f;
    }
    return named ? named : any ? any : packaged;
}
