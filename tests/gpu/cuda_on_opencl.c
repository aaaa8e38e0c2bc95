/* cuda_on_opencl.c - a libcuda.so.1 for tests: the calls of cuda.c run on the first OpenCL device (compiler: fake_nvrtc.c).
 *
 *     device address   a place in a range that holds nothing (no host page), found again in the list of allocations
 *     stream, event    a queue in order, a marker
 *     cubin, PTX       a line that names the architecture, and the text, which is OpenCL C too (text/dialect.h)
 *     graph            the kernels that a stream was given, launched again one by one; one stream only
 *
 * It is as strict as the driver where cuda.c could go wrong: no call without the context of the thread, no address outside of an
 * allocation, no transfer or wait of another stream while a stream is captured.  Environment:
 *
 *     CUDA_TEST_FAIL=cuLaunchKernel    that call fails (999)
 *     CUDA_TEST_DEVICES=0              a driver without a device
 *     CUDA_TEST_CC=120                 compute capability of the device (90)
 *     CUDA_TEST_VERSION=12040          version of CUDA that the driver is for (13000) */
#define CL_TARGET_OPENCL_VERSION 120
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "gpu/cuda_api.h"
#include "gpu/text/args.h"

enum {
    BAD_VALUE = 1, NO_MEMORY = 2, NOT_STARTED = 3,
    NO_DEVICE = 100, BAD_DEVICE = 101,
    BAD_IMAGE = 200, BAD_CONTEXT = 201, NO_BINARY = 209,
    BAD_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    UNSUPPORTED_IN_CAPTURE = 900,
    UNKNOWN = 999,
    BLOCKS = 32
};

/* The prototypes are those of the table that cuda.c calls through. */
#define CALL(name, arguments) __attribute__((visibility("default"))) int name arguments;
CUDA_CALLS(CALL)
CALL(cuFuncLoad, (struct CUfunc_st *))
#undef CALL

#define CL_CALLS(X)                                                                                                              \
    X(clGetPlatformIDs)                                                                                                          \
    X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) X(clCreateCommandQueue) X(clReleaseCommandQueue) X(clCreateBuffer)   \
    X(clReleaseMemObject) X(clCreateProgramWithSource) X(clBuildProgram) X(clGetProgramBuildInfo) X(clReleaseProgram)            \
    X(clCreateKernel) X(clReleaseKernel) X(clSetKernelArg) X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer)                      \
    X(clEnqueueWriteBuffer) X(clEnqueueFillBuffer) X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList)                \
    X(clReleaseEvent) X(clGetEventInfo) X(clGetEventProfilingInfo) X(clWaitForEvents) X(clFlush) X(clFinish)

struct block {
    cu_address at;
    size_t size;
    cl_mem mem;
};

struct CUctx_st {
    int retained;
};

static struct {
    bool started;
    cl_device_id device;
    cl_context context;
    struct block block[BLOCKS];
#define CALL(name) __typeof__(name) *name;
    CL_CALLS(CALL)
#undef CALL
} cl;
static struct CUctx_st primary;
static _Thread_local struct CUctx_st *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all above, and of the arguments of kernels */

struct CUmod_st {
    cl_program program;
    struct CUfunc_st *functions;
};
struct CUfunc_st {
    cl_kernel kernel;
    size_t size; /* of its arguments */
    struct CUfunc_st *next;
};

struct launch {
    struct CUfunc_st *f;
    cl_mem heap;
    size_t groups[3], local[3];
    unsigned char args[512];
};
struct CUgraph_st {
    int n;
    struct launch launch[4096]; /* of a whole step */
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
};
struct CUstream_st {
    cl_command_queue queue;
    struct CUgraph_st *capture;
};
struct CUevent_st {
    cl_event event;
    struct CUgraph_st *captured;
    bool timed;
};

static int number_of(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text && *text ? (int)strtol(text, NULL, 10) : otherwise;
}

static bool fails(const char *call) {
    const char *wish = getenv("CUDA_TEST_FAIL");
    return wish && strcmp(wish, call) == 0;
}

static int devices(void) { return number_of("CUDA_TEST_DEVICES", 1); }
static int capability(void) { return number_of("CUDA_TEST_CC", 90); }

