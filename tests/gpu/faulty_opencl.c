/* faulty_opencl.c - a libOpenCL.so.1 for tests: every call goes to the real library, and one failure is injected.
 *
 *     STRETTO_OPENCL=.../libfaulty_opencl.so FAULTY_OPENCL=KIND[:N][,device=K][,gpu] stretto ..
 *
 *     launch:N       the N-th clEnqueueNDRangeKernel fails with CL_OUT_OF_RESOURCES
 *     memory:N       the N-th clCreateBuffer is refused
 *     memory-always  all are
 *     room:N         the device has N KiB: so much it says, and what exceeds it together is refused
 *     memory-late:N  the N-th read, write or fill of a buffer is refused
 *     any:N          the N-th call of all fails once with CL_OUT_OF_HOST_MEMORY
 *     work:N         from the N-th launch on, events say that the work has ended with an error
 *     lost:N         from the N-th call on, every call fails with CL_DEVICE_NOT_AVAILABLE
 *     hang:N         from the N-th launch on, events say CL_RUNNING for ever, and calls that wait do not return
 *     compile        clBuildProgram fails for a text, with a log of several lines
 *     no-compiler    the device has no compiler
 *     no-f64         the device has no double precision
 *     small-groups   its work groups have at most 128 items
 *     small-shared   they share at most 32 KiB
 *     bad-binary     clBuildProgram fails for a binary
 *     none           nothing fails
 *
 *     device=K       only device K of the list fails; the calls of others are not counted
 *     gpu            every device says that it is a GPU: deadlines are those of GPUs
 *
 * N counts from 1 (the default).  FAULTY_COUNT=FILE appends how often each kind could have failed, when the process ends, and the
 * most KiB that a device had at a time.
 *
 * FAULTY_PACE=ITEM,KIB gives devices a speed of their own, whatever else the cores do: behind each launch the device sleeps ITEM
 * nanoseconds for each work item, and the caller of a copy sleeps KIB nanoseconds for each KiB, in which the device may compute.
 * It is read at each call, so a program may change it. */
#define CL_TARGET_OPENCL_VERSION 120
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define CL_CALLS(X)                                                                                                              \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) X(clReleaseContext)         \
    X(clCreateCommandQueue) X(clReleaseCommandQueue) X(clCreateBuffer) X(clReleaseMemObject) X(clCreateProgramWithSource)        \
    X(clGetMemObjectInfo)                                                                                                        \
    X(clCreateProgramWithBinary) X(clBuildProgram) X(clGetProgramBuildInfo) X(clGetProgramInfo) X(clReleaseProgram)              \
    X(clCreateKernel) X(clReleaseKernel) X(clSetKernelArg) X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer)                      \
    X(clEnqueueWriteBuffer) X(clEnqueueReadBufferRect) X(clEnqueueWriteBufferRect) X(clEnqueueFillBuffer)                        \
    X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList) X(clGetEventInfo) X(clReleaseEvent)                           \
    X(clGetEventProfilingInfo) X(clFlush) X(clFinish) X(clGetContextInfo) X(clGetCommandQueueInfo) X(clGetKernelInfo)            \
    X(clEnqueueNativeKernel)

enum fault {
    NONE, LAUNCH, MEMORY, MEMORY_ALWAYS, ROOM, MEMORY_LATE, ANY, WORK, LOST, HANG, COMPILE, NO_COMPILER, NO_F64, SMALL_GROUPS,
    SMALL_SHARED, BAD_BINARY
};
static const char *const fault_name[] = {"none",        "launch",       "memory",       "memory-always", "room", "memory-late",
                                         "any",         "work",         "lost",         "hang",          "compile",
                                         "no-compiler", "no-f64",       "small-groups", "small-shared",  "bad-binary"};
enum { FAULTS = sizeof fault_name / sizeof *fault_name, MOST = 64 };

static struct {
#define CALL(name) __typeof__(name) *name;
    CL_CALLS(CALL)
#undef CALL
} real;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum fault fault;
static long number = 1;
static int only = -1; /* device */
static bool gpu;
static cl_device_id device[MOST];
static int devices;
static _Atomic long calls, launches, buffers, transfers;
static _Atomic long held[MOST], most_held; /* bytes of buffers of a device; of the fullest one */
static _Atomic(cl_program) binary[MOST];
static _Atomic int binaries;

/* ------------------------------------------------------------------ what fails ---------------------------------------------- */

