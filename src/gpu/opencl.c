/* opencl.c - devices of every OpenCL platform: GPUs of all vendors, and the cores of the host where PoCL is installed.
 *
 * libOpenCL.so.1 is opened at run time and its functions are declared here, as the OpenCL 1.2 specification gives them: a build
 * needs no header, a program that never asks needs no library.  A device has a context of its own, one buffer (the heap), and a
 * queue in order for each lane.  Marks are marker events. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/mem.h"
#include "gpu/gpu.h"

#define OPENCL_LIBRARY "libOpenCL.so.1"

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_bits;

enum {
    CL_DEVICE_NOT_FOUND = -1,
    CL_MEM_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_OUT_OF_HOST_MEMORY = -6,
    CL_BUILD_PROGRAM_FAILURE = -11,
    CL_INVALID_KERNEL_NAME = -46,
    CL_INVALID_BUFFER_SIZE = -61,
    CL_PLATFORM_NAME = 0x0902,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_NAME = 0x102B,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    CL_PROFILING_COMMAND_END = 0x1283
};
#define CL_DEVICE_TYPE_ALL ((cl_bits)0xFFFFFFFF)
#define CL_DEVICE_TYPE_CPU ((cl_bits)2)
#define CL_MEM_READ_WRITE ((cl_bits)1)
#define CL_QUEUE_PROFILING ((cl_bits)2)

/* X(name, result, arguments) */
#define OPENCL_CALLS(X)                                                                                                          \
    X(clGetPlatformIDs, cl_int, (cl_uint, void **, cl_uint *))                                                                   \
    X(clGetPlatformInfo, cl_int, (void *, cl_uint, size_t, void *, size_t *))                                                    \
    X(clGetDeviceIDs, cl_int, (void *, cl_bits, cl_uint, void **, cl_uint *))                                                    \
    X(clGetDeviceInfo, cl_int, (void *, cl_uint, size_t, void *, size_t *))                                                      \
    X(clCreateContext, void *, (const intptr_t *, cl_uint, void *const *, void *, void *, cl_int *))                             \
    X(clReleaseContext, cl_int, (void *))                                                                                        \
    X(clCreateCommandQueue, void *, (void *, void *, cl_bits, cl_int *))                                                         \
    X(clReleaseCommandQueue, cl_int, (void *))                                                                                   \
    X(clCreateBuffer, void *, (void *, cl_bits, size_t, void *, cl_int *))                                                       \
    X(clReleaseMemObject, cl_int, (void *))                                                                                      \
    X(clCreateProgramWithSource, void *, (void *, cl_uint, const char **, const size_t *, cl_int *))                             \
    X(clCreateProgramWithBinary, void *,                                                                                         \
      (void *, cl_uint, void *const *, const size_t *, const unsigned char **, cl_int *, cl_int *))                              \
    X(clBuildProgram, cl_int, (void *, cl_uint, void *const *, const char *, void *, void *))                                    \
    X(clGetProgramBuildInfo, cl_int, (void *, void *, cl_uint, size_t, void *, size_t *))                                        \
    X(clGetProgramInfo, cl_int, (void *, cl_uint, size_t, void *, size_t *))                                                     \
    X(clReleaseProgram, cl_int, (void *))                                                                                        \
    X(clCreateKernel, void *, (void *, const char *, cl_int *))                                                                  \
    X(clReleaseKernel, cl_int, (void *))                                                                                         \
    X(clSetKernelArg, cl_int, (void *, cl_uint, size_t, const void *))                                                           \
    X(clEnqueueNDRangeKernel, cl_int,                                                                                            \
      (void *, void *, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint, void *const *, void **))                \
    X(clEnqueueReadBuffer, cl_int, (void *, void *, cl_uint, size_t, size_t, void *, cl_uint, void *const *, void **))           \
    X(clEnqueueWriteBuffer, cl_int, (void *, void *, cl_uint, size_t, size_t, const void *, cl_uint, void *const *, void **))    \
    X(clEnqueueReadBufferRect, cl_int,                                                                                           \
      (void *, void *, cl_uint, const size_t *, const size_t *, const size_t *, size_t, size_t, size_t, size_t, void *, cl_uint, \
       void *const *, void **))                                                                                                  \
    X(clEnqueueWriteBufferRect, cl_int,                                                                                          \
      (void *, void *, cl_uint, const size_t *, const size_t *, const size_t *, size_t, size_t, size_t, size_t, const void *,    \
       cl_uint, void *const *, void **))                                                                                         \
    X(clEnqueueFillBuffer, cl_int, (void *, void *, const void *, size_t, size_t, size_t, cl_uint, void *const *, void **))      \
    X(clEnqueueMarkerWithWaitList, cl_int, (void *, cl_uint, void *const *, void **))                                            \
    X(clEnqueueBarrierWithWaitList, cl_int, (void *, cl_uint, void *const *, void **))                                           \
    X(clGetEventInfo, cl_int, (void *, cl_uint, size_t, void *, size_t *))                                                      \
    X(clReleaseEvent, cl_int, (void *))                                                                                          \
    X(clGetEventProfilingInfo, cl_int, (void *, cl_uint, size_t, void *, size_t *))                                              \
    X(clFlush, cl_int, (void *))                                                                                                 \
    X(clFinish, cl_int, (void *))

