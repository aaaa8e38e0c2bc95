/* fake_nvml.c - a libnvidia-ml.so.1 for hosts without a GPU: says what the file named by FAKE_NVML holds.
 *
 *     gpu UTILISATION USED TOTAL       a GPU: per cent (-1 = not supported, as under MIG), bytes
 *     fail CALL NUMBER                 this call fails with that number: init, count, handle, utilisation, memory */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100, NOT_SUPPORTED = 3, LINE = 200 };
#define EXPORT __attribute__((visibility("default")))

struct utilization {
    unsigned int gpu, memory;
};
struct memory {
    unsigned long long total, free, used;
};

static struct gpu {
    int busy;
    unsigned long long used, total;
} gpu[MOST];
static unsigned int ngpu;
static char failing[20];
static int failure;

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *n);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **device);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *out);
EXPORT const char *nvmlErrorString(int status);

static int status(const char *call) { return strcmp(call, failing) == 0 ? failure : 0; }

int nvmlInit_v2(void) {
    char line[LINE];
    const char *path = getenv("FAKE_NVML");
    FILE *f = path ? fopen(path, "re") : NULL;
    ngpu = 0;
    failing[0] = 0;
    while (f && fgets(line, sizeof line, f) && ngpu < MOST) {
        struct gpu g;
        if (sscanf(line, "gpu %d %llu %llu", &g.busy, &g.used, &g.total) == 3) gpu[ngpu++] = g;
        else sscanf(line, "fail %19s %d", failing, &failure);
    }
    if (f) fclose(f);
    return status("init");
}

int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetCount_v2(unsigned int *n) {
    *n = ngpu;
    return status("count");
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **device) {
    if (i >= ngpu) return 2;
    *device = &gpu[i];
    return status("handle");
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out) {
    const struct gpu *g = device;
    if (g->busy < 0) return NOT_SUPPORTED;
    *out = (struct utilization){.gpu = (unsigned int)g->busy, .memory = (unsigned int)g->busy / 2};
    return status("utilisation");
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *out) {
    const struct gpu *g = device;
    *out = (struct memory){.total = g->total, .free = g->total - g->used, .used = g->used};
    return status("memory");
}

const char *nvmlErrorString(int number) {
    return number == 15 ? "GPU is lost" : number == 9 ? "Driver Not Loaded" : "Unknown Error";
}
