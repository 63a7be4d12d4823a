// SPDX-License-Identifier: MIT
#include "rewrite/rewrite.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"
#include "base/modes.h"
#include "core/guard.h"
#include "image/ptx_store.h"
#include "pass/pass_check.h"
#include "pass/pass_variants.h"
#include "track/guard_report.h"
#include "rewrite/rewrite_about.h"
#include "rewrite/rewrite_dump.h"
#include "rewrite/rewrite_jit.h"
#include "rewrite/rewrite_later.h"
#include "rewrite/rewrite_link.h"
#include "rewrite/rewrite_runtime.h"
#include "rewrite/rewrite_source.h"
#include "context/kernel_filter.h"

bool rewrite_on;

enum { MOST_WAIT = 60000 };  // milliseconds for a module that another process compiles

static const struct rewrite_client *client;
static struct cache *cache;  // NULL: none

// The state while one image is made from another.
struct work {
    struct diag_sink sink;
    struct rewrite *r;
    struct rewrite_source source;
    struct rewrite_jit jit;
    struct rewrite_source_sum sums[REWRITE_SOURCE_MOST + REWRITE_SOURCE_CODES];
    struct pass_result *texts[REWRITE_SOURCE_MOST];
    unsigned ntexts;
    char passes[CACHE_MOST_PASS + 1];
    unsigned arch;
    const char *where;  // the image's origin, for --dump-rewritten
    bool links;         // the texts are linked here, not by the program
    bool compile;       // false: the driver gets PTX, and compiles it for each device
    CUresult refusal;   // of the driver's compiler
    char first[400];    // first error message
    char key[CACHE_MOST_PASS + 1];
};

// --- starting ---------------------------------------------------------------------------------------------

static void open_cache(void)
{
    if (!guard.options.cache || !modes_rewrite(&guard.options))  // --mode=explain only reads images
        return;
    int err = cache_open(guard.options.cache_dir, guard.options.cache_size, &cache);
    if (err)
        guard_report_note("no cache of rewritten modules, so each is compiled at every start: %s%s%s",
                          guard.options.cache_dir ? guard.options.cache_dir : "",
                          guard.options.cache_dir ? ": " : "", cache_why(err));
}

bool rewrite_possible(void)
{
    return guard.real.cuLinkCreate_v2 && guard.real.cuLinkAddData_v2 && guard.real.cuLinkComplete;
}

void rewrite_start(const struct rewrite_client *for_whom)
{
    client = for_whom;
    open_cache();
    rewrite_later_start(cache);
    if (guard.options.cache && guard.options.jit_ptx)
        ptx_store_use(guard.options.cache_dir, guard.options.cache_size);
    rewrite_dump_start();
    rewrite_on = true;
}

// --- failing ----------------------------------------------------------------------------------------------

__attribute__((format(printf, 3, 4))) static bool leave(struct rewrite *r, enum rewrite_why why,
                                                        const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    r->why = why;
    vsnprintf(r->detail, sizeof r->detail, fmt, args);
    va_end(args);
    // One line, because it may go into the cache and into a note.
    for (char *p = r->detail; *p; p++)
        *p = *p == '\n' ? ' ' : *p;
    return false;
}

static void keep_first(struct diag_sink *sink, const struct diag *d)
{
    struct work *w = (struct work *)sink;
    if (d->severity != DIAG_ERROR || w->first[0])
        return;
    if (d->source.text.ptr)
        snprintf(w->first, sizeof w->first, "%.100s:%u: %s", d->source.name,
                 diag_locate(d->source.text, d->offset).line, d->message);
    else
        snprintf(w->first, sizeof w->first, "%.100s: %s", d->source.name, d->message);
}

static const char *name_of(CUresult result)
{
    const char *name = driver_result_name(result);
    return name ? name : "an unknown error";
}

static bool failed(struct work *w, int err)
{
    return leave(w->r, REWRITE_FAILED, "%s", w->first[0] ? w->first : strerror(-err));
}

static bool launches(const struct work *w)
{
    for (unsigned i = 0; i < w->ntexts; i++)
        for (uint32_t f = 0; f < w->texts[i]->nfuncs; f++)
            if (w->texts[i]->funcs[f].why == PASS_LAUNCHES)
                return true;
    return false;
}