static struct {
    pthread_once_t once;
    char why[GPU_WHY]; /* "" = the library is open */
    i32 n;             /* devices found */
    void *device[GPU_CARDS];
    struct gpu_card card[GPU_CARDS];
#define CALL(name, result, arguments) result(*name) arguments;
    OPENCL_CALLS(CALL)
#undef CALL
} cl = {.once = PTHREAD_ONCE_INIT};

struct lane {
    void *queue, *kernel[GPU_NKERNEL]; /* kernels hold their arguments: each lane has its own */
    void *mark[GPU_SLOTS], *watched;
};

struct opencl {
    const struct gpu_card *card;
    void *device, *context, *program, *heap;
    i32 lanes;
    struct lane *lane;
};

/* ------------------------------------------------------------------ the library --------------------------------------------- */

static bool find(void *library, const char *symbol, void *call, size_t size) {
    const bool found = library_find(library, symbol, call, size);
    if (!found) snprintf(cl.why, sizeof cl.why, "%s has no %s: OpenCL 1.2 is needed", OPENCL_LIBRARY, symbol);
    return found;
}

static bool find_all(void *library) {
#define CALL(name, result, arguments) \
    if (!find(library, #name, &cl.name, sizeof cl.name)) return false;
    OPENCL_CALLS(CALL)
#undef CALL
    return true;
}

static u64 number(void *device, cl_uint what, size_t size) {
    u64 v = 0; /* OpenCL is used on little-endian hosts only: a smaller integer is the low part */
    cl.clGetDeviceInfo(device, what, size, &v, NULL);
    return v;
}

/* Losses and sums of squares are in double precision; devices of a host leave out the kernels that share most. */
static const char *lacks(void *device, bool is_host) {
    if (number(device, CL_DEVICE_DOUBLE_FP_CONFIG, 8) == 0) return "double precision";
    if (number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t)) < GPU_GROUP) return "work groups of 256 items";
    if (!is_host && number(device, CL_DEVICE_LOCAL_MEM_SIZE, 8) < GPU_SHARED) return "48 KiB of memory that a work group shares";
    return NULL;
}

static void describe(void *platform, void *device, struct gpu_card *c) {
    cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof c->platform, c->platform, NULL);
    cl.clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof c->name, c->name, NULL);
    c->memory = (i64)number(device, CL_DEVICE_GLOBAL_MEM_SIZE, 8);
    c->largest = (i64)number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8);
    c->units = (i32)number(device, CL_DEVICE_MAX_COMPUTE_UNITS, 4);
    c->is_host = (number(device, CL_DEVICE_TYPE, 8) & CL_DEVICE_TYPE_CPU) != 0;
    c->lacks = lacks(device, c->is_host);
}

