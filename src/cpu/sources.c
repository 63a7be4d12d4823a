// SPDX-License-Identifier: MIT
// Images come from the application, often without a length: everything is measured before it is followed, and
// the kernel is asked whether an address can be read at all. Loading is rare enough for that.
#include "cpu/sources.h"

#include <elf.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/readable.h"
#include "cpu/say.h"
#include "image/image.h"

// The wrapper that nvcc's host code registers.
struct wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *list;  // version 2: one fatbin for each linked object, then NULL
};

static const unsigned char wrapper_magic[4] = {0xb1, 0x43, 0x62, 0x46};

// The newest version of PTX that moat was tested with, which is that of Triton's kernels in test/python, and
// one that no text has unless it is damaged.
enum { NEWEST_MAJOR = 9, NEWEST_MINOR = 4, ABSURD_MAJOR = 50, MOST_FATBINS = 1 << 16 };

// Our own container: magic, count, then for each text the lengths of its name and of itself, and both.
static const char pack_magic[8] = {'\177', 'M', 'O', 'A', 'T', 'L', 'N', 'K'};

struct pack_head {
    char magic[8];
    uint64_t size;  // of everything
    uint32_t count, reserved;
};

struct pack_text {
    uint64_t name, text;
};

// Compares byte by byte: a text may be shorter than what it is compared with.
static bool begins(const void *p, const void *with, size_t n)
{
    const unsigned char *a = p, *b = with;
    for (size_t i = 0; i < n; i++)
        if (!readable_bytes(a + i, 1) || a[i] != b[i])
            return false;
    return true;
}

CUresult sources_add(struct sources *s, const char *name, struct str text)
{
    struct exec_text *grown = mem_realloc(s->texts, s->count + 1, sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->texts = grown;
    size_t len = strlen(name) + 1;
    char *copy = mem_alloc(len + text.len + 1);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, name, len);
    if (text.len)
        memcpy(copy + len, text.ptr, text.len);
    copy[len + text.len] = '\0';
    s->texts[s->count++] = (struct exec_text){copy, {copy + len, text.len}};
    return CUDA_SUCCESS;
}