// Returns whether the driver will refuse the image at the next start too. The CPU device supports more with
// every version of moat.
static bool lasts(CUresult result)
{
    if (guard.real_fault)
        return false;
    switch ((int)result) {
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE: return true;
    default: return false;
    }
}

// Leaves an image that the driver's compiler has refused.
static bool refused(struct work *w, CUresult result)
{
    w->refusal = result;
    return leave(w->r, launches(w) ? REWRITE_LAUNCHES : REWRITE_REFUSED, "%s%s%s", name_of(result),
                 w->jit.log[0] ? ": " : "", w->jit.log);
}

static void release(struct rewrite *r)
{
    if (r->link)
        guard.real.cuLinkDestroy(r->link);
    if (r->cached)
        cache_entry_free(&r->entry);
    rewrite_later_free(r->later);
    mem_free(r->program);
    pass_result_free(r->text);
    for (unsigned i = 0; i < r->nparts; i++)
        pass_result_free(r->parts[i]);
    mem_free(r->parts);
    r->link = NULL;
    r->cached = r->own = false;
    r->later = NULL;
    r->program = NULL;
    r->text = NULL;
    r->parts = NULL;
    r->nparts = 0;
}

// --- the device -------------------------------------------------------------------------------------------

static unsigned arch_of(CUdevice device)
{
    int major = 0, minor = 0;
    if (guard.real.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) ||
        guard.real.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
        return 0;
    return (unsigned)(major * 10 + minor);
}

// Finds the architecture to rewrite for. A module is for the current context. A library is for all devices:
// it is compiled if all are alike. Without a context the driver's compiler cannot be called. Returns false if
// unknown.
static bool find_device(struct work *w, bool library)
{
    CUcontext context = NULL;
    CUdevice device;
    int n = 0;
    w->compile = !guard.real.cuCtxGetCurrent(&context) && context && !guard.real.cuCtxGetDevice(&device);
    w->arch = w->compile ? arch_of(device) : 0;
    if (!library || guard.real.cuDeviceGetCount(&n))
        return w->arch;
    for (int i = 0; i < n; i++) {
        unsigned arch = arch_of(i);
        w->compile &= arch == w->arch;
        w->arch = !w->arch || arch < w->arch ? arch : w->arch;
    }
    return w->arch;
}

// --- the cache --------------------------------------------------------------------------------------------

// Modules compiled by the CPU device are kept apart from those of GPUs.
static struct cache_key key_of(struct work *w)
{
    int driver = 0;
    char made[128];
    guard.real.cuDriverGetVersion(&driver);
    pass_key(w->passes, made, sizeof made);
    int n = snprintf(w->key, sizeof w->key, "%s%s", made, guard.real_fault ? ";cpu " MOAT_VERSION : "");
    if (w->jit.sum)
        n += snprintf(w->key + n, sizeof w->key - (size_t)n, ";%016llx", (unsigned long long)w->jit.sum);
    if (kernel_filter_on())
        snprintf(w->key + n, sizeof w->key - (size_t)n, ";only %016llx",
                 (unsigned long long)kernel_filter_sum());
    rewrite_source_sums(&w->source, w->sums);
    return (struct cache_key){
        .content = {(const char *)w->sums, (w->source.count + w->source.ncodes) * sizeof *w->sums},
        .pass = w->key,
        .arch = w->arch,
        .driver = (uint32_t)driver,
    };
}

// --- variants that are compiled later ----------------------------------------------------------------------

static const struct pass_check *checks_of(const struct rewrite *r)
{
    return r->nparts == 1 ? r->parts[0]->check : NULL;
}

// Compiles a text for a newer GPU for this one. It is compiled here, since the driver may compile a text as
// late as at a launch, when the program's own image can no longer be loaded in its place.
static bool compile_retargeted(struct work *w, size_t *size)
{
    struct rewrite *r = w->r;
    struct image_buffer buffer = {0};
    struct pass_result *bare = NULL;
    struct str text;
    void *image = NULL;
    char name[128];
    rewrite_source_name(&w->source, 0, name, sizeof name);
    int err = rewrite_source_read(&w->source, 0, &w->sink, &buffer, &text);
    if (!err)
        err = pass_retarget(name, text, w->arch, &w->sink, &bare);
    image_buffer_free(&buffer);
    if (err)
        return failed(w, err);
    CUresult result = rewrite_link_open(&w->jit, &r->link);
    if (!result)
        result = rewrite_link_add(r->link, bare->text, name, 0);
    if (!result)
        result = guard.real.cuLinkComplete(r->link, &image, size);
    pass_result_free(bare);
    r->image = result ? NULL : image;
    return !result || refused(w, result);
}