/* The devices of a platform that are there and have a compiler. */
static void add_platform(void *platform) {
    void *device[GPU_CARDS];
    cl_uint n = 0;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, GPU_CARDS, device, &n) != 0) return;
    for (cl_uint i = 0; i < n && i < GPU_CARDS && cl.n < GPU_CARDS; i++) {
        if (!number(device[i], CL_DEVICE_AVAILABLE, 4)) continue;
        if (!number(device[i], CL_DEVICE_COMPILER_AVAILABLE, 4)) {
            snprintf(cl.why, sizeof cl.why, "an OpenCL platform without a compiler cannot run the kernels");
            continue;
        }
        cl.device[cl.n] = device[i];
        struct gpu_card c = {0};
        describe(platform, device[i], &c);
        snprintf(c.at, sizeof c.at, "opencl:%d (%s)", cl.n, c.name);
        cl.card[cl.n++] = c;
    }
}

static void look_once(void) {
    enum { PLATFORMS = 32 };
    const char *wish = getenv("STRETTO_OPENCL"), *name = wish && *wish ? wish : OPENCL_LIBRARY;
    void *platform[PLATFORMS], *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    cl_uint n = 0;
    if (!library) {
        snprintf(cl.why, sizeof cl.why, "OpenCL's loader %s is not installed", name);
        return;
    }
    if (!find_all(library)) return;
    if (cl.clGetPlatformIDs(PLATFORMS, platform, &n) != 0) n = 0;
    for (cl_uint i = 0; i < n && i < PLATFORMS; i++) add_platform(platform[i]);
    if (cl.n == 0 && !cl.why[0])
        snprintf(cl.why, sizeof cl.why, "%s finds no platform with a device (no driver of a vendor, no PoCL)", name);
}

static i32 cards(struct gpu_card *out, i32 max, char why[GPU_WHY]) {
    pthread_once(&cl.once, look_once);
    snprintf(why, GPU_WHY, "%s", cl.why);
    const i32 n = imin(max, cl.n);
    memcpy(out, cl.card, (size_t)n * sizeof *out);
    return n;
}

/* ------------------------------------------------------------------ failures ------------------------------------------------ */

static bool is_memory(cl_int status) {
    return status == CL_MEM_ALLOCATION_FAILURE || status == CL_OUT_OF_HOST_MEMORY || status == CL_INVALID_BUFFER_SIZE ||
           status == CL_OUT_OF_RESOURCES;
}

static err refused(const struct opencl *d, const char *call, cl_int status) {
    return FAIL_AT(E831, d->card->at, "--device cpu   (a training: stretto resume RUN --device cpu --parallel auto)",
                   "%s failed with OpenCL error %d", call, (int)status);
}

static err done(const struct opencl *d, const char *call, cl_int status) { return status ? refused(d, call, status) : 0; }

static err too_much(const struct opencl *d, i64 bytes) {
    return FAIL_AT(E601, d->card->at, "a smaller --batch, --hidden or --context   or   --device cpu",
                   "the device refused %.1f MiB in one piece; it has %.1f MiB, of which one piece may have %.1f",
                   (f64)bytes / 0x1p20, (f64)d->card->memory / 0x1p20, (f64)d->card->largest / 0x1p20);
}

/* ------------------------------------------------------------------ programs ------------------------------------------------ */

static const char *options_of(const struct opencl *d) {
    return d->card->is_host ? "-cl-std=CL1.2 -DHOST_DEVICE" : "-cl-std=CL1.2";
}

static void program_key(const struct opencl *d, char key[512]) {
    char driver[128] = "";
    cl.clGetDeviceInfo(d->device, CL_DRIVER_VERSION, sizeof driver, driver, NULL);
    snprintf(key, 512, "opencl %s, %s, driver %s, %d bits, %s", d->card->platform, d->card->name, driver, (int)sizeof(void *) * 8,
             options_of(d));
}

