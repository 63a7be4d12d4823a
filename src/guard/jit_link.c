// SPDX-License-Identifier: MIT
// nvJitLink. Machine code that it has linked has no PTX. If each input has PTX, or is machine code whose PTX
// is known, these texts are kept, and whoever loads the machine code links them; otherwise moat links the
// same inputs again with -ptx, which the library can do with code for link-time optimization. The options and
// inputs of each link are copied for that.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/mem.h"
#include "base/vec.h"
#include "guard/jit_forward.h"
#include "guard/jit_hook.h"
#include "guard/jit_library.h"
#include "guard/jit_texts.h"

enum { INTERNAL_ERROR = 6 };

typedef int create_fn(void **handle, uint32_t count, const char **options);
typedef int data_fn(void *handle, int type, const void *data, size_t size, const char *name);
typedef int file_fn(void *handle, int type, const char *path);
typedef int handle_fn(void *handle);
typedef int size_fn(void *handle, size_t *size);
typedef int bytes_fn(void *handle, void *bytes);
typedef int destroy_fn(void **handle);

struct input {
    int type;
    char *data;  // NULL: a file
    size_t size;
    char *name;  // or path; NULL: none was given
};

struct link {
    struct link *next;
    int library;
    void *handle;
    bool lost;  // something could not be copied
    VEC(char *) options;
    VEC(struct input) inputs;
};

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER;  // rank: leaf; a link is used by one thread at a time
static struct link *links;

static char *copy(const void *from, size_t size)
{
    char *to = mem_alloc(size + 1);
    if (to) {
        memcpy(to, from, size);
        to[size] = '\0';
    }
    return to;
}

static void free_link(struct link *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->options.len; i++)
        mem_free(l->options.items[i]);
    for (size_t i = 0; i < l->inputs.len; i++) {
        mem_free(l->inputs.items[i].data);
        mem_free(l->inputs.items[i].name);
    }
    vec_free(&l->options);
    vec_free(&l->inputs);
    mem_free(l);
}

static struct link *find(int library, void *handle)
{
    pthread_mutex_lock(&lock);
    struct link *l = links;
    while (l && (l->handle != handle || l->library != library))
        l = l->next;
    pthread_mutex_unlock(&lock);
    return l;
}

static void forget(int library, void *handle)
{
    pthread_mutex_lock(&lock);
    struct link **at = &links;
    while (*at && ((*at)->handle != handle || (*at)->library != library))
        at = &(*at)->next;
    struct link *l = *at;
    if (l)
        *at = l->next;
    pthread_mutex_unlock(&lock);
    free_link(l);
}

static void remember(int library, void *handle, uint32_t count, const char **options)
{
    struct link *l = mem_zalloc(1, sizeof *l);
    if (!l)
        return;
    l->library = library;
    l->handle = handle;
    for (uint32_t i = 0; i < count; i++) {
        char *option = copy(options[i], strlen(options[i]));
        if (!option || vec_push(&l->options, option)) {
            mem_free(option);
            l->lost = true;
        }
    }
    pthread_mutex_lock(&lock);
    l->next = links;
    links = l;
    pthread_mutex_unlock(&lock);
}

// Copies an input, or the path of one if data is NULL.
static void remember_input(int library, void *handle, int type, struct str data, const char *name)
{
    struct link *l = find(library, handle);
    if (!l)
        return;
    struct input i = {.type = type, .size = data.len};
    i.data = data.ptr ? copy(data.ptr, data.len) : NULL;
    i.name = name ? copy(name, strlen(name)) : NULL;
    if ((data.ptr && !i.data) || (name && !i.name) || vec_push(&l->inputs, i)) {
        mem_free(i.data);
        mem_free(i.name);
        l->lost = true;
    }
}

// --- linking again -----------------------------------------------------------------------------------------

static bool add_inputs(const struct link *l, void *handle)
{
    data_fn *add_data;
    file_fn *add_file;
    handle_fn *complete;
    bool good = true;
    JIT_LIBRARY_FIND(l->library, "nvJitLinkAddData", add_data);
    JIT_LIBRARY_FIND(l->library, "nvJitLinkAddFile", add_file);
    JIT_LIBRARY_FIND(l->library, "nvJitLinkComplete", complete);
    for (size_t i = 0; good && i < l->inputs.len; i++) {
        const struct input *in = &l->inputs.items[i];
        good = in->data ? !add_data(handle, in->type, in->data, in->size, in->name)
                        : add_file && !add_file(handle, in->type, in->name);
    }
    return good && complete && !complete(handle);
}

static char *linked_ptx(const struct link *l, void *handle, size_t *len)
{
    size_fn *size_of;
    bytes_fn *bytes_of;
    JIT_LIBRARY_FIND(l->library, "nvJitLinkGetLinkedPtxSize", size_of);
    JIT_LIBRARY_FIND(l->library, "nvJitLinkGetLinkedPtx", bytes_of);
    char *ptx = size_of && bytes_of && !size_of(handle, len) && *len ? mem_alloc(*len) : NULL;
    if (ptx && bytes_of(handle, ptx)) {
        mem_free(ptx);
        ptx = NULL;
    }
    return ptx;
}