// Makes the image of a text for a newer GPU: what is proved of the text says nothing of the machine code that
// the program has for this GPU. It has a cache entry of its own.
static bool retarget(struct work *w)
{
    struct rewrite *r = w->r;
    char pass[CACHE_MOST_PASS + 1];
    const char *rest = strchr(w->key, ';');
    int driver = 0;
    size_t size = 0;
    guard.real.cuDriverGetVersion(&driver);
    snprintf(pass, sizeof pass, "bare%s", rest ? rest : "");
    const struct cache_key key = {.content = {(const char *)w->sums, sizeof *w->sums},
                                  .pass = pass,
                                  .arch = w->arch,
                                  .driver = (uint32_t)driver};
    if (cache && !cache_get(cache, &key, &r->entry)) {
        guard_count(GUARD_CACHE_HITS);
        r->cached = true;
        r->image = r->entry.image.ptr;
        return true;
    }
    if (!compile_retargeted(w, &size))
        return false;
    if (cache && !cache_put(cache, &key, (struct str){r->image, size}, STR("bare\n")))
        guard_count(GUARD_CACHE_STORED);
    return true;
}

// Prepares the load of the program's own code, and keeps the text that its variants are compiled from, which
// the cache's entry or the result of the passes holds.
static bool keep_for_later(struct work *w)
{
    struct rewrite *r = w->r;
    r->later = rewrite_later_new(&w->jit, w->key, w->arch, &w->sums[0]);
    if (!r->later)
        return failed(w, -ENOMEM);
    if (r->cached)
        rewrite_later_entry(r->later, &r->entry);
    else
        rewrite_later_result(r->later, w->texts[0]);
    r->cached = false;
    r->image = NULL;
    if (rewrite_source_is_newer(&w->source, 0))
        return retarget(w);
    r->own = rewrite_source_is_native(&w->source, 0, w->arch);
    if (!r->own)
        r->image = r->program = rewrite_source_copy(&w->source, 0, &w->sink);
    return r->own || r->image || failed(w, -ENOMEM);
}

// Returns whether the image may be loaded as it is, while checked variants are compiled when they are wanted.
static bool may_be_apart(const struct work *w, bool together)
{
    return w->r->plan.apart && !together && w->compile && w->source.count == 1 &&
           !rewrite_source_is_listed(&w->source) && !strchr(w->passes, ',') && pass_variants_of(w->passes);
}

// Returns true if the cache has decided the matter, one way or the other.
static bool recall(struct work *w, const struct cache_key *key)
{
    struct rewrite *r = w->r;
    if (cache_get(cache, key, &r->entry))
        return false;
    // An entry without an image gives the reason why there is none.
    if (rewrite_about_read(r->entry.about, r) || !r->nparts != !r->entry.image.len) {
        cache_entry_free(&r->entry);
        return false;
    }
    guard_count(GUARD_CACHE_HITS);
    if (r->nparts) {
        r->cached = true;
        r->image = r->entry.image.ptr;
        if (checks_of(r) && checks_of(r)->apart && !keep_for_later(w))
            release(r);
    } else {
        cache_entry_free(&r->entry);
    }
    return true;
}

static void store(const struct cache_key *key, struct str image, struct str about)
{
    static _Atomic(bool) noted;
    if (!cache)
        return;
    int err = cache_put(cache, key, image, about);
    if (!err)
        guard_count(GUARD_CACHE_STORED);
    else if (!atomic_exchange_explicit(&noted, true, memory_order_relaxed))
        guard_report_note("%s: a rewritten module could not be stored: %s", cache_folder(cache),
                          strerror(-err));
}

static void store_left(const struct cache_key *key, const struct rewrite *r)
{
    struct out about;
    if (!cache || out_to_memory(&about))
        return;
    rewrite_about_left(r->why, r->detail, &about);
    if (!about.error)
        store(key, (struct str){"", 0}, (struct str){about.buf, about.len});
    out_close(&about);
}

// --- rewriting --------------------------------------------------------------------------------------------