static void report(void) {
    const char *path = getenv("FAULTY_COUNT");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "launch=%ld memory=%ld room=%ld memory-late=%ld any=%ld\n", launches, buffers, (most_held + 1023) >> 10, transfers,
            calls);
    fclose(f);
}

static void read_word(char *word) {
    char *colon = strchr(word, ':');
    if (strcmp(word, "gpu") == 0) gpu = true;
    if (strncmp(word, "device=", 7) == 0) only = (int)strtol(word + 7, NULL, 10);
    if (colon) *colon = 0;
    for (int i = 0; i < FAULTS; i++)
        if (strcmp(word, fault_name[i]) == 0) fault = (enum fault)i;
    if (colon) number = strtol(colon + 1, NULL, 10);
}

static void start(void) {
    char text[200], *rest = text;
    const char *wish = getenv("FAULTY_OPENCL");
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) abort();
#define CALL(name) \
    if (!(*(void **)&real.name = dlsym(library, #name))) abort();
    CL_CALLS(CALL)
#undef CALL
    snprintf(text, sizeof text, "%s", wish ? wish : "none");
    for (char *word; (word = strsep(&rest, ",")) != NULL;) read_word(word);
    atexit(report);
}

static void begin(void) { pthread_once(&once, start); }

static bool hits(cl_device_id d) { return only < 0 || (only < devices && device[only] == d); }

static void wait_for_ever(void) {
    for (;;) pause();
}

static bool is_hung(cl_device_id d) { return fault == HANG && hits(d) && launches >= number; }

/* The failure of a call, or 0. */
static cl_int fails(cl_device_id d) {
    if (!hits(d)) return CL_SUCCESS;
    const long n = atomic_fetch_add(&calls, 1) + 1;
    if (fault == LOST && n >= number) return CL_DEVICE_NOT_AVAILABLE;
    return fault == ANY && n == number ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
}

/* The same, for a call of a kind that is counted. */
static cl_int fails_as(cl_device_id d, enum fault kind, _Atomic long *count, cl_int status) {
    const cl_int e = fails(d);
    if (e != 0 || !hits(d)) return e;
    const long n = atomic_fetch_add(count, 1) + 1;
    return fault == kind && n == number ? status : CL_SUCCESS;
}

static cl_int fails_transfer(cl_device_id d, bool blocks) {
    if (blocks && is_hung(d)) wait_for_ever();
    return fails_as(d, MEMORY_LATE, &transfers, CL_MEM_OBJECT_ALLOCATION_FAILURE);
}

static cl_device_id of_context(cl_context c) {
    cl_device_id d = NULL;
    real.clGetContextInfo(c, CL_CONTEXT_DEVICES, sizeof d, &d, NULL);
    return d;
}

static cl_device_id of_queue(cl_command_queue q) {
    cl_device_id d = NULL;
    real.clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof d, &d, NULL);
    return d;
}

static cl_device_id of_program(cl_program p) {
    cl_device_id d = NULL;
    real.clGetProgramInfo(p, CL_PROGRAM_DEVICES, sizeof d, &d, NULL);
    return d;
}

static cl_device_id of_kernel(cl_kernel k) {
    cl_context c = NULL;
    real.clGetKernelInfo(k, CL_KERNEL_CONTEXT, sizeof c, &c, NULL);
    return of_context(c);
}

static cl_device_id of_event(cl_event e) {
    cl_command_queue q = NULL;
    real.clGetEventInfo(e, CL_EVENT_COMMAND_QUEUE, sizeof q, &q, NULL);
    return of_queue(q);
}

/* ------------------------------------------------------------------ devices ------------------------------------------------- */

EXPORT cl_int clGetPlatformIDs(cl_uint n, cl_platform_id *out, cl_uint *found) {
    begin();
    return real.clGetPlatformIDs(n, out, found);
}

EXPORT cl_int clGetPlatformInfo(cl_platform_id p, cl_platform_info what, size_t size, void *out, size_t *used) {
    return real.clGetPlatformInfo(p, what, size, out, used);
}

EXPORT cl_int clGetDeviceIDs(cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id *out, cl_uint *found) {
    cl_uint have = 0;
    const cl_int e = real.clGetDeviceIDs(p, type, n, out, &have);
    for (cl_uint i = 0; e == 0 && out && i < have && i < n && devices < MOST; i++) device[devices++] = out[i];
    if (found) *found = have;
    return e;
}

EXPORT cl_int clGetDeviceInfo(cl_device_id d, cl_device_info what, size_t size, void *out, size_t *used) {
    const cl_int e = real.clGetDeviceInfo(d, what, size, out, used);
    if (e != 0 || !out) return e;
    if (what == CL_DEVICE_TYPE && gpu) *(cl_device_type *)out = CL_DEVICE_TYPE_GPU;
    if (what == CL_DEVICE_COMPILER_AVAILABLE && fault == NO_COMPILER && hits(d)) *(cl_bool *)out = CL_FALSE;
    if (what == CL_DEVICE_DOUBLE_FP_CONFIG && fault == NO_F64 && hits(d)) *(cl_device_fp_config *)out = 0;
    if (what == CL_DEVICE_MAX_WORK_GROUP_SIZE && fault == SMALL_GROUPS && hits(d)) *(size_t *)out = 128;
    if ((what == CL_DEVICE_GLOBAL_MEM_SIZE || what == CL_DEVICE_MAX_MEM_ALLOC_SIZE) && fault == ROOM && hits(d))
        *(cl_ulong *)out = (cl_ulong)number << 10;
    if (what == CL_DEVICE_LOCAL_MEM_SIZE && fault == SMALL_SHARED && hits(d)) *(cl_ulong *)out = 32 << 10;
    return e;
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

#define OR_FAIL(device)                         \
    do {                                        \
        const cl_int status_ = fails(device);   \
        if (status_ != 0) {                     \
            *e = status_;                       \
            return NULL;                        \
        }                                       \
    } while (0)

EXPORT cl_context clCreateContext(const cl_context_properties *properties, cl_uint n, const cl_device_id *d,
                                  void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *self, cl_int *e) {
    OR_FAIL(d[0]);
    return real.clCreateContext(properties, n, d, notify, self, e);
}

EXPORT cl_command_queue clCreateCommandQueue(cl_context c, cl_device_id d, cl_command_queue_properties properties, cl_int *e) {
    OR_FAIL(d);
    return real.clCreateCommandQueue(c, d, properties, e);
}

static int index_of(cl_device_id d) {
    for (int i = 0; i < devices; i++)
        if (device[i] == d) return i;
    return MOST - 1;
}

/* Adds bytes to those of a device; false: they exceed its room. */
static bool hold(cl_device_id d, long bytes) {
    const long now = atomic_fetch_add(&held[index_of(d)], bytes) + bytes;
    if (now > most_held) most_held = now;
    if (fault != ROOM || bytes <= 0 || !hits(d) || now <= number << 10) return true;
    atomic_fetch_sub(&held[index_of(d)], bytes);
    return false;
}

EXPORT cl_int clReleaseMemObject(cl_mem m) {
    size_t size = 0;
    cl_context c = NULL;
    real.clGetMemObjectInfo(m, CL_MEM_SIZE, sizeof size, &size, NULL);
    real.clGetMemObjectInfo(m, CL_MEM_CONTEXT, sizeof c, &c, NULL);
    hold(of_context(c), -(long)size);
    return real.clReleaseMemObject(m);
}

EXPORT cl_mem clCreateBuffer(cl_context c, cl_mem_flags flags, size_t size, void *host, cl_int *e) {
    cl_device_id d = of_context(c);
    *e = fails_as(d, MEMORY, &buffers, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    if ((fault == MEMORY_ALWAYS && hits(d)) || (*e == 0 && !hold(d, (long)size))) *e = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return *e ? NULL : real.clCreateBuffer(c, flags, size, host, e);
}

static bool is_binary(cl_program p) {
    bool found = false;
    for (int i = 0; i < binaries && i < MOST; i++) found = found || binary[i] == p;
    return found;
}

/* The address of a program that was released may come back. */
static void forget_binary(cl_program p) {
    for (int i = 0; i < binaries && i < MOST; i++)
        if (binary[i] == p) binary[i] = NULL;
}

EXPORT cl_program clCreateProgramWithSource(cl_context c, cl_uint n, const char **text, const size_t *size, cl_int *e) {
    OR_FAIL(of_context(c));
    cl_program p = real.clCreateProgramWithSource(c, n, text, size, e);
    forget_binary(p);
    return p;
}

EXPORT cl_program clCreateProgramWithBinary(cl_context c, cl_uint n, const cl_device_id *d, const size_t *size,
                                            const unsigned char **data, cl_int *status, cl_int *e) {
    OR_FAIL(d[0]);
    cl_program p = real.clCreateProgramWithBinary(c, n, d, size, data, status, e);
    const int at = p ? atomic_fetch_add(&binaries, 1) : MOST;
    if (at < MOST) binary[at] = p;
    return p;
}

EXPORT cl_int clBuildProgram(cl_program p, cl_uint n, const cl_device_id *d, const char *options,
                             void(CL_CALLBACK *notify)(cl_program, void *), void *self) {
    const cl_int e = fails(d[0]);
    if (e != 0) return e;
    if (hits(d[0]) && fault == COMPILE && !is_binary(p)) return CL_BUILD_PROGRAM_FAILURE;
    if (hits(d[0]) && fault == BAD_BINARY && is_binary(p)) return CL_INVALID_BINARY;
    return real.clBuildProgram(p, n, d, options, notify, self);
}

EXPORT cl_int clGetProgramBuildInfo(cl_program p, cl_device_id d, cl_program_build_info what, size_t size, void *out,
                                    size_t *used) {
    static const char line[] = "<source>:7:3: error: the test library refuses this text\n\tfloat x\n\t      ^\n";
    enum { LINES = 40, LOG = LINES * (sizeof line - 1) + 1 };
    if (fault != COMPILE || !hits(d)) return real.clGetProgramBuildInfo(p, d, what, size, out, used);
    if (used) *used = LOG;
    if (out && size < LOG) return CL_INVALID_VALUE; /* as the specification has it */
    if (out) ((char *)out)[LOG - 1] = 0;
    for (int i = 0; out && i < LINES; i++) memcpy((char *)out + i * (int)(sizeof line - 1), line, sizeof line - 1);
    return CL_SUCCESS;
}

EXPORT cl_int clGetProgramInfo(cl_program p, cl_program_info what, size_t size, void *out, size_t *used) {
    const cl_int e = fails(of_program(p));
    return e ? e : real.clGetProgramInfo(p, what, size, out, used);
}

EXPORT cl_kernel clCreateKernel(cl_program p, const char *name, cl_int *e) {
    OR_FAIL(of_program(p));
    return real.clCreateKernel(p, name, e);
}

EXPORT cl_int clSetKernelArg(cl_kernel k, cl_uint i, size_t size, const void *value) {
    const cl_int e = fails(of_kernel(k));
    return e ? e : real.clSetKernelArg(k, i, size, value);
}

EXPORT cl_int clReleaseContext(cl_context c) { return real.clReleaseContext(c); }
EXPORT cl_int clReleaseCommandQueue(cl_command_queue q) { return real.clReleaseCommandQueue(q); }
EXPORT cl_int clReleaseProgram(cl_program p) { return real.clReleaseProgram(p); }
EXPORT cl_int clReleaseKernel(cl_kernel k) { return real.clReleaseKernel(k); }
EXPORT cl_int clReleaseEvent(cl_event v) { return real.clReleaseEvent(v); }

/* ------------------------------------------------------------------ pace ---------------------------------------------------- */

struct pace {
    long item, kib; /* nanoseconds; 0 = no sleep */
};

static struct pace pace(void) {
    struct pace p = {0};
    const char *text = getenv("FAULTY_PACE");
    if (text) sscanf(text, "%ld,%ld", &p.item, &p.kib);
    return p;
}

static void rest(long ns) {
    const struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    if (ns > 0) nanosleep(&t, NULL);
}

/* A native kernel runs on the thread of the device. */
static void CL_CALLBACK rest_there(void *ns) { rest(*(const long *)ns); }

static cl_int enqueue_rest(cl_command_queue q, cl_uint n, const size_t *global) {
    long ns = pace().item;
    if (ns <= 0) return CL_SUCCESS;
    for (cl_uint i = 0; i < n; i++) ns *= (long)global[i];
    return real.clEnqueueNativeKernel(q, rest_there, &ns, sizeof ns, 0, NULL, NULL, 0, NULL, NULL);
}

static void rest_copy(size_t bytes) { rest((long)((double)pace().kib * (double)bytes / 1024)); }

/* ------------------------------------------------------------------ work ---------------------------------------------------- */

EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint n, const size_t *at, const size_t *global,
                                     const size_t *local, cl_uint nwait, const cl_event *wait, cl_event *out) {
    cl_int e = fails_as(of_queue(q), LAUNCH, &launches, CL_OUT_OF_RESOURCES);
    if (e == 0) e = real.clEnqueueNDRangeKernel(q, k, n, at, global, local, nwait, wait, out);
    return e ? e : enqueue_rest(q, n, global);
}

EXPORT cl_int clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool blocks, size_t at, size_t size, void *to, cl_uint nwait,
                                  const cl_event *wait, cl_event *out) {
    const cl_int e = fails_transfer(of_queue(q), blocks);
    if (e == 0) rest_copy(size);
    return e ? e : real.clEnqueueReadBuffer(q, m, blocks, at, size, to, nwait, wait, out);
}

EXPORT cl_int clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool blocks, size_t at, size_t size, const void *from,
                                   cl_uint nwait, const cl_event *wait, cl_event *out) {
    const cl_int e = fails_transfer(of_queue(q), blocks);
    if (e == 0) rest_copy(size);
    return e ? e : real.clEnqueueWriteBuffer(q, m, blocks, at, size, from, nwait, wait, out);
}