static bool build(struct opencl *d) { return cl.clBuildProgram(d->program, 1, &d->device, options_of(d), NULL, NULL) == 0; }

static bool from_cache(struct opencl *d, const char *key) {
    size_t size;
    cl_int status = 0, e = 0;
    unsigned char *binary = gpu_program_load(key, &size);
    if (!binary) return false;
    const unsigned char *const at = binary;
    d->program =
        cl.clCreateProgramWithBinary(d->context, 1, &d->device, &size, (const unsigned char **)(uintptr_t)&at, &status, &e);
    mem_free(binary);
    if (d->program && e == 0 && build(d)) return true;
    if (d->program) cl.clReleaseProgram(d->program);
    d->program = NULL;
    return false;
}

static void to_cache(const struct opencl *d, const char *key) {
    size_t size = 0;
    if (cl.clGetProgramInfo(d->program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != 0 || size == 0) return;
    unsigned char *binary = mem_alloc(size);
    if (binary && cl.clGetProgramInfo(d->program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == 0)
        gpu_program_save(key, binary, size);
    mem_free(binary);
}

/* The first lines of what the compiler says.  OpenCL gives a log as a whole or not at all. */
static err complaint(const struct opencl *d) {
    size_t size = 0;
    cl.clGetProgramBuildInfo(d->program, d->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *log = mem_alloc(size + 1);
    if (log) cl.clGetProgramBuildInfo(d->program, d->device, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    const err e = FAIL_AT(E831, d->card->at, "a newer driver   or   --device cpu", "its compiler refused the kernels: %.600s",
                          log ? log : "");
    mem_free(log);
    return e;
}

static err compile(struct opencl *d) {
    char key[512];
    const char *text = gpu_text();
    cl_int e;
    program_key(d, key);
    if (!d->card->is_host && from_cache(d, key)) return 0;
    d->program = cl.clCreateProgramWithSource(d->context, 1, &text, NULL, &e);
    TRY(done(d, "clCreateProgramWithSource", e));
    if (!build(d)) return complaint(d);
    if (!d->card->is_host) to_cache(d, key); /* PoCL has a cache of its own, and a binary of it holds every kernel in full */
    return 0;
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

static err open_lane(struct opencl *d, struct lane *l) {
    cl_int e;
    l->queue = cl.clCreateCommandQueue(d->context, d->device, CL_QUEUE_PROFILING, &e);
    TRY(done(d, "clCreateCommandQueue", e));
    for (i32 k = 0; k < GPU_NKERNEL; k++) {
        l->kernel[k] = cl.clCreateKernel(d->program, gpu_kernel_name[k], &e);
        if (e == CL_INVALID_KERNEL_NAME && d->card->is_host) continue; /* left out there: gpu_on_host */
        TRY(done(d, gpu_kernel_name[k], e));
        TRY(done(d, "clSetKernelArg", cl.clSetKernelArg(l->kernel[k], 0, sizeof d->heap, &d->heap)));
    }
    return 0;
}

/* Drivers may allot memory when it is first used: zeroing it shows at once whether it is there. */
static err open_heap(struct opencl *d, i64 bytes) {
    const u32 zero = 0;
    cl_int e = 0;
    if (bytes > d->card->largest) return too_much(d, bytes);
    d->heap = cl.clCreateBuffer(d->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &e);
    if (is_memory(e)) return too_much(d, bytes);
    TRY(done(d, "clCreateBuffer", e));
    void *queue = cl.clCreateCommandQueue(d->context, d->device, 0, &e);
    TRY(done(d, "clCreateCommandQueue", e));
    e = cl.clEnqueueFillBuffer(queue, d->heap, &zero, sizeof zero, 0, (size_t)bytes, 0, NULL, NULL);
    if (e == 0) e = cl.clFinish(queue);
    cl.clReleaseCommandQueue(queue);
    return is_memory(e) ? too_much(d, bytes) : done(d, "clEnqueueFillBuffer", e);
}

static err open_all(struct opencl *d, i64 bytes) {
    cl_int e;
    d->context = cl.clCreateContext(NULL, 1, &d->device, NULL, NULL, &e);
    TRY(done(d, "clCreateContext", e));
    TRY(open_heap(d, bytes));
    TRY(compile(d));
    for (i32 i = 0; i < d->lanes; i++) TRY(open_lane(d, &d->lane[i]));
    return 0;
}

static void close_lane(struct lane *l) {
    if (l->queue) cl.clFinish(l->queue);
    if (l->watched) cl.clReleaseEvent(l->watched);
    for (i32 i = 0; i < GPU_SLOTS; i++)
        if (l->mark[i]) cl.clReleaseEvent(l->mark[i]);
    for (i32 k = 0; k < GPU_NKERNEL; k++)
        if (l->kernel[k]) cl.clReleaseKernel(l->kernel[k]);
    if (l->queue) cl.clReleaseCommandQueue(l->queue);
}

static void close(void *dev) {
    struct opencl *d = dev;
    for (i32 i = 0; d->lane && i < d->lanes; i++) close_lane(&d->lane[i]);
    if (d->program) cl.clReleaseProgram(d->program);
    if (d->heap) cl.clReleaseMemObject(d->heap);
    if (d->context) cl.clReleaseContext(d->context);
    mem_free(d->lane);
    mem_free(d);
}

static err open(i32 index, i32 lanes, i64 bytes, void **dev) {
    struct opencl *d;
    *dev = NULL;
    NEW(d, 1);
    d->card = &cl.card[index];
    d->device = cl.device[index];
    d->lanes = lanes;
    err e = mem_new((void **)&d->lane, lanes, sizeof *d->lane);
    if (e >= 0) e = open_all(d, bytes);
    if (e < 0) {
        const struct err_record why = *err_last();
        close(d);
        err_put(&why);
        return e;
    }
    *dev = d;
    return 0;
}

/* ------------------------------------------------------------------ work ---------------------------------------------------- */

/* The regions of clEnqueue..BufferRect. */
struct rect {
    size_t at[3], host[3], size[3];
};
static struct rect rect_of(const struct gpu_rows *r) {
    const size_t pitch = (size_t)r->pitch;
    return (struct rect){.at = {(size_t)r->at % pitch, (size_t)r->at / pitch, 0}, .size = {(size_t)r->bytes, (size_t)r->n, 1}};
}

static err put(void *dev, i32 lane, const struct gpu_rows *r, const void *from) {
    struct opencl *d = dev;
    void *queue = d->lane[lane].queue;
    if (gpu_one_piece(r))
        return done(d, "clEnqueueWriteBuffer",
                    cl.clEnqueueWriteBuffer(queue, d->heap, true, (size_t)r->at, (size_t)(r->bytes * r->n), from, 0, NULL, NULL));
    const struct rect a = rect_of(r);
    return done(d, "clEnqueueWriteBufferRect",
                cl.clEnqueueWriteBufferRect(queue, d->heap, true, a.at, a.host, a.size, (size_t)r->pitch, 0,
                                            (size_t)r->host_pitch, 0, from, 0, NULL, NULL));
}

static err get(void *dev, i32 lane, const struct gpu_rows *r, void *to) {
    struct opencl *d = dev;
    void *queue = d->lane[lane].queue;
    if (gpu_one_piece(r))
        return done(d, "clEnqueueReadBuffer",
                    cl.clEnqueueReadBuffer(queue, d->heap, true, (size_t)r->at, (size_t)(r->bytes * r->n), to, 0, NULL, NULL));
    const struct rect a = rect_of(r);
    return done(d, "clEnqueueReadBufferRect",
                cl.clEnqueueReadBufferRect(queue, d->heap, true, a.at, a.host, a.size, (size_t)r->pitch, 0, (size_t)r->host_pitch,
                                           0, to, 0, NULL, NULL));
}

static err launch(void *dev, i32 lane, enum gpu_kernel k, struct gpu_size groups, struct gpu_size local, const void *args,
                  size_t size) {
    struct opencl *d = dev;
    const size_t in[3] = {(size_t)local.x, (size_t)local.y, (size_t)local.z};
    const size_t all[3] = {in[0] * (size_t)groups.x, in[1] * (size_t)groups.y, in[2] * (size_t)groups.z};
    TRY(done(d, gpu_kernel_name[k], cl.clSetKernelArg(d->lane[lane].kernel[k], 1, size, args)));
    return done(d, gpu_kernel_name[k],
                cl.clEnqueueNDRangeKernel(d->lane[lane].queue, d->lane[lane].kernel[k], 3, NULL, all, in, 0, NULL, NULL));
}

/* Flushed, so that another queue that waits for it does not wait for a queue that nobody has told to begin. */
static err mark(void *dev, i32 lane, i32 slot) {
    struct opencl *d = dev;
    struct lane *l = &d->lane[lane];
    if (l->mark[slot]) cl.clReleaseEvent(l->mark[slot]);
    l->mark[slot] = NULL;
    TRY(done(d, "clEnqueueMarkerWithWaitList", cl.clEnqueueMarkerWithWaitList(l->queue, 0, NULL, &l->mark[slot])));
    return done(d, "clFlush", cl.clFlush(l->queue));
}

static err wait(void *dev, i32 lane, i32 of, i32 slot) {
    struct opencl *d = dev;
    return done(d, "clEnqueueBarrierWithWaitList",
                cl.clEnqueueBarrierWithWaitList(d->lane[lane].queue, 1, &d->lane[of].mark[slot], NULL));
}

static void forget(struct lane *l) {
    if (l->watched) cl.clReleaseEvent(l->watched);
    l->watched = NULL;
}

static err watch(void *dev, i32 lane) {
    struct opencl *d = dev;
    struct lane *l = &d->lane[lane];
    forget(l);
    TRY(done(d, "clEnqueueMarkerWithWaitList", cl.clEnqueueMarkerWithWaitList(l->queue, 0, NULL, &l->watched)));
    return done(d, "clFlush", cl.clFlush(l->queue));
}

/* A negative status is the error that ended the work. */
static err idle(void *dev, i32 lane, bool *is_idle) {
    struct opencl *d = dev;
    struct lane *l = &d->lane[lane];
    cl_int status = 0;
    TRY(done(d, "clGetEventInfo",
             cl.clGetEventInfo(l->watched, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL)));
    if (status < 0) return refused(d, "the work given to it", status);
    *is_idle = status == 0;
    if (*is_idle) forget(l);
    return 0;
}

static err sync(void *dev, i32 lane) {
    struct opencl *d = dev;
    return done(d, "clFinish", cl.clFinish(d->lane[lane].queue));
}

static bool end_of(void *event, u64 *ns) {
    return event && cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, ns, NULL) == 0;
}

static f64 between(void *dev, i32 lane, i32 a, i32 b) {
    struct opencl *d = dev;
    u64 t0, t1;
    if (!end_of(d->lane[lane].mark[a], &t0) || !end_of(d->lane[lane].mark[b], &t1)) return -1;
    return 1e-9 * ((f64)t1 - (f64)t0);
}

/* OpenCL does not tell how much of the memory others use. */
static err free_memory(i32 index, i64 *bytes) {
    *bytes = cl.card[index].memory;
    return 0;
}

extern const struct gpu_driver gpu_driver_opencl;
const struct gpu_driver gpu_driver_opencl = {
    .name = "opencl",
    .help = "a device of an OpenCL platform: a GPU, or the cores of this host (PoCL)",
    .cards = cards,
    .open = open,
    .close = close,
    .put = put,
    .get = get,
    .launch = launch,
    .mark = mark,
    .wait = wait,
    .watch = watch,
    .idle = idle,
    .sync = sync,
    .between = between,
    .free_memory = free_memory,
};
