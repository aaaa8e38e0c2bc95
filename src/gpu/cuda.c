/* cuda.c - NVIDIA GPUs through the CUDA driver API; NVRTC compiles the text of the kernels (cuda_api.c).
 *
 *     heap   one allocation of the device          lane   one stream
 *     mark   an event of the lane's ring           graph  the kernels of a lane, captured and launched as one
 *
 * Small puts go through page-locked memory of the host, from which the device copies on its own: the caller's memory is free
 * at once, and the lane goes on.  That memory is a ring of segments; a segment is written again when the copies out of it have
 * ended.  All other transfers wait for the lane. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/cuda_api.h"
#include "gpu/gpu.h"

enum { SEGMENT = 256 << 10, SEGMENTS = 8, MOST_PITCH = INT32_MAX };

struct lane {
    struct CUstream_st *stream;
    struct CUevent_st **mark;          /* [GPU_SLOTS], made when they are first used */
    char *ring;                        /* SEGMENTS x SEGMENT bytes, NULL until the first small put */
    struct CUevent_st *left[SEGMENTS]; /* the copies out of that segment */
    i32 segment;                       /* the one that is being filled */
    i64 filled;                        /* bytes of it */
    i32 recording;                     /* 1 + the lane whose graph takes the work of this one; 0 = none */
};

struct device {
    struct cuda api;
    char name[GPU_NAME], at[GPU_NAME + 24]; /* as in struct gpu_card */
    u64 number; /* of this opening in the process, from 1 */
    int index, handle, cc;
    struct CUctx_st *context;
    struct CUmod_st *module;
    struct CUfunc_st *kernel[GPU_NKERNEL];
    cu_address heap;
    i32 lanes;
    struct lane *lane;
};

static _Atomic u64 openings;
static _Thread_local u64 current; /* number of the device that this thread has called last */