/* Every function begins with one of these. */
#define BEGIN                             \
    if (fails(__func__)) return UNKNOWN;  \
    if (!cl.started) return NOT_STARTED
#define BEGIN_IN_CONTEXT                  \
    BEGIN;                                \
    if (current != &primary || primary.retained <= 0) return BAD_CONTEXT

static int status_of(cl_int e) {
    return e == 0 ? 0 : e == CL_MEM_OBJECT_ALLOCATION_FAILURE || e == CL_INVALID_BUFFER_SIZE ? NO_MEMORY : UNKNOWN;
}

/* ------------------------------------------------------------------ devices ------------------------------------------------- */

static int start(void) {
    cl_platform_id platform;
    cl_int e = 0;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return NO_DEVICE;
#define CALL(name) \
    if (!(*(void **)&cl.name = dlsym(library, #name))) return NO_DEVICE;
    CL_CALLS(CALL)
#undef CALL
    if (cl.clGetPlatformIDs(1, &platform, NULL) != 0) return NO_DEVICE;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &cl.device, NULL) != 0) return NO_DEVICE;
    cl.context = cl.clCreateContext(NULL, 1, &cl.device, NULL, NULL, &e);
    cl.started = e == 0;
    return e == 0 ? 0 : NO_DEVICE;
}

int cuInit(unsigned int flags) {
    if (fails(__func__)) return UNKNOWN;
    if (flags != 0) return BAD_VALUE;
    if (devices() == 0) return NO_DEVICE;
    pthread_mutex_lock(&lock);
    const int status = cl.started ? 0 : start();
    pthread_mutex_unlock(&lock);
    return status;
}

int cuDriverGetVersion(int *version) {
    *version = number_of("CUDA_TEST_VERSION", 13000);
    return 0;
}

int cuGetErrorString(int status, const char **text) {
    *text = status == NO_MEMORY ? "out of memory" : status == UNKNOWN ? "unknown error" : "an error of the test library";
    return 0;
}

int cuGetErrorName(int status, const char **text) {
    *text = status == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : status == UNKNOWN ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_TEST";
    return 0;
}

int cuDeviceGetCount(int *n) {
    BEGIN;
    *n = devices();
    return 0;
}

int cuDeviceGet(int *handle, int index) {
    BEGIN;
    if (index < 0 || index >= devices()) return BAD_DEVICE;
    *handle = 1000 + index; /* not the index: cuda.c must not mix them up */
    return 0;
}

static bool known(int handle) { return handle >= 1000 && handle < 1000 + devices(); }

int cuDeviceGetName(char *name, int size, int handle) {
    BEGIN;
    if (!known(handle) || size <= 0) return BAD_DEVICE;
    snprintf(name, (size_t)size, "test device (OpenCL)");
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int handle) {
    cl_ulong n = 0;
    BEGIN;
    if (!known(handle)) return BAD_DEVICE;
    const cl_int e = cl.clGetDeviceInfo(cl.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof n, &n, NULL);
    *bytes = n;
    return status_of(e);
}

int cuDeviceGetAttribute(int *value, int which, int handle) {
    BEGIN;
    if (!known(handle)) return BAD_DEVICE;
    if (which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *value = 2;
    else if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = capability() / 10;
    else if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) *value = capability() % 10;
    else return BAD_VALUE;
    return 0;
}

int cuDevicePrimaryCtxRetain(struct CUctx_st **context, int handle) {
    BEGIN;
    if (!known(handle)) return BAD_DEVICE;
    pthread_mutex_lock(&lock);
    primary.retained++;
    pthread_mutex_unlock(&lock);
    *context = &primary;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int handle) {
    BEGIN;
    if (!known(handle)) return BAD_DEVICE;
    pthread_mutex_lock(&lock);
    const bool held = primary.retained > 0 && primary.retained-- > 0;
    pthread_mutex_unlock(&lock);
    return held ? 0 : BAD_CONTEXT;
}

int cuCtxSetCurrent(struct CUctx_st *context) {
    BEGIN;
    if (context && context != &primary) return BAD_CONTEXT;
    current = context;
    return 0;
}

int cuCtxGetCurrent(struct CUctx_st **context) {
    BEGIN;
    *context = current;
    return 0;
}

/* ------------------------------------------------------------------ memory -------------------------------------------------- */

int cuMemGetInfo_v2(size_t *left, size_t *total) {
    BEGIN_IN_CONTEXT;
    const int status = cuDeviceTotalMem_v2(total, 1000);
    *left = *total;
    for (int i = 0; i < BLOCKS; i++) *left -= cl.block[i].size;
    return status;
}

static int add_block(size_t size, cu_address *at) {
    struct block *b = NULL;
    cl_int e = 0;
    for (int i = 0; i < BLOCKS && !b; i++) b = cl.block[i].size == 0 ? &cl.block[i] : NULL;
    void *range = b ? mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : MAP_FAILED;
    if (range == MAP_FAILED) return NO_MEMORY;
    b->mem = cl.clCreateBuffer(cl.context, CL_MEM_READ_WRITE, size, NULL, &e);
    if (e != 0) {
        munmap(range, size);
        return NO_MEMORY;
    }
    b->at = *at = (cu_address)(uintptr_t)range;
    b->size = size;
    return 0;
}

int cuMemAlloc_v2(cu_address *at, size_t size) {
    size_t left, total;
    BEGIN_IN_CONTEXT;
    if (size == 0) return BAD_VALUE;
    if (cuMemGetInfo_v2(&left, &total) != 0 || size > left) return NO_MEMORY;
    pthread_mutex_lock(&lock);
    const int status = add_block(size, at);
    pthread_mutex_unlock(&lock);
    return status;
}

/* The allocation that holds these bytes. */
static struct block *block_of(cu_address at, size_t size, size_t *offset) {
    for (int i = 0; i < BLOCKS; i++) {
        struct block *b = &cl.block[i];
        *offset = (size_t)(at - b->at);
        if (b->size > 0 && at >= b->at && *offset <= b->size && size <= b->size - *offset) return b;
    }
    return NULL;
}

int cuMemFree_v2(cu_address at) {
    size_t offset;
    BEGIN_IN_CONTEXT;
    pthread_mutex_lock(&lock);
    struct block *b = block_of(at, 1, &offset);
    if (b && offset == 0) {
        cl.clReleaseMemObject(b->mem);
        munmap((void *)(uintptr_t)b->at, b->size);
        memset(b, 0, sizeof *b);
    }
    pthread_mutex_unlock(&lock);
    return b && offset == 0 ? 0 : BAD_VALUE;
}

int cuMemHostAlloc(void **at, size_t size, unsigned int flags) {
    BEGIN_IN_CONTEXT;
    if (flags != 0) return BAD_VALUE;
    *at = malloc(size);
    return *at ? 0 : NO_MEMORY;
}

int cuMemFreeHost(void *at) {
    BEGIN_IN_CONTEXT;
    free(at);
    return 0;
}

static int enter(struct CUstream_st *s) { return !s ? BAD_HANDLE : s->capture ? UNSUPPORTED_IN_CAPTURE : 0; }

int cuMemsetD8Async(cu_address at, unsigned char value, size_t size, struct CUstream_st *s) {
    size_t offset;
    BEGIN_IN_CONTEXT;
    if (enter(s) != 0) return enter(s);
    struct block *b = block_of(at, size, &offset);
    if (!b) return BAD_VALUE;
    return status_of(cl.clEnqueueFillBuffer(s->queue, b->mem, &value, 1, offset, size, 0, NULL, NULL));
}

/* Nothing waits here: a caller that uses its memory too early is found out. */
int cuMemcpyHtoDAsync_v2(cu_address to, const void *from, size_t size, struct CUstream_st *s) {
    size_t offset;
    BEGIN_IN_CONTEXT;
    if (enter(s) != 0) return enter(s);
    struct block *b = block_of(to, size, &offset);
    if (!b || !from) return BAD_VALUE;
    return status_of(cl.clEnqueueWriteBuffer(s->queue, b->mem, CL_FALSE, offset, size, from, 0, NULL, NULL));
}

int cuMemcpyDtoHAsync_v2(void *to, cu_address from, size_t size, struct CUstream_st *s) {
    size_t offset;
    BEGIN_IN_CONTEXT;
    if (enter(s) != 0) return enter(s);
    struct block *b = block_of(from, size, &offset);
    if (!b || !to) return BAD_VALUE;
    return status_of(cl.clEnqueueReadBuffer(s->queue, b->mem, CL_FALSE, offset, size, to, 0, NULL, NULL));
}

int cuMemcpy2DAsync_v2(const struct cu_copy *c, struct CUstream_st *s) {
    BEGIN_IN_CONTEXT;
    const bool up = c->src_type == CU_MEMORYTYPE_HOST && c->dst_type == CU_MEMORYTYPE_DEVICE;
    const bool down = c->src_type == CU_MEMORYTYPE_DEVICE && c->dst_type == CU_MEMORYTYPE_HOST;
    if (!up && !down) return BAD_VALUE;
    if (c->src_x || c->src_y || c->dst_x || c->dst_y || c->src_array || c->dst_array) return BAD_VALUE;
    if (c->src_pitch < c->width || c->dst_pitch < c->width) return BAD_VALUE;
    if (c->src_pitch > INT32_MAX || c->dst_pitch > INT32_MAX) return BAD_VALUE;
    for (size_t i = 0; i < c->height; i++) {
        const size_t from = i * c->src_pitch, to = i * c->dst_pitch;
        const int status = up ? cuMemcpyHtoDAsync_v2(c->dst_device + to, (const char *)c->src_host + from, c->width, s)
                              : cuMemcpyDtoHAsync_v2((char *)c->dst_host + to, c->src_device + from, c->width, s);
        if (status != 0) return status;
    }
    return 0;
}

/* ------------------------------------------------------------------ streams and events -------------------------------------- */

int cuStreamCreate(struct CUstream_st **out, unsigned int flags) {
    cl_int e = 0;
    BEGIN_IN_CONTEXT;
    if (flags != CU_STREAM_NON_BLOCKING) return BAD_VALUE;
    *out = calloc(1, sizeof **out);
    if (!*out) return NO_MEMORY;
    (*out)->queue = cl.clCreateCommandQueue(cl.context, cl.device, CL_QUEUE_PROFILING_ENABLE, &e);
    return status_of(e);
}

int cuStreamDestroy_v2(struct CUstream_st *s) {
    BEGIN_IN_CONTEXT;
    if (!s) return BAD_HANDLE;
    cl.clReleaseCommandQueue(s->queue);
    free(s);
    return 0;
}

int cuStreamSynchronize(struct CUstream_st *s) {
    BEGIN_IN_CONTEXT;
    return enter(s) != 0 ? enter(s) : status_of(cl.clFinish(s->queue));
}

int cuStreamQuery(struct CUstream_st *s) {
    cl_event end;
    cl_int state = 0;
    BEGIN_IN_CONTEXT;
    if (enter(s) != 0) return enter(s);
    cl_int e = cl.clEnqueueMarkerWithWaitList(s->queue, 0, NULL, &end);
    if (e != 0) return status_of(e);
    cl.clFlush(s->queue);
    e = cl.clGetEventInfo(end, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    cl.clReleaseEvent(end);
    return e != 0 ? status_of(e) : state == 0 ? 0 : NOT_READY;
}

int cuStreamWaitEvent(struct CUstream_st *s, struct CUevent_st *e, unsigned int flags) {
    BEGIN_IN_CONTEXT;
    if (!s || !e) return BAD_HANDLE;
    if (flags != 0) return BAD_VALUE;
    if (s->capture != e->captured) return UNSUPPORTED_IN_CAPTURE;
    if (s->capture || !e->event) return 0;
    return status_of(cl.clEnqueueBarrierWithWaitList(s->queue, 1, &e->event, NULL));
}

int cuEventCreate(struct CUevent_st **out, unsigned int flags) {
    BEGIN_IN_CONTEXT;
    if (flags != CU_EVENT_DEFAULT && flags != CU_EVENT_DISABLE_TIMING) return BAD_VALUE;
    *out = calloc(1, sizeof **out);
    if (!*out) return NO_MEMORY;
    (*out)->timed = flags == CU_EVENT_DEFAULT;
    return 0;
}

int cuEventDestroy_v2(struct CUevent_st *e) {
    BEGIN_IN_CONTEXT;
    if (!e) return BAD_HANDLE;
    if (e->event) cl.clReleaseEvent(e->event);
    free(e);
    return 0;
}

int cuEventRecord(struct CUevent_st *e, struct CUstream_st *s) {
    BEGIN_IN_CONTEXT;
    if (!e || !s) return BAD_HANDLE;
    if (e->event) cl.clReleaseEvent(e->event);
    e->event = NULL;
    e->captured = s->capture;
    if (s->capture) return 0;
    const cl_int status = cl.clEnqueueMarkerWithWaitList(s->queue, 0, NULL, &e->event);
    cl.clFlush(s->queue);
    return status_of(status);
}

int cuEventSynchronize(struct CUevent_st *e) {
    BEGIN_IN_CONTEXT;
    if (!e) return BAD_HANDLE;
    return e->event ? status_of(cl.clWaitForEvents(1, &e->event)) : 0;
}

int cuEventElapsedTime(float *ms, struct CUevent_st *a, struct CUevent_st *b) {
    cl_ulong from = 0, to = 0;
    BEGIN_IN_CONTEXT;
    if (!a || !b || !a->timed || !b->timed || !a->event || !b->event) return BAD_HANDLE;
    if (cl.clGetEventProfilingInfo(a->event, CL_PROFILING_COMMAND_END, sizeof from, &from, NULL) != 0) return NOT_READY;
    if (cl.clGetEventProfilingInfo(b->event, CL_PROFILING_COMMAND_END, sizeof to, &to, NULL) != 0) return NOT_READY;
    *ms = (float)(((double)to - (double)from) * 1e-6);
    return 0;
}

/* ------------------------------------------------------------------ programs and kernels ------------------------------------ */

static void complain(cl_program p) {
    char log[4000] = "";
    cl.clGetProgramBuildInfo(p, cl.device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    fprintf(stderr, "cuda_on_opencl: %s\n", log);
}

static bool suits(const char *image) {
    int arch = 0;
    if (sscanf(image, "//cubin sm_%d", &arch) == 1) return arch == capability();
    return sscanf(image, "//ptx compute_%d", &arch) == 1 && arch <= capability();
}

int cuModuleLoadData(struct CUmod_st **out, const void *image) {
    const char *text = image;
    cl_int e = 0;
    BEGIN_IN_CONTEXT;
    if (strncmp(text, "//", 2) != 0) return BAD_IMAGE;
    if (!suits(text)) return NO_BINARY;
    *out = calloc(1, sizeof **out);
    if (!*out) return NO_MEMORY;
    (*out)->program = cl.clCreateProgramWithSource(cl.context, 1, &text, NULL, &e);
    if (e == 0) e = cl.clBuildProgram((*out)->program, 1, &cl.device, "-cl-std=CL1.2", NULL, NULL);
    if (e == 0) return 0;
    complain((*out)->program);
    free(*out);
    return BAD_IMAGE;
}

int cuModuleUnload(struct CUmod_st *m) {
    BEGIN_IN_CONTEXT;
    if (!m) return BAD_HANDLE;
    while (m->functions) {
        struct CUfunc_st *f = m->functions;
        m->functions = f->next;
        cl.clReleaseKernel(f->kernel);
        free(f);
    }
    cl.clReleaseProgram(m->program);
    free(m);
    return 0;
}

/* Unlike the driver, OpenCL wants to hear the size of an argument. */
static size_t size_of(const char *kernel) {
#define GPU_KERNEL(name, args) \
    if (strcmp(kernel, #name) == 0) return sizeof(struct args);
#include "gpu/kernels.def"
#undef GPU_KERNEL
    return 0;
}

int cuModuleGetFunction(struct CUfunc_st **out, struct CUmod_st *m, const char *name) {
    cl_int e = 0;
    BEGIN_IN_CONTEXT;
    cl_kernel kernel = cl.clCreateKernel(m->program, name, &e);
    if (e != 0) return NOT_FOUND;
    *out = calloc(1, sizeof **out);
    if (!*out) return NO_MEMORY;
    **out = (struct CUfunc_st){.kernel = kernel, .size = size_of(name), .next = m->functions};
    m->functions = *out;
    return 0;
}

int cuFuncLoad(struct CUfunc_st *f) {
    BEGIN_IN_CONTEXT;
    return f ? 0 : BAD_HANDLE;
}

static int run(const struct launch *l, cl_command_queue queue) {
    size_t global[3];
    for (int i = 0; i < 3; i++) global[i] = l->groups[i] * l->local[i];
    pthread_mutex_lock(&lock); /* a kernel holds its arguments from the first call to the last */
    cl_int e = cl.clSetKernelArg(l->f->kernel, 0, sizeof l->heap, &l->heap);
    if (e == 0) e = cl.clSetKernelArg(l->f->kernel, 1, l->f->size, l->args);
    if (e == 0) e = cl.clEnqueueNDRangeKernel(queue, l->f->kernel, 3, NULL, global, l->local, 0, NULL, NULL);
    pthread_mutex_unlock(&lock);
    return status_of(e);
}

int cuLaunchKernel(struct CUfunc_st *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int lx, unsigned int ly,
                   unsigned int lz, unsigned int shared, struct CUstream_st *s, void **arguments, void **extra) {
    struct launch l = {.f = f, .groups = {gx, gy, gz}, .local = {lx, ly, lz}};
    cu_address heap;
    size_t offset;
    BEGIN_IN_CONTEXT;
    if (!f || !s) return BAD_HANDLE;
    if (gx == 0 || gy == 0 || gz == 0 || gy > 65535 || gz > 65535 || lx * ly * lz == 0 || lx * ly * lz > 1024) return BAD_VALUE;
    if (shared != 0 || extra || f->size == 0 || f->size > sizeof l.args) return BAD_VALUE;
    memcpy(&heap, arguments[0], sizeof heap);
    memcpy(l.args, arguments[1], f->size);
    struct block *b = block_of(heap, 1, &offset);
    if (!b || offset != 0) return BAD_VALUE;
    l.heap = b->mem;
    if (!s->capture) return run(&l, s->queue);
    if (s->capture->n == COUNT(s->capture->launch)) return NO_MEMORY;
    s->capture->launch[s->capture->n++] = l;
    return 0;
}

/* ------------------------------------------------------------------ graphs -------------------------------------------------- */

int cuStreamBeginCapture_v2(struct CUstream_st *s, int mode) {
    BEGIN_IN_CONTEXT;
    if (enter(s) != 0) return enter(s);
    if (mode != CU_STREAM_CAPTURE_MODE_RELAXED) return BAD_VALUE;
    s->capture = calloc(1, sizeof *s->capture);
    return s->capture ? 0 : NO_MEMORY;
}

int cuStreamEndCapture(struct CUstream_st *s, struct CUgraph_st **out) {
    BEGIN_IN_CONTEXT;
    if (!s || !s->capture) return BAD_VALUE;
    *out = s->capture;
    s->capture = NULL;
    return 0;
}

int cuGraphInstantiateWithFlags(struct CUgraphExec_st **out, struct CUgraph_st *g, unsigned long long flags) {
    BEGIN_IN_CONTEXT;
    if (flags != 0) return BAD_VALUE;
    *out = calloc(1, sizeof **out);
    if (!*out) return NO_MEMORY;
    (*out)->graph = *g;
    return 0;
}

int cuGraphLaunch(struct CUgraphExec_st *g, struct CUstream_st *s) {
    BEGIN_IN_CONTEXT;
    if (!g) return BAD_HANDLE;
    if (enter(s) != 0) return enter(s);
    for (int i = 0; i < g->graph.n; i++) {
        const int status = run(&g->graph.launch[i], s->queue);
        if (status != 0) return status;
    }
    return 0;
}

int cuGraphExecDestroy(struct CUgraphExec_st *g) {
    BEGIN_IN_CONTEXT;
    free(g);
    return 0;
}

int cuGraphDestroy(struct CUgraph_st *g) {
    BEGIN_IN_CONTEXT;
    free(g);
    return 0;
}
