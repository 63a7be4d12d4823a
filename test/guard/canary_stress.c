// SPDX-License-Identifier: MIT
// canary_stress SECONDS [THREADS [SEED [clean]]]: threads that allocate, launch, copy, capture and free at
// random, in memory of every kind, and now and then write a byte behind or before a buffer, once per buffer
// and by a kernel. At the end they print how often: "planted behind N before M". Exactly so many must be
// reported. With `clean` they plant none and free all. The free memory of the device must return to its
// start, except for what is not freed.
//
// Each buffer belongs to one thread and one of its streams; there is no other order.
#include "canary_kernels.h"

enum { SLOTS = 48, STREAMS = 3, MOST_THREADS = 64 };

enum kind { PLAIN, PITCHED, PINNED, MANAGED, ORDERED, POOLED, KINDS };

struct slot {
    CUdeviceptr p;  // 0: empty
    size_t size;
    enum kind kind;
    unsigned stream;
    bool common;  // of a common size: its place is reused soon
    bool planted;
};

struct stress {
    pthread_t thread;
    uint64_t random;
    CUstream streams[STREAMS];
    CUmemoryPool pool;
    kernels_word *flag;
    struct slot slots[SLOTS];
    uint64_t behind, before, operations;
    bool tidy;  // frees all at the end
};

static struct kernels kernels;
static double end;
static bool captures, clean;
static struct stress threads[MOST_THREADS];

static unsigned pick(struct stress *s, unsigned below)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((s->random >> 33) % below);
}

static size_t pick_size(struct stress *s)
{
    unsigned class = pick(s, 100);
    return 1 + pick(s, class < 70 ? 2000 : class < 95 ? 300000 : 4 << 20);
}

static CUresult make(struct stress *s, struct slot *b)
{
    CUstream stream = s->streams[b->stream];
    size_t pitch;
    CUresult r;
    switch (b->kind) {
    case PLAIN: return d.cuMemAlloc_v2(&b->p, b->size);
    case PITCHED:
        r = d.cuMemAllocPitch_v2(&b->p, &pitch, b->size / 7 + 1, 7, 4);
        b->size = pitch * 7;
        return r;
    case PINNED: return d.cuMemHostAlloc((void **)&b->p, b->size, CU_MEMHOSTALLOC_DEVICEMAP);
    case MANAGED: return d.cuMemAllocManaged(&b->p, b->size, CU_MEM_ATTACH_GLOBAL);
    case ORDERED: return d.cuMemAllocAsync(&b->p, b->size, stream);
    default: return d.cuMemAllocFromPoolAsync(&b->p, b->size, s->pool, stream);
    }
}

static void take(struct stress *s, struct slot *b)
{
    bool common = pick(s, 2);
    *b = (struct slot){.size = common ? 500 * (1 + pick(s, 6)) : pick_size(s),
                       .kind = (enum kind)pick(s, KINDS),
                       .stream = pick(s, STREAMS),
                       .common = common};
    NEED(make(s, b));
}

// cuMemFree waits for running work; cuMemFreeHost may not, and a stream-ordered free is ordered by its
// stream.
static void give(struct stress *s, struct slot *b)
{
    CUstream stream = s->streams[b->stream];
    bool in_order = b->kind == ORDERED || b->kind == POOLED;
    if (b->kind == PINNED || b->kind == MANAGED)
        NEED(d.cuStreamSynchronize(stream));
    if (b->kind == PINNED)
        NEED(d.cuMemFreeHost((void *)(uintptr_t)b->p));
    else if (in_order ? pick(s, 4) : b->kind == PLAIN && !pick(s, 4))
        NEED(d.cuMemFreeAsync(b->p, stream));
    else {
        if (in_order)
            NEED(d.cuStreamSynchronize(stream));
        NEED(d.cuMemFree_v2(b->p));
    }
    b->p = 0;
}

// The next buffer in a pool's place could overwrite the error before it is checked.
static void plant(struct stress *s, struct slot *b)
{
    bool in_order = b->kind == ORDERED || b->kind == POOLED;
    if (b->planted || clean || (in_order && b->common))
        return;
    bool behind = pick(s, 2);
    b->planted = true;
    s->behind += behind;
    s->before += !behind;
    kernels_flip(&kernels, behind ? b->p + b->size : b->p - 1, 1, s->flag, s->streams[b->stream]);
}

// Waiting for a context ends every capture in it: held shared by threads that capture, and exclusively by one
// that waits.
static pthread_rwlock_t capturing = PTHREAD_RWLOCK_INITIALIZER;

static void wait_for_all(void)
{
    pthread_rwlock_wrlock(&capturing);
    NEED(d.cuCtxSynchronize());
    pthread_rwlock_unlock(&capturing);
}

