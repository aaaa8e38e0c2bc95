/* nvml.c - calls NVML without its header: declares the few functions and structs needed, as documented by NVIDIA.
 *
 * The library is opened with dlopen: a program that never asks needs no driver, and without a driver the call fails with a
 * message. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/mem.h"
#include "topo/gpu.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"

enum { NVML_SUCCESS = 0, NVML_ERROR_NOT_SUPPORTED = 3 };

struct nvml_utilization {
    unsigned int gpu, memory; /* percent of the time in which a kernel ran; in which memory was accessed */
};

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};

/* X(member, symbol, arguments): every call returns 0 or an NVML error number. */
#define NVML_CALLS(X)                                                                                                            \
    X(init, "nvmlInit_v2", (void))                                                                                               \
    X(shutdown, "nvmlShutdown", (void))                                                                                          \
    X(count, "nvmlDeviceGetCount_v2", (unsigned int *))                                                                          \
    X(handle, "nvmlDeviceGetHandleByIndex_v2", (unsigned int, void **))                                                          \
    X(utilization, "nvmlDeviceGetUtilizationRates", (void *, struct nvml_utilization *))                                         \
    X(memory, "nvmlDeviceGetMemoryInfo", (void *, struct nvml_memory *))

struct gpus {
    void *library;
    const char *name;
    bool started;
    i32 n;
    void *device[GPU_MOST];
    const char *(*error)(int);
#define CALL(member, symbol, arguments) int(*member) arguments;
    NVML_CALLS(CALL)
#undef CALL
};

/* gpu: number of the GPU that the call was about, -1 = none. */
static err refused(const struct gpus *g, i32 gpu, const char *call, int status) {
    const char *why = g->error(status);
    char about[24] = "";
    if (gpu >= 0) snprintf(about, sizeof about, "GPU %d: ", gpu);
    return FAIL_AT(E820, g->name, "nvidia-smi   (the driver's own program: does it see the GPUs?)", "%s%s: %.200s (%d)", about,
                   call, why ? why : "it gave no reason", status);
}

static err find(const struct gpus *g, const char *symbol, void *call, size_t size) {
    if (library_find(g->library, symbol, call, size)) return 0;
    return FAIL_AT(E820, g->name, "a driver of 2012 or later; unset STRETTO_NVML", "it has no %s: is this NVIDIA's library?",
                   symbol);
}

static err find_all(struct gpus *g) {
    TRY(find(g, "nvmlErrorString", &g->error, sizeof g->error));
#define CALL(member, symbol, arguments) TRY(find(g, symbol, &g->member, sizeof g->member));
    NVML_CALLS(CALL)
#undef CALL
    return 0;
}

static err start(struct gpus *g) {
    unsigned int n = 0;
    TRY(find_all(g));
    int status = g->init();
    if (status != NVML_SUCCESS) return refused(g, -1, "nvmlInit", status);
    g->started = true;
    if ((status = g->count(&n)) != NVML_SUCCESS) return refused(g, -1, "nvmlDeviceGetCount", status);
    if (n == 0)
        return FAIL_AT(E820, g->name, "run gpuload on hosts with GPUs only   or   --recorded FILE",
                       "there is no GPU on this host");
    g->n = n < GPU_MOST ? (i32)n : GPU_MOST;
    for (i32 i = 0; i < g->n; i++)
        if ((status = g->handle((unsigned int)i, &g->device[i])) != NVML_SUCCESS)
            return refused(g, i, "nvmlDeviceGetHandleByIndex", status);
    return 0;
}

static err unopened(const char *name) {
    const char *why = dlerror();
    const size_t n = strlen(name);
    if (why && strncmp(why, name, n) == 0 && why[n] == ':') why += n + 1 + (why[n + 1] == ' '); /* do not repeat the name */
    return FAIL_AT(E820, name, "run gpuload on hosts with NVIDIA's driver only   or   --recorded FILE",
                   "the library of NVIDIA's driver cannot be opened: %.300s", why ? why : "no reason is given");
}

err gpus_open(struct gpus **out) {
    const char *named = getenv("STRETTO_NVML");
    struct gpus *g;
    *out = NULL;
    NEW(g, 1);
    g->name = named && *named ? named : NVML_LIBRARY;
    g->library = dlopen(g->name, RTLD_NOW | RTLD_LOCAL);
    err e = g->library ? start(g) : unopened(g->name);
    if (e < 0) gpus_close(g);
    else *out = g;
    return e;
}

i32 gpus_count(const struct gpus *g) { return g->n; }

static err look(const struct gpus *g, i32 i, struct gpu_load *out) {
    struct nvml_utilization use = {0};
    struct nvml_memory memory = {0};
    int status = g->utilization(g->device[i], &use);
    if (status != NVML_SUCCESS && status != NVML_ERROR_NOT_SUPPORTED)
        return refused(g, i, "nvmlDeviceGetUtilizationRates", status);
    out->busy = status == NVML_SUCCESS ? dmin(1, use.gpu / 100.0) : -1;
    status = g->memory(g->device[i], &memory);
    if (status != NVML_SUCCESS || memory.total == 0) return refused(g, i, "nvmlDeviceGetMemoryInfo", status);
    out->memory = dmin(1, (f64)memory.used / (f64)memory.total);
    return 0;
}

err gpus_look(const struct gpus *g, struct gpu_load load[GPU_MOST]) {
    for (i32 i = 0; i < g->n; i++) TRY(look(g, i, &load[i]));
    return 0;
}

void gpus_close(struct gpus *g) {
    if (!g) return;
    if (g->started) g->shutdown();
    if (g->library) dlclose(g->library);
    mem_free(g);
}