EXPORT cl_int clEnqueueReadBufferRect(cl_command_queue q, cl_mem m, cl_bool blocks, const size_t *at, const size_t *host_at,
                                      const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice,
                                      void *to, cl_uint nwait, const cl_event *wait, cl_event *out) {
    const cl_int e = fails_transfer(of_queue(q), blocks);
    if (e == 0) rest_copy(region[0] * region[1] * region[2]);
    return e ? e
             : real.clEnqueueReadBufferRect(q, m, blocks, at, host_at, region, row, slice, host_row, host_slice, to, nwait, wait,
                                            out);
}

EXPORT cl_int clEnqueueWriteBufferRect(cl_command_queue q, cl_mem m, cl_bool blocks, const size_t *at, const size_t *host_at,
                                       const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice,
                                       const void *from, cl_uint nwait, const cl_event *wait, cl_event *out) {
    const cl_int e = fails_transfer(of_queue(q), blocks);
    if (e == 0) rest_copy(region[0] * region[1] * region[2]);
    return e ? e
             : real.clEnqueueWriteBufferRect(q, m, blocks, at, host_at, region, row, slice, host_row, host_slice, from, nwait,
                                             wait, out);
}

EXPORT cl_int clEnqueueFillBuffer(cl_command_queue q, cl_mem m, const void *pattern, size_t size, size_t at, size_t bytes,
                                  cl_uint nwait, const cl_event *wait, cl_event *out) {
    const cl_int e = fails_transfer(of_queue(q), false);
    return e ? e : real.clEnqueueFillBuffer(q, m, pattern, size, at, bytes, nwait, wait, out);
}