static int rewrite_text(struct work *w, unsigned i)
{
    struct image_buffer buffer = {0};
    struct pass_request request = {.passes = w->passes,
                                   .arch = w->arch,
                                   .wants = kernel_filter_on() ? kernel_filter_wants : NULL,
                                   .linked = w->links};
    struct str text;
    char name[128];
    rewrite_source_name(&w->source, i, name, sizeof name);
    int err = rewrite_source_read(&w->source, i, &w->sink, &buffer, &text);
    if (!err)
        err = pass_rewrite(name, text, &request, &w->sink, &w->texts[w->ntexts]);
    w->ntexts += !err;
    image_buffer_free(&buffer);
    return err;
}

// Leaves images whose PTX would be launched differently; the cache remembers that for the next start.
static bool launched_alike(struct work *w, const struct cache_key *key)
{
    char why[200];
    for (unsigned i = 0; i < w->source.count; i++) {
        if (rewrite_source_alike(&w->source, i, &w->sink, why, sizeof why))
            continue;
        leave(w->r, REWRITE_FAILED, "its PTX is for another GPU, %s", why);
        if (w->compile)
            store_left(key, w->r);
        return false;
    }
    return true;
}

// Returns the newest version of PTX, as 90 for 9.0, that the driver's compiler takes; 0: not known.
static unsigned newest_ptx(void)
{
    static const struct {
        int driver;
        unsigned ptx;
    } rows[] = {{12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84}, {12050, 85},
                {12060, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91}};
    int driver = 0;
    if (guard.real_fault || guard.real.cuDriverGetVersion(&driver))
        return 0;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].driver == driver)
            return rows[i].ptx;
    return 0;
}

// Leaves images whose PTX the driver refuses at its first line, before it is rewritten.
static bool compilable(struct work *w)
{
    unsigned newest = newest_ptx();
    for (unsigned i = 0; i < w->source.count && newest; i++) {
        unsigned major, minor;
        rewrite_source_version(&w->source, i, &major, &minor);
        if (major * 10 + minor > newest)
            return leave(w->r, REWRITE_FAILED,
                         "its PTX is of version %u.%u, and the driver takes %u.%u at most", major, minor,
                         newest / 10, newest % 10);
    }
    return true;
}

// Texts are dumped before the driver has accepted them, because refused ones are of interest too.
static void dump_all(const struct work *w)
{
    if (!rewrite_dump_on)
        return;
    unsigned module = rewrite_dump_module();
    for (unsigned i = 0; i < w->ntexts; i++) {
        char name[128], from[80];
        snprintf(from, sizeof from, "%s %s", rewrite_source_in_fatbin(&w->source, i) ? "a fatbin" : "PTX",
                 w->where);
        rewrite_dump(
            &(struct rewrite_dump){
                .name = rewrite_source_name(&w->source, i, name, sizeof name),
                .module = module,
                .text = i + 1,
                .texts = w->ntexts,
                .from = from,
                .passes = w->passes,
                .arch = w->arch,
            },
            w->texts[i]->text);
    }
}

static bool rewrite_all(struct work *w)
{
    for (unsigned i = 0; i < w->source.count; i++) {
        int err = rewrite_text(w, i);
        if (err)
            return failed(w, err);
    }
    return true;
}

// Applies the smallest limit that a pass has set to all texts, because they are compiled together.
static bool limit_registers(struct work *w)
{
    unsigned least = 0;
    for (unsigned i = 0; i < w->ntexts; i++) {
        unsigned registers = w->texts[i]->registers;
        least = registers && (!least || registers < least) ? registers : least;
    }
    return !least ||
           rewrite_jit_limit(w->jit.options, w->jit.values, &w->jit.count, REWRITE_JIT_MOST, least) ||
           leave(w->r, REWRITE_FAILED, "it is compiled with options that moat cannot preserve");
}

// Returns whether a text calls the device's runtime, of its current version or of the first one.
static bool calls_runtime(const struct work *w)
{
    for (unsigned i = 0; i < w->ntexts; i++)
        if (strstr(w->texts[i]->text.ptr, "__cudaCDP2") ||
            strstr(w->texts[i]->text.ptr, "cudaGetParameterBuffer"))
            return true;
    return false;
}