/* Returns from the calling function with a message unless the call of the driver succeeds. */
#define CU(d, call, ...)                                                                                                         \
    do {                                                                                                                         \
        const int status_ = (d)->api.call(__VA_ARGS__);                                                                          \
        if (status_ != CUDA_SUCCESS) return cuda_refused(&(d)->api, (d)->at, #call, status_);                                    \
    } while (0)

/* Makes the device's context that of the thread.  Other libraries of the process may have changed it meanwhile. */
static err use(const struct device *d) {
    struct CUctx_st *now = NULL;
    if (current == d->number && d->api.cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == d->context) return 0;
    CU(d, cuCtxSetCurrent, d->context);
    current = d->number;
    return 0;
}

/* ------------------------------------------------------------------ devices ------------------------------------------------- */

static int attribute(const struct cuda *c, int handle, int which) {
    int value = 0;
    return c->cuDeviceGetAttribute(&value, which, handle) == CUDA_SUCCESS ? value : 0;
}

static bool describe(const struct cuda *c, int index, struct gpu_card *out) {
    int handle;
    size_t bytes = 0;
    memset(out, 0, sizeof *out);
    if (c->cuDeviceGet(&handle, index) != CUDA_SUCCESS) return false;
    if (c->cuDeviceGetName(out->name, sizeof out->name, handle) != CUDA_SUCCESS) return false;
    if (c->cuDeviceTotalMem_v2(&bytes, handle) != CUDA_SUCCESS) return false;
    out->name[sizeof out->name - 1] = '\0';
    snprintf(out->at, sizeof out->at, "cuda:%d (%s)", index, out->name);
    snprintf(out->platform, sizeof out->platform, "CUDA %d.%d", c->version / 1000, c->version % 1000 / 10);
    out->memory = out->largest = (i64)bytes;
    out->units = attribute(c, handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return true;
}

/* The last error in one sentence. */
static void say_why(char why[GPU_WHY]) {
    const struct err_record *r = err_last();
    snprintf(why, GPU_WHY, "no CUDA: %.60s: %.120s", r->where, r->text);
    err_clear();
}

static i32 cards(struct gpu_card *out, i32 max, char why[GPU_WHY]) {
    struct cuda c;
    int n = 0;
    if (cuda_open(&c) < 0) {
        say_why(why);
        return 0;
    }
    if (c.cuDeviceGetCount(&n) != CUDA_SUCCESS) n = 0;
    n = imin(n, max);
    for (i32 i = 0; i < n; i++)
        if (!describe(&c, i, &out[i])) n = i; /* numbers are places in the list: what follows a lost device is left out */
    if (n == 0) snprintf(why, GPU_WHY, "no CUDA: the driver finds no GPU");
    cuda_close(&c);
    return n;
}

/* ------------------------------------------------------------------ the program --------------------------------------------- */

static int load_cached(struct device *d, const char *key) {
    size_t size;
    void *program = gpu_program_load(key, &size);
    if (!program) return -1;
    const int status = d->api.cuModuleLoadData(&d->module, program);
    mem_free(program);
    if (status != CUDA_SUCCESS) d->module = NULL;
    return status;
}

/* An NVRTC newer than the driver makes programs that the driver may not know. */
static err module_refused(const struct device *d, int status) {
    const struct cuda *c = &d->api;
    char fix[200];
    if (c->version <= 0 || 1000 * c->major + 10 * c->minor <= c->version)
        return cuda_refused(c, d->at, "cuModuleLoadData", status);
    snprintf(fix, sizeof fix, "a driver for CUDA %d.%d   or   STRETTO_NVRTC=FILE of an NVRTC of CUDA %d   or   --device cpu",
             c->major, c->minor, c->version / 1000);
    return FAIL_AT(E831, d->at, fix, "the driver, for CUDA %d.%d, refuses what NVRTC %d.%d has compiled (%d)", c->version / 1000,
                   c->version % 1000 / 10, c->major, c->minor, status);
}

static err compile(struct device *d, const struct cuda_target *t, const char *key) {
    void *program;
    size_t size;
    TRY(cuda_compile(&d->api, t, d->at, &program, &size));
    const int status = d->api.cuModuleLoadData(&d->module, program);
    if (status == CUDA_SUCCESS) gpu_program_save(key, program, size);
    else d->module = NULL;
    mem_free(program);
    return status == CUDA_SUCCESS ? 0 : module_refused(d, status);
}

static err load(struct device *d) {
    struct cuda_target t;
    char key[512];
    TRY(cuda_target(&d->api, d->cc, d->at, &t));
    snprintf(key, sizeof key, "cuda %s sm_%d driver %d nvrtc %d.%d %s %s", d->name, d->cc, d->api.version, d->api.major,
             d->api.minor, t.option, cuda_options());
    if (load_cached(d, key) != CUDA_SUCCESS) TRY(compile(d, &t, key));
    for (i32 k = 0; k < GPU_NKERNEL; k++) {
        int status = d->api.cuModuleGetFunction(&d->kernel[k], d->module, gpu_kernel_name[k]);
        if (status == CUDA_SUCCESS && d->api.cuFuncLoad) status = d->api.cuFuncLoad(d->kernel[k]); /* not in the first step */
        if (status != CUDA_SUCCESS) return cuda_refused(&d->api, d->at, gpu_kernel_name[k], status);
    }
    return 0;
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

static void close_lane(const struct device *d, struct lane *l) {
    if (l->stream) d->api.cuStreamSynchronize(l->stream);
    for (i32 i = 0; l->mark && i < GPU_SLOTS; i++)
        if (l->mark[i]) d->api.cuEventDestroy_v2(l->mark[i]);
    for (i32 i = 0; i < SEGMENTS; i++)
        if (l->left[i]) d->api.cuEventDestroy_v2(l->left[i]);
    if (l->ring) d->api.cuMemFreeHost(l->ring);
    if (l->stream) d->api.cuStreamDestroy_v2(l->stream);
    mem_free(l->mark);
}

static void close_device(void *dev) {
    struct device *d = dev;
    if (d->context && use(d) == 0) {
        for (i32 i = 0; i < d->lanes; i++) close_lane(d, &d->lane[i]);
        if (d->module) d->api.cuModuleUnload(d->module);
        if (d->heap) d->api.cuMemFree_v2(d->heap);
        d->api.cuCtxSetCurrent(NULL);
    }
    if (d->context) d->api.cuDevicePrimaryCtxRelease_v2(d->handle);
    current = 0;
    mem_free(d->lane);
    cuda_close(&d->api);
    mem_free(d);
}

static err open_lanes(struct device *d, i32 lanes) {
    NEW(d->lane, lanes);
    d->lanes = lanes;
    for (i32 i = 0; i < lanes; i++) {
        NEW(d->lane[i].mark, GPU_SLOTS);
        CU(d, cuStreamCreate, &d->lane[i].stream, CU_STREAM_NON_BLOCKING);
    }
    return 0;
}

static err open_heap(struct device *d, i64 bytes) {
    struct CUstream_st *stream = d->lane[0].stream;
    const int status = d->api.cuMemAlloc_v2(&d->heap, (size_t)bytes);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
        size_t left = 0, total = 0;
        d->heap = 0;
        d->api.cuMemGetInfo_v2(&left, &total);
        return FAIL_AT(E601, d->at, "a smaller --batch   or   end other programs on the device (nvidia-smi lists them)",
                       "the device refuses %lld MiB of memory: %zu of its %zu MiB are free", (long long)(bytes >> 20), left >> 20,
                       total >> 20);
    }
    if (status != CUDA_SUCCESS) return cuda_refused(&d->api, d->at, "cuMemAlloc", status);
    CU(d, cuMemsetD8Async, d->heap, 0, (size_t)bytes, stream);
    CU(d, cuStreamSynchronize, stream);
    return 0;
}

static err find_device(struct device *d, i32 index) {
    struct gpu_card card;
    snprintf(d->at, sizeof d->at, "cuda:%d", index);
    CU(d, cuDeviceGet, &d->handle, index);
    if (describe(&d->api, index, &card)) {
        memcpy(d->name, card.name, sizeof d->name);
        memcpy(d->at, card.at, sizeof d->at);
    }
    d->cc = 10 * attribute(&d->api, d->handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
            attribute(&d->api, d->handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    const int status = d->api.cuDevicePrimaryCtxRetain(&d->context, d->handle);
    if (status != CUDA_SUCCESS) d->context = NULL;
    return status == CUDA_SUCCESS ? use(d) : cuda_refused(&d->api, d->at, "cuDevicePrimaryCtxRetain", status);
}

static err open_all(struct device *d, i32 index, i32 lanes, i64 bytes) {
    TRY(cuda_open(&d->api));
    TRY(find_device(d, index));
    TRY(open_lanes(d, lanes));
    TRY(open_heap(d, bytes));
    return load(d);
}

static err open_device(i32 index, i32 lanes, i64 bytes, void **dev) {
    struct device *d;
    *dev = NULL;
    NEW(d, 1);
    d->number = 1 + atomic_fetch_add(&openings, 1);
    const err e = open_all(d, index, lanes, bytes);
    if (e < 0) {
        const struct err_record why = *err_last();
        close_device(d);
        err_put(&why);
    } else {
        *dev = d;
    }
    return e;
}

/* ------------------------------------------------------------------ transfers ----------------------------------------------- */

/* Waits until the next `bytes` of the ring may be written. */
static err stage(const struct device *d, struct lane *l, i64 bytes, char **out) {
    if (!l->ring) {
        void *ring;
        CU(d, cuMemHostAlloc, &ring, (size_t)SEGMENTS * SEGMENT, 0);
        l->ring = ring;
    }
    if (l->filled + bytes > SEGMENT) {
        struct CUevent_st **left = &l->left[l->segment];
        if (!*left) CU(d, cuEventCreate, left, CU_EVENT_DISABLE_TIMING);
        CU(d, cuEventRecord, *left, l->stream);
        l->segment = (l->segment + 1) % SEGMENTS;
        l->filled = 0;
        if (l->left[l->segment]) CU(d, cuEventSynchronize, l->left[l->segment]);
    }
    *out = l->ring + (i64)l->segment * SEGMENT + l->filled;
    l->filled += round_up64(bytes, 64);
    return 0;
}

/* What the driver takes as rows of one copy. */
static bool is_pitched(const struct gpu_rows *r) {
    return r->pitch >= r->bytes && r->host_pitch >= r->bytes && r->pitch <= MOST_PITCH && r->host_pitch <= MOST_PITCH;
}

static struct gpu_rows row_of(const struct gpu_rows *r, i64 i) {
    return (struct gpu_rows){.bytes = r->bytes, .n = 1, .at = r->at + i * r->pitch, .pitch = r->bytes, .host_pitch = r->bytes};
}

static err to_device(const struct device *d, const struct lane *l, const struct gpu_rows *r, const char *from) {
    const cu_address to = d->heap + (cu_address)r->at;
    if (gpu_one_piece(r)) {
        CU(d, cuMemcpyHtoDAsync_v2, to, from, (size_t)(r->bytes * r->n), l->stream);
    } else if (is_pitched(r)) {
        const struct cu_copy c = {.src_type = CU_MEMORYTYPE_HOST, .src_host = from, .src_pitch = (size_t)r->host_pitch,
                                  .dst_type = CU_MEMORYTYPE_DEVICE, .dst_device = to, .dst_pitch = (size_t)r->pitch,
                                  .width = (size_t)r->bytes, .height = (size_t)r->n};
        CU(d, cuMemcpy2DAsync_v2, &c, l->stream);
    } else {
        for (i64 i = 0; i < r->n; i++) {
            const struct gpu_rows row = row_of(r, i);
            TRY(to_device(d, l, &row, from + i * r->host_pitch));
        }
    }
    return 0;
}

static err to_host(const struct device *d, const struct lane *l, const struct gpu_rows *r, char *to) {
    const cu_address from = d->heap + (cu_address)r->at;
    if (gpu_one_piece(r)) {
        CU(d, cuMemcpyDtoHAsync_v2, to, from, (size_t)(r->bytes * r->n), l->stream);
    } else if (is_pitched(r)) {
        const struct cu_copy c = {.src_type = CU_MEMORYTYPE_DEVICE, .src_device = from, .src_pitch = (size_t)r->pitch,
                                  .dst_type = CU_MEMORYTYPE_HOST, .dst_host = to, .dst_pitch = (size_t)r->host_pitch,
                                  .width = (size_t)r->bytes, .height = (size_t)r->n};
        CU(d, cuMemcpy2DAsync_v2, &c, l->stream);
    } else {
        for (i64 i = 0; i < r->n; i++) {
            const struct gpu_rows row = row_of(r, i);
            TRY(to_host(d, l, &row, to + i * r->host_pitch));
        }
    }
    return 0;
}

static err ready(const struct device *d, const struct lane *l, const struct gpu_rows *r) {
    if (r->bytes < 0 || r->n < 0 || r->at < 0) return FAIL(E1, "transfer of %lld rows", (long long)r->n);
    if (l->recording) return FAIL(E1, "a transfer inside a graph of %s: a graph holds kernels only", d->at);
    return use(d);
}

static err put_small(const struct device *d, struct lane *l, const struct gpu_rows *r, const char *from) {
    struct gpu_rows packed = *r;
    char *at = NULL;
    TRY(stage(d, l, r->bytes * r->n, &at));
    for (i64 i = 0; i < r->n; i++) memcpy(at + i * r->bytes, from + i * r->host_pitch, (size_t)r->bytes);
    packed.host_pitch = r->bytes;
    return to_device(d, l, &packed, at);
}

static err put(void *dev, i32 lane, const struct gpu_rows *r, const void *from) {
    const struct device *d = dev;
    struct lane *l = &d->lane[lane];
    TRY(ready(d, l, r));
    if (r->bytes * r->n == 0) return 0;
    if (r->bytes * r->n <= SEGMENT) return put_small(d, l, r, from);
    TRY(to_device(d, l, r, from));
    CU(d, cuStreamSynchronize, l->stream);
    return 0;
}

static err get(void *dev, i32 lane, const struct gpu_rows *r, void *to) {
    const struct device *d = dev;
    const struct lane *l = &d->lane[lane];
    TRY(ready(d, l, r));
    if (r->bytes * r->n == 0) return 0;
    TRY(to_host(d, l, r, to));
    CU(d, cuStreamSynchronize, l->stream);
    return 0;
}

/* ------------------------------------------------------------------ work of a lane ------------------------------------------ */

static err launch_refused(const struct device *d, enum gpu_kernel k, struct gpu_size g, struct gpu_size l, int status) {
    char call[160];
    snprintf(call, sizeof call, "cuLaunchKernel %s, %d x %d x %d groups of %d x %d x %d", gpu_kernel_name[k], g.x, g.y, g.z, l.x,
             l.y, l.z);
    return cuda_refused(&d->api, d->at, call, status);
}

static err launch(void *dev, i32 lane, enum gpu_kernel k, struct gpu_size groups, struct gpu_size local, const void *args,
                  size_t size) {
    const struct device *d = dev;
    cu_address heap = d->heap;
    void *given[] = {&heap, (void *)(uintptr_t)args}; /* the driver reads both before it returns */
    (void)size;                                       /* it knows the sizes from the program */
    TRY(use(d));
    const int status = d->api.cuLaunchKernel(d->kernel[k], (unsigned)groups.x, (unsigned)groups.y, (unsigned)groups.z,
                                             (unsigned)local.x, (unsigned)local.y, (unsigned)local.z, 0, d->lane[lane].stream,
                                             given, NULL);
    return status == CUDA_SUCCESS ? 0 : launch_refused(d, k, groups, local, status);
}

static err mark(void *dev, i32 lane, i32 slot) {
    const struct device *d = dev;
    struct lane *l = &d->lane[lane];
    TRY(use(d));
    if (!l->mark[slot]) CU(d, cuEventCreate, &l->mark[slot], CU_EVENT_DEFAULT);
    CU(d, cuEventRecord, l->mark[slot], l->stream);
    return 0;
}

static err wait(void *dev, i32 lane, i32 of, i32 slot) {
    const struct device *d = dev;
    struct lane *l = &d->lane[lane], *other = &d->lane[of];
    if (lane == of || !other->mark[slot]) return 0; /* a stream runs in order; a mark that was never set is behind us */
    TRY(use(d));
    CU(d, cuStreamWaitEvent, l->stream, other->mark[slot], 0);
    if (other->recording) l->recording = other->recording; /* the driver adds this lane to the graph */
    return 0;
}

static err watch(void *dev, i32 lane) {
    (void)dev, (void)lane; /* a stream can be asked at any time */
    return 0;
}

static err is_done(void *dev, i32 lane, bool *is_idle) {
    const struct device *d = dev;
    TRY(use(d));
    const int status = d->api.cuStreamQuery(d->lane[lane].stream);
    *is_idle = status == CUDA_SUCCESS;
    if (*is_idle || status == CUDA_ERROR_NOT_READY) return 0;
    return cuda_refused(&d->api, d->at, "cuStreamQuery", status);
}

static err sync_lane(void *dev, i32 lane) {
    const struct device *d = dev;
    TRY(use(d));
    CU(d, cuStreamSynchronize, d->lane[lane].stream);
    return 0;
}

static f64 between(void *dev, i32 lane, i32 a, i32 b) {
    const struct device *d = dev;
    const struct lane *l = &d->lane[lane];
    float ms = 0;
    if (!l->mark[a] || !l->mark[b] || use(d) < 0) return -1;
    return d->api.cuEventElapsedTime(&ms, l->mark[a], l->mark[b]) == CUDA_SUCCESS ? (f64)ms * 1e-3 : -1;
}

static err free_memory(i32 index, i64 *bytes) {
    struct device *d;
    size_t left = 0, total = 0;
    NEW(d, 1);
    d->number = 1 + atomic_fetch_add(&openings, 1);
    err e = cuda_open(&d->api);
    if (e == 0) e = find_device(d, index);
    const int status = e == 0 ? d->api.cuMemGetInfo_v2(&left, &total) : CUDA_SUCCESS;
    if (status != CUDA_SUCCESS) e = cuda_refused(&d->api, d->at, "cuMemGetInfo", status);
    *bytes = (i64)left;
    close_device(d);
    return e;
}

/* ------------------------------------------------------------------ graphs -------------------------------------------------- */

static err record(void *dev, i32 lane) {
    const struct device *d = dev;
    TRY(use(d));
    CU(d, cuStreamBeginCapture_v2, d->lane[lane].stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    d->lane[lane].recording = lane + 1;
    return 0;
}

static err recorded(void *dev, i32 lane, void **graph) {
    const struct device *d = dev;
    struct CUgraph_st *g = NULL;
    struct CUgraphExec_st *made = NULL;
    *graph = NULL;
    for (i32 i = 0; i < d->lanes; i++)
        if (d->lane[i].recording == lane + 1) d->lane[i].recording = 0;
    TRY(use(d));
    CU(d, cuStreamEndCapture, d->lane[lane].stream, &g);
    const int status = d->api.cuGraphInstantiateWithFlags(&made, g, 0);
    d->api.cuGraphDestroy(g);
    if (status != CUDA_SUCCESS) return cuda_refused(&d->api, d->at, "cuGraphInstantiate", status);
    *graph = made;
    return 0;
}

static err replay(void *dev, i32 lane, void *graph) {
    const struct device *d = dev;
    TRY(use(d));
    CU(d, cuGraphLaunch, graph, d->lane[lane].stream);
    return 0;
}

static void drop(void *dev, void *graph) {
    const struct device *d = dev;
    if (graph && use(d) == 0) d->api.cuGraphExecDestroy(graph);
}

const struct gpu_driver gpu_driver_cuda = {.name = "cuda",
                                           .help = "NVIDIA GPUs: CUDA driver (libcuda.so.1) and NVRTC (libnvrtc.so)",
                                           .cards = cards,
                                           .open = open_device,
                                           .close = close_device,
                                           .put = put,
                                           .get = get,
                                           .launch = launch,
                                           .mark = mark,
                                           .wait = wait,
                                           .watch = watch,
                                           .idle = is_done,
                                           .sync = sync_lane,
                                           .between = between,
                                           .free_memory = free_memory,
                                           .record = record,
                                           .recorded = recorded,
                                           .replay = replay,
                                           .drop = drop};