static void capture(struct stress *s, struct slot *b)
{
    CUstream stream = s->streams[b->stream];
    CUgraph graph;
    CUgraphExec run;
    pthread_rwlock_rdlock(&capturing);
    NEED(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    kernels_fill(&kernels, b->p, b->size, stream);
    if (!pick(s, 10))
        plant(s, b);
    NEED(d.cuStreamEndCapture(stream, &graph));
    pthread_rwlock_unlock(&capturing);
    NEED(d.cuGraphInstantiateWithFlags(&run, graph, 0));
    NEED(d.cuGraphLaunch(run, stream));
    NEED(d.cuStreamSynchronize(stream));
    NEED(d.cuGraphExecDestroy(run));
    NEED(d.cuGraphDestroy(graph));
}

static void use(struct stress *s, struct slot *b)
{
    static _Thread_local unsigned char bytes[4096];
    CUstream stream = s->streams[b->stream];
    size_t some = b->size < sizeof bytes ? b->size : sizeof bytes;
    switch (pick(s, captures ? 12 : 11)) {
    case 0: NEED(d.cuMemsetD8Async(b->p, 0, b->size, stream)); break;
    case 1: NEED(d.cuMemcpyHtoDAsync_v2(b->p + b->size - some, bytes, some, stream)); break;
    case 2:
        NEED(d.cuMemcpyDtoHAsync_v2(bytes, b->p, some, stream));
        NEED(d.cuStreamSynchronize(stream));
        break;
    case 3: NEED(d.cuStreamSynchronize(stream)); break;
    case 4:
        if (!pick(s, 4))
            plant(s, b);
        break;
    case 5:
        if (!pick(s, 20))
            wait_for_all();
        break;
    case 11: capture(s, b); break;
    default: kernels_fill(&kernels, b->p, b->size, stream);
    }
}

static void renew_stream(struct stress *s)
{
    CUstream *stream = &s->streams[pick(s, STREAMS)];
    NEED(d.cuStreamSynchronize(*stream));
    NEED(d.cuStreamDestroy_v2(*stream));
    NEED(d.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
}

static void *stress(void *argument)
{
    struct stress *s = argument;
    NEED(d.cuCtxSetCurrent(context));
    while (kernels_now() < end) {
        struct slot *b = &s->slots[pick(s, SLOTS)];
        s->operations++;
        if (!b->p)
            take(s, b);
        else if (!pick(s, 6))
            give(s, b);
        else
            use(s, b);
        if (!pick(s, 2000))
            renew_stream(s);
    }
    for (unsigned i = 0; i < SLOTS && s->tidy; i++)
        if (s->slots[i].p)
            give(s, &s->slots[i]);
    for (unsigned i = 0; i < STREAMS; i++)
        NEED(d.cuStreamSynchronize(s->streams[i]));
    if (s->tidy)
        NEED(d.cuMemPoolDestroy(s->pool));
    return NULL;
}

static void prepare(struct stress *s, unsigned i, unsigned seed)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    s->random = seed * 1000003u + i;
    s->tidy = clean || i % 2;
    s->flag = kernels_new_word();
    NEED(d.cuMemPoolCreate(&s->pool, &properties));
    for (unsigned k = 0; k < STREAMS; k++)
        NEED(d.cuStreamCreate(&s->streams[k], CU_STREAM_NON_BLOCKING));
}

static bool can_capture(CUstream stream)
{
    CUgraph graph = NULL;
    if (d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        return false;
    NEED(d.cuStreamEndCapture(stream, &graph));
    if (graph)
        NEED(d.cuGraphDestroy(graph));
    return true;
}

static size_t available(void)
{
    size_t now, all;
    NEED(d.cuMemGetInfo_v2(&now, &all));
    return now;
}

static size_t not_freed(const struct stress *s)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < SLOTS; i++)
        bytes += s->slots[i].p && s->slots[i].kind != PINNED ? s->slots[i].size : 0;
    return bytes;
}

// Nothing may be lost except what is in quarantine for a while and what slabs and pools keep. Other programs
// come and go on a device, and so does their memory.
static void check_memory(size_t start, size_t taken)
{
    enum { KEPT = 256 << 20, PATIENCE = 200, TENTH = 100000 };
    CUmemoryPool own;
    size_t now = 0;
    NEED(d.cuCtxSynchronize());
    NEED(d.cuDeviceGetDefaultMemPool(&own, 0));
    for (unsigned i = 0; i < PATIENCE; i++) {
        usleep(TENTH);
        NEED(d.cuMemPoolTrimTo(own, 0));
        now = available();
        if (now + taken + KEPT >= start)
            return;
    }
    printf("%zu bytes of the device did not come back\n", start - now - taken);
    exit(2);
}

static void begin(void)
{
    char why[300];
    // In some builds a sanitized program cannot have the guard preloaded: it may open it by name instead.
    if (driver_open(&d, getenv("CANARY_STRESS_DRIVER"), why, sizeof why)) {
        printf("no driver: %s\n", why);
        exit(77);
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    kernels_load(&kernels);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 4, seed = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    uint64_t behind = 0, before = 0, operations = 0;
    size_t taken = 0;
    clean = argc > 4;
    if (!count || count > MOST_THREADS)
        return 2;
    begin();
    for (unsigned i = 0; i < count; i++)
        prepare(&threads[i], i, seed);
    captures = can_capture(threads[0].streams[0]);
    end = kernels_now() + atof(argv[1]);
    size_t start = available();
    for (unsigned i = 0; i < count; i++)
        pthread_create(&threads[i].thread, NULL, stress, &threads[i]);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i].thread, NULL);
        behind += threads[i].behind;
        before += threads[i].before;
        operations += threads[i].operations;
        taken += not_freed(&threads[i]);
    }
    check_memory(start, taken);
    printf("operations %llu, with captures: %s\n", (unsigned long long)operations, captures ? "yes" : "no");
    printf("planted behind %llu before %llu\n", (unsigned long long)behind, (unsigned long long)before);
    return 0;
}