// Adds what the texts call and is machine code.
static CUresult link_code(struct work *w)
{
    if (w->r->plan.closed)
        return CUDA_SUCCESS;
    if (w->source.ncodes)
        return rewrite_runtime_add(w->r->link, &w->source, &w->sink);
    return calls_runtime(w) ? rewrite_runtime_add_installed(w->r->link) : CUDA_SUCCESS;
}

static CUresult link_all(struct work *w, size_t *size)
{
    struct rewrite *r = w->r;
    const struct pass_result *caller = NULL;
    void *image = NULL;
    char name[128];
    CUresult result = rewrite_link_open(&w->jit, &r->link);
    for (unsigned i = 0; !result && i < w->ntexts; i++) {
        caller = caller || !w->texts[i]->apart ? caller : w->texts[i];
        rewrite_source_name(&w->source, i, name, sizeof name);
        result = rewrite_link_add(r->link, w->texts[i]->text, name, 0);
    }
    if (!result && caller)
        result = rewrite_link_apart(r->link, caller->text, caller->apart);
    if (!result)
        result = link_code(w);
    if (!result)
        result = guard.real.cuLinkComplete(r->link, &image, size);
    r->image = image;
    return result;
}

static bool compile(struct work *w, const struct cache_key *key, size_t *size)
{
    if (!limit_registers(w))
        return false;
    CUresult result = link_all(w, size);
    if (!result)
        return true;
    w->r->image = NULL;
    refused(w, result);
    // A toolkit that has the device's runtime may be installed later.
    if (lasts(result) && (w->source.ncodes || !calls_runtime(w)))
        store_left(key, w->r);
    return false;
}

// The texts should not stay in the program's memory longer than needed: the parts are made from their
// description.
static bool describe(struct work *w, const struct cache_key *key, size_t size)
{
    struct out about;
    int err = out_to_memory(&about);
    if (!err) {
        rewrite_about_parts(w->texts, w->ntexts, &about);
        err = about.error;
        if (!err)
            err = rewrite_about_read((struct str){about.buf, about.len}, w->r);
        if (!err && size)
            store(key, (struct str){w->r->image, size}, (struct str){about.buf, about.len});
        out_close(&about);
    }
    return err ? failed(w, err) : true;
}

static bool make_anew(struct work *w, const struct cache_key *key)
{
    size_t size = 0;
    w->links = w->compile;
    if (!compilable(w) || !launched_alike(w, key) || !rewrite_all(w))
        return false;
    if (!w->compile && w->ntexts > 1)
        return leave(w->r, REWRITE_FAILED, "several texts cannot be linked without a context");
    dump_all(w);
    bool apart = w->compile && w->texts[0]->check && w->texts[0]->check->apart;
    if (apart) {
        w->r->image = w->texts[0]->text.ptr;
        size = w->texts[0]->text.len + 1;
    }
    if ((w->compile && !apart && !compile(w, key, &size)) || !describe(w, key, size))
        return false;
    if (apart) {
        bool kept = keep_for_later(w);
        w->ntexts = w->r->later ? 0 : w->ntexts;
        if (!kept && lasts(w->refusal))
            store_left(key, w->r);
        return kept;
    }
    if (!w->compile) {
        w->r->text = w->texts[0];
        w->ntexts = 0;
        w->r->image = w->r->text->text.ptr;
        w->r->registers = w->r->text->registers;
    }
    return true;
}

// Of processes that start at once, one compiles.
static bool make(struct work *w)
{
    struct cache_key key = {0};
    struct cache_claim claim;
    if (w->compile)
        key = key_of(w);
    // The cache holds no texts to dump.
    if (!w->compile || !cache || rewrite_dump_on)
        return make_anew(w, &key);
    if (recall(w, &key))
        return w->r->image || w->r->own;
    cache_claim(cache, &key, MOST_WAIT, &claim);
    bool made = recall(w, &key) ? w->r->image || w->r->own : make_anew(w, &key);
    cache_unclaim(cache, &claim);
    return made;
}

// --- the ways in ------------------------------------------------------------------------------------------

// Returns false if no mode wants the image rewritten.
static bool choose_passes(struct work *w, const struct rewrite_origin *from)
{
    struct rewrite_origin origin = *from;
    origin.arch = w->arch;
    client->plan(&origin, &w->r->plan);
    rewrite_plan_list(&w->r->plan, w->passes, sizeof w->passes);
    return w->r->plan.count;
}