// Returns the PTX, which the caller frees; NULL if the library cannot make any of these inputs.
static char *link_again(const struct link *l, size_t *len)
{
    create_fn *create;
    destroy_fn *destroy;
    void *handle;
    JIT_LIBRARY_FIND(l->library, "nvJitLinkCreate", create);
    JIT_LIBRARY_FIND(l->library, "nvJitLinkDestroy", destroy);
    const char **options = mem_alloc((l->options.len + 1) * sizeof *options);
    if (!options)
        return NULL;
    for (size_t i = 0; i < l->options.len; i++)
        options[i] = l->options.items[i];
    options[l->options.len] = "-ptx";
    char *ptx = NULL;
    if (create && destroy && !create(&handle, (uint32_t)l->options.len + 1, options)) {
        if (add_inputs(l, handle))
            ptx = linked_ptx(l, handle, len);
        destroy(&handle);
    }
    mem_free(options);
    return ptx;
}

// --- texts of the inputs -----------------------------------------------------------------------------------

// Returns 90 for an option -arch=sm_90, and 0 if none names an architecture.
static unsigned architecture(const struct link *l)
{
    static const char option[] = "-arch=";
    for (size_t i = 0; i < l->options.len; i++)
        if (strncmp(l->options.items[i], option, sizeof option - 1) == 0) {
            const char *number = strchr(l->options.items[i], '_');
            return number ? (unsigned)strtoul(number + 1, NULL, 10) : 0;
        }
    return 0;
}

// The device runtime, which launches kernels, has no PTX; the devices and the rewritten code have their own.
static bool is_runtime(const struct input *in)
{
    const char *slash = in->name ? strrchr(in->name, '/') : NULL, *file = slash ? slash + 1 : in->name;
    return file && strncmp(file, "libcudadevrt", 12) == 0;
}

// Collects the texts of all inputs. Returns false if one has none.
static bool collect(const struct link *l, struct out *texts)
{
    unsigned arch = architecture(l);
    for (size_t i = 0; i < l->inputs.len; i++) {
        const struct input *in = &l->inputs.items[i];
        if (!is_runtime(in) && jit_texts_add(texts, (struct str){in->data, in->size}, in->name, arch))
            return false;
    }
    return texts->len;
}

static void keep(const struct link *l, struct str code)
{
    struct out texts;
    struct str ptx = {0};
    char *made = NULL;
    bool known = l && !l->lost, collecting = known && !out_to_memory(&texts);
    if (collecting && collect(l, &texts))
        ptx = (struct str){texts.buf, texts.len};
    else if (known && (made = link_again(l, &ptx.len)))
        ptx.ptr = made;
    jit_forward_keep(code, ptx.ptr ? ptx : (struct str){0}, "nvJitLink");
    mem_free(made);
    if (collecting)
        out_close(&texts);
}

// --- what stands before the functions ----------------------------------------------------------------------

int jit_link_create(int library, void **handle, uint32_t count, const char **options)
{
    create_fn *real = NULL;
    if (library != JIT_NONE)
        JIT_LIBRARY_FIND(library, "nvJitLinkCreate", real);
    int r = real ? real(handle, count, options) : INTERNAL_ERROR;
    if (!r && handle && jit_forward_wanted()) {
        cancel_hold();
        remember(library, *handle, count, options);
        cancel_release();
    }
    return r;
}

int jit_link_data(int library, void *handle, int type, const void *data, size_t size, const char *name)
{
    data_fn *real = NULL;
    if (library != JIT_NONE)
        JIT_LIBRARY_FIND(library, "nvJitLinkAddData", real);
    int r = real ? real(handle, type, data, size, name) : INTERNAL_ERROR;
    if (!r && data) {
        cancel_hold();
        remember_input(library, handle, type, (struct str){data, size}, name);
        cancel_release();
    }
    return r;
}

int jit_link_file(int library, void *handle, int type, const char *path)
{
    file_fn *real = NULL;
    if (library != JIT_NONE)
        JIT_LIBRARY_FIND(library, "nvJitLinkAddFile", real);
    int r = real ? real(handle, type, path) : INTERNAL_ERROR;
    if (!r && path) {
        cancel_hold();
        remember_input(library, handle, type, (struct str){0}, path);
        cancel_release();
    }
    return r;
}

int jit_link_cubin(int library, void *handle, void *code)
{
    bytes_fn *real = NULL;
    size_fn *size_of = NULL;
    size_t size = 0;
    if (library != JIT_NONE) {
        JIT_LIBRARY_FIND(library, "nvJitLinkGetLinkedCubin", real);
        JIT_LIBRARY_FIND(library, "nvJitLinkGetLinkedCubinSize", size_of);
    }
    int r = real ? real(handle, code) : INTERNAL_ERROR;
    if (!r && code && size_of && jit_forward_wanted() && !size_of(handle, &size)) {
        cancel_hold();
        keep(find(library, handle), (struct str){code, size});
        cancel_release();
    }
    return r;
}

int jit_link_destroy(int library, void **handle)
{
    destroy_fn *real = NULL;
    if (library != JIT_NONE)
        JIT_LIBRARY_FIND(library, "nvJitLinkDestroy", real);
    if (handle) {
        cancel_hold();
        forget(library, *handle);
        cancel_release();
    }
    return real ? real(handle) : INTERNAL_ERROR;
}