EXPORT cl_int clEnqueueMarkerWithWaitList(cl_command_queue q, cl_uint n, const cl_event *wait, cl_event *out) {
    const cl_int e = fails(of_queue(q));
    return e ? e : real.clEnqueueMarkerWithWaitList(q, n, wait, out);
}

EXPORT cl_int clEnqueueBarrierWithWaitList(cl_command_queue q, cl_uint n, const cl_event *wait, cl_event *out) {
    const cl_int e = fails(of_queue(q));
    return e ? e : real.clEnqueueBarrierWithWaitList(q, n, wait, out);
}

EXPORT cl_int clGetEventInfo(cl_event v, cl_event_info what, size_t size, void *out, size_t *used) {
    cl_device_id d = of_event(v);
    cl_int e = fails(d);
    if (e == 0) e = real.clGetEventInfo(v, what, size, out, used);
    if (e != 0 || what != CL_EVENT_COMMAND_EXECUTION_STATUS) return e;
    if (is_hung(d)) *(cl_int *)out = CL_RUNNING;
    if (fault == WORK && hits(d) && launches >= number) *(cl_int *)out = CL_OUT_OF_RESOURCES;
    return e;
}

EXPORT cl_int clGetEventProfilingInfo(cl_event v, cl_profiling_info what, size_t size, void *out, size_t *used) {
    const cl_int e = fails(of_event(v));
    return e ? e : real.clGetEventProfilingInfo(v, what, size, out, used);
}

EXPORT cl_int clFlush(cl_command_queue q) {
    const cl_int e = fails(of_queue(q));
    return e ? e : real.clFlush(q);
}

EXPORT cl_int clFinish(cl_command_queue q) {
    cl_device_id d = of_queue(q);
    const cl_int e = fails(d);
    if (e == 0 && is_hung(d)) wait_for_ever();
    return e ? e : real.clFinish(q);
}
