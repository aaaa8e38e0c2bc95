/* fake_nvrtc.c - a libnvrtc.so for tests: a program is a line that names the architecture, and the source as it came.
 *
 * cuda_on_opencl.c compiles it when it is loaded.  It knows the architectures 75, 80 and 90.  CUDA_TEST_FAIL=nvrtcCompileProgram
 * makes every compilation fail. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "gpu/cuda_api.h"

enum { NVRTC_INVALID_PROGRAM = 4, NVRTC_INVALID_OPTION = 5, NVRTC_COMPILATION = 6 };

/* The prototypes are those of the table that cuda_api.c calls through. */
#define CALL(name, arguments) __attribute__((visibility("default"))) int name arguments;
NVRTC_CALLS(CALL)
#undef CALL
__attribute__((visibility("default"))) const char *nvrtcGetErrorString(int status);

static bool broken(void) {
    const char *wish = getenv("CUDA_TEST_FAIL");
    return wish && strcmp(wish, "nvrtcCompileProgram") == 0;
}

static const int archs[] = {75, 80, 90};

struct _nvrtcProgram {
    char *source;
    char head[64]; /* "//cubin sm_90\n" or "//ptx compute_90\n" once it is compiled */
};

int nvrtcVersion(int *major, int *minor) {
    *major = 13;
    *minor = 0;
    return 0;
}

int nvrtcGetNumSupportedArchs(int *n) {
    *n = COUNT(archs);
    return 0;
}

int nvrtcGetSupportedArchs(int *out) {
    memcpy(out, archs, sizeof archs);
    return 0;
}

const char *nvrtcGetErrorString(int status) {
    return status == NVRTC_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_TEST";
}

int nvrtcCreateProgram(struct _nvrtcProgram **out, const char *source, const char *name, int headers, const char *const *header,
                       const char *const *header_name) {
    struct _nvrtcProgram *p = calloc(1, sizeof *p);
    (void)header_name;
    if (!p || !name || headers != 0 || header) return NVRTC_INVALID_PROGRAM;
    p->source = strdup(source);
    *out = p;
    return p->source ? 0 : NVRTC_INVALID_PROGRAM;
}

int nvrtcDestroyProgram(struct _nvrtcProgram **p) {
    free((*p)->source);
    free(*p);
    *p = NULL;
    return 0;
}

static bool is_known(int arch) {
    for (size_t i = 0; i < COUNT(archs); i++)
        if (archs[i] == arch) return true;
    return false;
}

int nvrtcCompileProgram(struct _nvrtcProgram *p, int n, const char *const *options) {
    int arch = 0;
    if (broken()) return NVRTC_COMPILATION;
    for (int i = 0; i < n; i++) {
        if (strncmp(options[i], "--", 2) != 0) return NVRTC_INVALID_OPTION;
        if (sscanf(options[i], "--gpu-architecture=sm_%d", &arch) == 1)
            snprintf(p->head, sizeof p->head, "//cubin sm_%d\n", arch);
        else if (sscanf(options[i], "--gpu-architecture=compute_%d", &arch) == 1)
            snprintf(p->head, sizeof p->head, "//ptx compute_%d\n", arch);
    }
    return is_known(arch) ? 0 : NVRTC_INVALID_OPTION;
}

static const char *log_of(void) { return broken() ? "stretto.cu(7): error: CUDA_TEST_FAIL is set\n" : ""; }

int nvrtcGetProgramLogSize(struct _nvrtcProgram *p, size_t *size) {
    (void)p;
    *size = strlen(log_of()) + 1;
    return 0;
}

int nvrtcGetProgramLog(struct _nvrtcProgram *p, char *out) {
    (void)p;
    memcpy(out, log_of(), strlen(log_of()) + 1);
    return 0;
}

static size_t size_if(const struct _nvrtcProgram *p, const char *kind) {
    return strncmp(p->head, kind, strlen(kind)) == 0 ? strlen(p->head) + strlen(p->source) + 1 : 0;
}

static int give(const struct _nvrtcProgram *p, const char *kind, char *out) {
    if (size_if(p, kind) == 0) return NVRTC_INVALID_PROGRAM;
    memcpy(out, p->head, strlen(p->head));
    memcpy(out + strlen(p->head), p->source, strlen(p->source) + 1);
    return 0;
}

int nvrtcGetCUBINSize(struct _nvrtcProgram *p, size_t *size) {
    *size = size_if(p, "//cubin");
    return 0;
}

int nvrtcGetPTXSize(struct _nvrtcProgram *p, size_t *size) {
    *size = size_if(p, "//ptx");
    return 0;
}

int nvrtcGetCUBIN(struct _nvrtcProgram *p, char *out) { return give(p, "//cubin", out); }
int nvrtcGetPTX(struct _nvrtcProgram *p, char *out) { return give(p, "//ptx", out); }