CUresult sources_append(struct sources *s, struct sources *from)
{
    struct exec_text *grown = mem_realloc(s->texts, s->count + from->count + !from->count, sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->texts = grown;
    for (unsigned i = 0; i < from->count; i++)
        s->texts[s->count++] = from->texts[i];
    from->count = 0;
    sources_free(from);
    return CUDA_SUCCESS;
}

void sources_free(struct sources *s)
{
    for (unsigned i = 0; i < s->count; i++)
        mem_free((void *)s->texts[i].name);
    mem_free(s->texts);
    *s = (struct sources){0};
}

// Returns whether code for e may run on the device. sm_90a is for 9.0 only, sm_100f for its major number.
static bool fits(const struct image_entry *e)
{
    unsigned capability = (unsigned)device_capability();
    if (e->suffix == 'a')
        return e->arch == capability;
    if (e->suffix == 'f' && e->arch / 10 != capability / 10)
        return false;
    return e->arch <= capability;
}

// Returns the newest PTX that fits; of two equal ones the later.
static int best_entry(const struct image *im)
{
    int best = -1;
    for (unsigned i = 0; i < image_count(im); i++) {
        const struct image_entry *e = image_entry(im, i);
        if (e->kind == IMAGE_PTX && !e->damaged && fits(e) &&
            (best < 0 || e->arch >= image_entry(im, (unsigned)best)->arch))
            best = (int)i;
    }
    return best;
}

static CUresult none_fits(const struct image *im, struct jit *jit)
{
    unsigned ptx = 0, least = UINT32_MAX;
    for (unsigned i = 0; i < image_count(im); i++) {
        const struct image_entry *e = image_entry(im, i);
        if (e->kind == IMAGE_PTX) {
            ptx++;
            least = e->arch < least ? e->arch : least;
        }
    }
    if (!image_count(im)) {
        jit_error(jit, image_name(im), "no GPU code is in it");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (!ptx)
        jit_error(jit, image_name(im),
                  "only machine code is in it: build it with PTX, for example -gencode "
                  "arch=compute_80,code=compute_80");
    else
        jit_error(jit, image_name(im), "its PTX is for sm_%u and later, this device is sm_%d", least,
                  device_capability());
    // A text that stands alone was meant for this device and does not compile for it.
    return image_entry(im, 0)->fatbin == IMAGE_NO_FATBIN && ptx ? CUDA_ERROR_INVALID_PTX
                                                                : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

// A newer toolkit labels texts with its version whatever is in them. Instructions that are not known are
// refused by name when the text is loaded.
static void warn_if_newer(const struct image_entry *e)
{
    static atomic_bool warned;
    if (e->version_major < NEWEST_MAJOR ||
        (e->version_major == NEWEST_MAJOR && e->version_minor <= NEWEST_MINOR))
        return;
    if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed))
        say("PTX %u.%u is newer than %d.%d, the newest that the CPU device was tested with", e->version_major,
            e->version_minor, NEWEST_MAJOR, NEWEST_MINOR);
}

static CUresult take(struct sources *s, const struct image *im, unsigned i, struct jit *jit)
{
    struct image_buffer buffer = {0};
    struct str text;
    const struct image_entry *e = image_entry(im, i);
    if (e->version_major >= ABSURD_MAJOR) {
        jit_error(jit, image_name(im), "there is no PTX %u.%u", e->version_major, e->version_minor);
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    warn_if_newer(e);
    int err = image_read(im, i, &jit->sink, &buffer, &text);
    CUresult r = err == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : err ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
    if (!r) {
        char name[200];
        if (e->name.len)
            snprintf(name, sizeof name, STR_FMT, STR_ARG(e->name));
        r = sources_add(s, e->name.len ? name : image_name(im), text);
    }
    image_buffer_free(&buffer);
    return r;
}

// Adds the best PTX of an image as one text, or all texts behind machine code that was linked from several.
static CUresult take_best(struct sources *s, const struct image *im, struct jit *jit)
{
    int best = best_entry(im);
    if (best < 0)
        return none_fits(im, jit);
    if (!image_entry(im, (unsigned)best)->part)
        return take(s, im, (unsigned)best, jit);
    CUresult r = CUDA_SUCCESS;
    for (unsigned i = 0; i < image_count(im) && !r; i++)
        if (image_entry(im, i)->part)
            r = take(s, im, i, jit);
    return r;
}

static bool is_pack(const void *bytes, size_t len)
{
    return len >= sizeof(struct pack_head) && memcmp(bytes, pack_magic, sizeof pack_magic) == 0;
}

static CUresult unpack(struct sources *s, const char *bytes, size_t len)
{
    struct pack_head head;
    memcpy(&head, bytes, sizeof head);
    if (head.size > len || head.size < sizeof head)
        return CUDA_ERROR_INVALID_IMAGE;
    uint64_t at = sizeof head;
    for (uint32_t i = 0; i < head.count; i++) {
        struct pack_text t;
        if (head.size - at < sizeof t)
            return CUDA_ERROR_INVALID_IMAGE;
        memcpy(&t, bytes + at, sizeof t);
        at += sizeof t;
        uint64_t room = head.size - at;
        if (t.name == 0 || t.name > room || t.text > room - t.name || bytes[at + t.name - 1])
            return CUDA_ERROR_INVALID_IMAGE;
        CUresult r = sources_add(s, bytes + at, (struct str){bytes + at + t.name, (size_t)t.text});
        if (r)
            return r;
        at += t.name + t.text;
    }
    return CUDA_SUCCESS;
}

void *sources_pack(const struct sources *s, size_t *size)
{
    struct pack_head head = {.size = sizeof head, .count = s->count};
    memcpy(head.magic, pack_magic, sizeof head.magic);
    for (unsigned i = 0; i < s->count; i++)
        head.size += sizeof(struct pack_text) + strlen(s->texts[i].name) + 1 + s->texts[i].ptx.len;
    char *bytes = mem_alloc(head.size), *to = bytes;
    if (!bytes)
        return NULL;
    to = (char *)memcpy(to, &head, sizeof head) + sizeof head;
    for (unsigned i = 0; i < s->count; i++) {
        const struct exec_text *from = &s->texts[i];
        struct pack_text t = {strlen(from->name) + 1, from->ptx.len};
        to = (char *)memcpy(to, &t, sizeof t) + sizeof t;
        to = (char *)memcpy(to, from->name, t.name) + t.name;
        to = (char *)memcpy(to, from->ptx.ptr, t.text) + t.text;
    }
    *size = head.size;
    return bytes;
}

static CUresult from_bytes(struct sources *s, const char *name, const void *bytes, size_t len,
                           struct jit *jit)
{
    struct image *im;
    if (is_pack(bytes, len))
        return unpack(s, bytes, len);
    int err = image_open_memory(name, bytes, len, &jit->sink, &im);
    if (err)
        return err == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
    CUresult r = take_best(s, im, jit);
    image_free(im);
    return r;
}

CUresult sources_from_bytes(struct sources *s, const char *name, const void *bytes, size_t len,
                            struct jit *jit)
{
    *s = (struct sources){0};
    CUresult r = from_bytes(s, name, bytes, len, jit);
    if (r)
        sources_free(s);
    return r;
}

static CUresult add_unmeasured(struct sources *s, const char *name, const void *image, struct jit *jit)
{
    struct pack_head head;
    size_t len;
    if (begins(image, pack_magic, sizeof pack_magic) && readable_bytes(image, sizeof head)) {
        memcpy(&head, image, sizeof head);
        return readable_bytes(image, head.size) ? unpack(s, image, head.size) : CUDA_ERROR_INVALID_IMAGE;
    }
    if (image_measure(image, readable_bytes, &len)) {
        jit_error(jit, name, "neither PTX nor a fatbin, or it cannot be read");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return from_bytes(s, name, image, len, jit);
}

// -rdc: the list holds the PTX of the objects; data holds only their linked machine code. Libraries without
// suitable PTX, such as the device runtime, may follow the program's own objects: symbols that are needed of
// them are reported as missing later.
static CUresult add_list(struct sources *s, const struct wrapper *w, struct jit *jit)
{
    for (unsigned i = 0; i < MOST_FATBINS; i++) {
        char name[40];
        if (!readable_bytes(w->list + i, sizeof *w->list))
            return CUDA_ERROR_INVALID_IMAGE;
        if (!w->list[i])
            return i ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
        snprintf(name, sizeof name, "object %u", i + 1);
        CUresult r = add_unmeasured(s, name, w->list[i], jit);
        if (r && !(r == CUDA_ERROR_NO_BINARY_FOR_GPU && s->count))
            return r;
    }
    return CUDA_ERROR_INVALID_IMAGE;
}

CUresult sources_from_memory(struct sources *s, const void *image, struct jit *jit)
{
    struct wrapper w = {0};
    CUresult r;

    *s = (struct sources){0};
    bool wrapped = begins(image, wrapper_magic, sizeof wrapper_magic) && readable_bytes(image, sizeof w);
    if (wrapped)
        memcpy(&w, image, sizeof w);
    if (!wrapped)
        r = add_unmeasured(s, "module", image, jit);
    else if (w.version == 2 && w.list)
        r = add_list(s, &w, jit);
    else
        r = add_unmeasured(s, "module", w.data, jit);
    if (r)
        sources_free(s);
    return r;
}

// Reads a file: an image, or a container of ours.
CUresult sources_from_file(struct sources *s, const char *path, struct jit *jit)
{
    struct image *im;
    *s = (struct sources){0};
    FILE *file = fopen(path, "rbe");
    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    struct pack_head head;
    bool pack = fread(&head, 1, sizeof head, file) == sizeof head && is_pack(&head, sizeof head);
    CUresult r = CUDA_SUCCESS;
    if (pack) {
        char *bytes = head.size && head.size < (uint64_t)1 << 32 ? mem_alloc(head.size) : NULL;
        rewind(file);
        if (!bytes)
            r = CUDA_ERROR_OUT_OF_MEMORY;
        else
            r = fread(bytes, 1, head.size, file) == head.size ? unpack(s, bytes, head.size)
                                                              : CUDA_ERROR_INVALID_IMAGE;
        mem_free(bytes);
    }
    fclose(file);
    if (!pack) {
        int err = image_open(path, &jit->sink, &im);
        r = !err             ? take_best(s, im, jit)
            : err == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                             : CUDA_ERROR_INVALID_IMAGE;
        if (!err)
            image_free(im);
    }
    if (r)
        sources_free(s);
    return r;
}

// --- the device's runtime ----------------------------------------------------------------------------------

static bool is_runtime(const struct image *im, unsigned i, struct diag_sink *sink)
{
    static const char call[] = "__cudaCDP2LaunchDevice";
    struct image_buffer buffer = {0};
    struct str code;
    Elf64_Half type = ET_NONE;
    const struct image_entry *e = image_entry(im, i);
    if (e->kind != IMAGE_CUBIN || e->damaged || !fits(e) || image_read(im, i, sink, &buffer, &code))
        code = STR("");
    if (code.len >= sizeof(Elf64_Ehdr))
        memcpy(&type, code.ptr + offsetof(Elf64_Ehdr, e_type), sizeof type);
    bool is = type == ET_REL && memmem(code.ptr, code.len, call, sizeof call - 1);
    image_buffer_free(&buffer);
    return is;
}

static void drop(struct diag_sink *sink, const struct diag *d)
{
}

bool sources_have_runtime(const char *name, const void *bytes, size_t len)
{
    struct diag_sink sink = {.emit = drop};
    struct image *im;
    bool have = false;
    if (bytes ? image_open_memory(name, bytes, len, &sink, &im) : image_open(name, &sink, &im))
        return false;
    for (unsigned i = 0; i < image_count(im) && !have; i++)
        have = is_runtime(im, i, &sink);
    image_free(im);
    return have;
}