static struct work *begin(struct rewrite *r, bool library, const struct rewrite_options *options,
                          const struct rewrite_origin *from, const char *where)
{
    *r = (struct rewrite){.why = REWRITE_OFF, .library = library};
    struct work *w = rewrite_on ? mem_zalloc(1, sizeof *w) : NULL;
    if (!w)
        return NULL;
    w->r = r;
    w->where = where;
    w->sink.emit = keep_first;
    if (!find_device(w, library) || !choose_passes(w, from)) {
        mem_free(w);
        return NULL;
    }
    if (rewrite_jit_take(&w->jit, options)) {
        leave(r, REWRITE_FAILED, "it is compiled with options that moat cannot preserve");
        mem_free(w);
        return NULL;
    }
    return w;
}

static bool finish(struct work *w, int err, bool together)
{
    struct rewrite *r = w->r;
    bool ours = false;
    if (!err && may_be_apart(w, together))
        strcat(w->passes, ",variants");
    if (err == -ENODATA)
        leave(r, REWRITE_MACHINE_CODE, "no PTX is in it");
    else if (err)
        failed(w, err);
    else
        ours = make(w);
    if (!ours && !r->cached) {
        r->image = NULL;
        release(r);
    }
    for (unsigned i = 0; i < w->ntexts; i++)
        pass_result_free(w->texts[i]);
    rewrite_source_free(&w->source);
    mem_free(w);
    return ours;
}

// Recognises an image that a link of rewritten texts made.
static bool recall_link(struct rewrite *r, const void *image)
{
    if (!rewrite_about_recall(image, r))
        return false;
    r->image = r->nparts ? image : NULL;
    return true;
}

bool rewrite_memory(struct rewrite *r, const void *image, bool library, const struct rewrite_options *options)
{
    int saved = errno;
    struct work *w = begin(r, library, options, &(struct rewrite_origin){.image = image}, "in memory");
    if (!w) {
        // The image itself does not say what it was made of.
        bool known = rewrite_on && r->why == REWRITE_OFF && recall_link(r, image);
        errno = saved;
        return known && r->image;
    }
    int err = rewrite_source_memory(&w->source, image, w->arch, &w->sink);
    bool ours;
    if (err && recall_link(r, image)) {
        rewrite_source_free(&w->source);
        mem_free(w);
        ours = r->image;
    } else {
        ours = finish(w, err, options->together);
    }
    errno = saved;
    return ours;
}

bool rewrite_file(struct rewrite *r, const char *path, bool library, const struct rewrite_options *options)
{
    int saved = errno;
    struct work *w = begin(r, library, options, &(struct rewrite_origin){.path = path}, "in a file");
    bool ours =
        w && finish(w, rewrite_source_file(&w->source, path, w->arch, false, &w->sink), options->together);
    errno = saved;
    return ours;
}

static void add_to_summary(const struct rewrite *r)
{
    bool lowered = false;
    for (unsigned i = 0; i < r->nparts; i++) {
        lowered |= r->parts[i]->lowered;
        for (uint32_t f = 0; f < r->parts[i]->nfuncs; f++) {
            const struct pass_func *func = &r->parts[i]->funcs[f];
            if (func->is_entry)
                guard_count(func->why == PASS_REWRITTEN  ? GUARD_KERNELS_REWRITTEN
                            : func->why == PASS_UNWANTED ? GUARD_KERNELS_UNWANTED
                            : func->why == PASS_CROWDED  ? GUARD_KERNELS_CROWDED
                                                         : GUARD_KERNELS_LAUNCHING);
        }
    }
    guard_count(GUARD_MODULES_REWRITTEN);
    if (lowered)
        guard_count(GUARD_MODULES_LOWERED);
}

bool rewrite_end(struct rewrite *r, CUresult result, const void *handle, bool library)
{
    if (result) {
        release(r);
        return leave(r, REWRITE_REFUSED, "%s", name_of(result));
    }
    add_to_summary(r);
    const struct rewrite_module module = {modules_add(handle, library, r->parts, r->nparts), r->parts,
                                          r->nparts};
    if (module.row) {
        module.row->later = r->later;
        r->later = NULL;
        r->parts = NULL;
        r->nparts = 0;
    }
    client->loaded(&module);
    modules_release(module.row);
    release(r);
    return true;
}

bool rewrite_again(struct rewrite *r, struct rewrite_options *options, CUresult result, const void *handle,
                   bool library)
{
    if (result || !r->later || options->together || rewrite_later_fits(checks_of(r), handle, library))
        return false;
    if (library)
        guard.real.cuLibraryUnload((CUlibrary)handle);
    else
        guard.real.cuModuleUnload((CUmodule)handle);
    release(r);
    options->together = true;
    return true;
}

// Returns whether a reason is to be noted: the first few of a kind are that differ in more than a kernel's
// name. Relaxed: the note itself is all that is shared.
static bool is_news(const struct rewrite *r)
{
    enum { MOST = 3 };
    static _Atomic uint64_t noted[REWRITE_WHYS][MOST];
    uint64_t sum = XXH3_64bits(r->detail, strcspn(r->detail, ":")) | 1;
    for (unsigned i = 0; i < MOST; i++) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong_explicit(&noted[r->why][i], &there, sum, memory_order_relaxed,
                                                    memory_order_relaxed))
            return true;
        if (there == sum)
            return false;
    }
    return false;
}

void rewrite_left(const struct rewrite *r, CUresult result)
{
    static const struct {
        enum guard_count count;
        const char *text;
    } rows[REWRITE_WHYS] = {
        [REWRITE_MACHINE_CODE] = {GUARD_LEFT_MACHINE_CODE, "has machine code only"},
        [REWRITE_LAUNCHES] = {GUARD_LEFT_LAUNCHES, "launches kernels on the device"},
        [REWRITE_FAILED] = {GUARD_LEFT_FAILED, "could not be rewritten"},
        [REWRITE_REFUSED] = {GUARD_LEFT_REFUSED, "was refused by the driver after it was rewritten"},
    };
    // An image that the driver refuses as well is not counted.
    if (result || r->why == REWRITE_OFF)
        return;
    client->left(r);
    if (!r->plan.whole)
        return;
    guard_count(rows[r->why].count);
    if (is_news(r))
        guard_report_note("a module %s and runs unchanged (%s); the summary counts others like it",
                          rows[r->why].text, r->detail);
}

// --- links ------------------------------------------------------------------------------------------------

bool rewrite_input(struct rewrite *r, struct rewrite_texts *t, const void *bytes, size_t size,
                   const char *path)
{
    static const struct rewrite_options none;
    int saved = errno;
    struct work *w =
        begin(r, false, &none, &(struct rewrite_origin){bytes, size, path, 0}, "as an input of a link");
    *t = (struct rewrite_texts){0};
    if (!w)
        return false;
    int err = path ? rewrite_source_file(&w->source, path, w->arch, true, &w->sink)
                   : rewrite_source_bytes(&w->source, bytes, size, w->arch, true, &w->sink);
    bool ours = !err && rewrite_all(w);
    if (err == -ENODATA)
        leave(r, REWRITE_MACHINE_CODE, "no PTX is in it");
    else if (err)
        failed(w, err);
    if (ours) {
        dump_all(w);
        t->parts = mem_alloc(w->ntexts * sizeof *t->parts);
    }
    if (t->parts) {
        memcpy(t->parts, w->texts, w->ntexts * sizeof *t->parts);
        t->count = w->ntexts;
        w->ntexts = 0;
    } else if (ours) {
        ours = failed(w, -ENOMEM);
    }
    for (unsigned i = 0; i < w->ntexts; i++)
        pass_result_free(w->texts[i]);
    rewrite_source_free(&w->source);
    mem_free(w);
    errno = saved;
    return ours;
}

// What it is linked with may be rewritten and loaded as moat's: this is the only moment to inform the client.
void rewrite_input_left(const void *bytes, size_t size, const char *path)
{
    int saved = errno;
    CUdevice device;
    struct rewrite_origin origin = {bytes, size, path, 0};
    origin.arch = guard.real.cuCtxGetDevice(&device) ? 0 : arch_of(device);
    if (rewrite_on && origin.arch)
        client->input_left(&origin);
    errno = saved;
}

void rewrite_texts_free(struct rewrite_texts *t)
{
    for (unsigned i = 0; i < t->count; i++)
        pass_result_free(t->parts[i]);
    mem_free(t->parts);
    *t = (struct rewrite_texts){0};
}
