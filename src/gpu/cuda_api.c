/* cuda_api.c - opens NVIDIA's driver and NVRTC, and compiles the text of the kernels.
 *
 *     libcuda.so.1 or $STRETTO_CUDA;  libnvrtc.so.<major of the driver> .. 12, libnvrtc.so or $STRETTO_NVRTC
 *
 * The libraries stay in the process once they are open (RTLD_NODELETE): the driver has threads of its own.  Each
 * cuda_open fills a table of functions for its caller, so threads share nothing here. */
#define _GNU_SOURCE
#include "gpu/cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/mem.h"
#include "gpu/gpu.h"

#define CUDA_LIBRARY "libcuda.so.1"
#define INSTALL_DRIVER "install NVIDIA's driver   or   --device cpu"
#define INSTALL_NVRTC "pip install nvidia-cuda-nvrtc, and STRETTO_NVRTC=FILE   or   --device cpu"

enum { NVRTC_OLDEST = 12, NVRTC_TESTED = 13 };

/* ------------------------------------------------------------------ refusals ------------------------------------------------ */

err cuda_refused(const struct cuda *c, const char *where, const char *call, int status) {
    const char *why = NULL, *name = NULL;
    if (status == CUDA_ERROR_OUT_OF_MEMORY)
        return FAIL_AT(E601, where, "a smaller --batch   or   end other programs on the device (nvidia-smi lists them)",
                       "%s: the device has no memory left", call);
    if (c->cuGetErrorString(status, &why) != CUDA_SUCCESS) why = NULL;
    if (c->cuGetErrorName(status, &name) != CUDA_SUCCESS) name = NULL;
    return FAIL_AT(E831, where, "nvidia-smi   (the driver's own program: is the device well?)   or   --device cpu",
                   "%s: %.200s (%.60s, %d)", call, why ? why : "it gave no reason", name ? name : "unknown", status);
}

static err unopened(const char *name, const char *what, const char *fix) {
    const char *why = dlerror();
    const size_t n = strlen(name);
    if (why && strstr(why, "No such file")) return FAIL_AT(E831, name, fix, "%s is not installed", what);
    if (why && strncmp(why, name, n) == 0 && why[n] == ':') why += n + 1 + (why[n + 1] == ' '); /* do not repeat the name */
    return FAIL_AT(E831, name, fix, "%s cannot be opened: %.300s", what, why ? why : "no reason is given");
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

static void *library(const char *path, char name[CUDA_LIBRARY_NAME]) {
    snprintf(name, CUDA_LIBRARY_NAME, "%s", path);
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
}

static const char *wish(const char *variable) {
    const char *path = getenv(variable);
    return path && *path ? path : NULL;
}

static err find(void *from, const char *where, const char *symbol, void *call, size_t size) {
    if (library_find(from, symbol, call, size)) return 0;
    return FAIL_AT(E831, where, "a driver and an NVRTC of CUDA 12 or later", "it has no %s", symbol);
}

static err open_driver(struct cuda *c) {
    const char *path = wish("STRETTO_CUDA");
    c->driver = library(path ? path : CUDA_LIBRARY, c->driver_name);
    if (!c->driver) return unopened(c->driver_name, "NVIDIA's driver", INSTALL_DRIVER);
#define CALL(name, arguments) TRY(find(c->driver, c->driver_name, #name, &c->name, sizeof c->name));
    CUDA_CALLS(CALL)
#undef CALL
    if (find(c->driver, c->driver_name, "cuFuncLoad", &c->cuFuncLoad, sizeof c->cuFuncLoad) < 0) err_clear();
    const int status = c->cuInit(0);
    if (status == CUDA_ERROR_NO_DEVICE) return FAIL_AT(E831, c->driver_name, "--device cpu", "the driver finds no GPU");
    if (status != CUDA_SUCCESS) return cuda_refused(c, c->driver_name, "cuInit", status);
    if (c->cuDriverGetVersion(&c->version) != CUDA_SUCCESS) c->version = 0;
    return 0;
}

/* An NVRTC newer than the driver makes programs that the driver may refuse, so it comes last. */
static void *any_compiler(struct cuda *c) {
    const int newest = imax(NVRTC_OLDEST, c->version / 1000);
    char name[32];
    for (int v = newest; v >= NVRTC_OLDEST; v--) {
        snprintf(name, sizeof name, "libnvrtc.so.%d", v);
        if ((c->compiler = library(name, c->compiler_name)) != NULL) return c->compiler;
    }
    if ((c->compiler = library("libnvrtc.so", c->compiler_name)) != NULL) return c->compiler;
    for (int v = newest + 1; v <= NVRTC_TESTED; v++) {
        snprintf(name, sizeof name, "libnvrtc.so.%d", v);
        if ((c->compiler = library(name, c->compiler_name)) != NULL) return c->compiler;
    }
    return c->compiler = library("libnvrtc.so", c->compiler_name);
}

static err compiler_refused(const struct cuda *c, const char *where, const char *call, int status) {
    const char *why = c->nvrtcGetErrorString(status);
    return FAIL_AT(E831, where, INSTALL_NVRTC, "%s of %.200s: %.200s (%d)", call, c->compiler_name,
                   why ? why : "it gave no reason", status);
}

static err know_archs(struct cuda *c) {
    int n = 0, *list;
    int status = c->nvrtcGetNumSupportedArchs(&n);
    if (status != 0) return compiler_refused(c, c->compiler_name, "nvrtcGetNumSupportedArchs", status);
    NEW(list, imax(1, n));
    status = c->nvrtcGetSupportedArchs(list);
    c->n = imin(n, CUDA_ARCHS);
    if (status == 0) memcpy(c->arch, list, (size_t)c->n * sizeof *list);
    mem_free(list);
    return status == 0 ? 0 : compiler_refused(c, c->compiler_name, "nvrtcGetSupportedArchs", status);
}

/* NVRTC opens a second library by its bare name, which is not found where NVRTC itself was named by a path (wheels of Python).
 * Opened from the same folder first, it is found. */
static void open_builtins(const struct cuda *c) {
    char path[2 * CUDA_LIBRARY_NAME + 64];
    Dl_info about;
    void *at;
    memcpy(&at, &c->nvrtcVersion, sizeof at);
    const char *end = dladdr(at, &about) && about.dli_fname ? strrchr(about.dli_fname, '/') : NULL;
    if (!end) return;
    const int n = snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(end - about.dli_fname), about.dli_fname,
                           c->major, c->minor);
    if (n < (int)sizeof path) dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
}

static err open_compiler(struct cuda *c) {
    const char *path = wish("STRETTO_NVRTC");
    if (path) c->compiler = library(path, c->compiler_name);
    else any_compiler(c);
    if (!c->compiler) return unopened(c->compiler_name, "NVRTC, the compiler of the kernels,", INSTALL_NVRTC);
    TRY(find(c->compiler, c->compiler_name, "nvrtcGetErrorString", &c->nvrtcGetErrorString, sizeof c->nvrtcGetErrorString));
#define CALL(name, arguments) TRY(find(c->compiler, c->compiler_name, #name, &c->name, sizeof c->name));
    NVRTC_CALLS(CALL)
#undef CALL
    const int status = c->nvrtcVersion(&c->major, &c->minor);
    if (status != 0) return compiler_refused(c, c->compiler_name, "nvrtcVersion", status);
    open_builtins(c);
    return know_archs(c);
}

err cuda_open(struct cuda *c) {
    memset(c, 0, sizeof *c);
    err e = open_driver(c);
    if (e == 0) e = open_compiler(c);
    if (e < 0) cuda_close(c);
    return e;
}

void cuda_close(struct cuda *c) {
    if (c->compiler) dlclose(c->compiler);
    if (c->driver) dlclose(c->driver);
    c->compiler = c->driver = NULL;
}

/* ------------------------------------------------------------------ compiling ----------------------------------------------- */

/* Rounding as on the host: divisions and roots are exact, small numbers are kept, products and sums fuse. */
static const char *const options[] = {"--std=c++17", "--fmad=true", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"};

const char *cuda_options(void) { return "--std=c++17 --fmad=true --ftz=false --prec-div=true --prec-sqrt=true"; }

err cuda_target(const struct cuda *c, int cc, const char *where, struct cuda_target *out) {
    int best = 0, oldest = 0;
    for (int i = 0; i < c->n; i++) {
        if (c->arch[i] <= cc && c->arch[i] > best) best = c->arch[i];
        if (oldest == 0 || c->arch[i] < oldest) oldest = c->arch[i];
    }
    if (best == 0)
        return FAIL_AT(E831, where, "STRETTO_NVRTC=FILE of an older NVRTC   or   --device cpu",
                       "%s compiles for sm_%d and newer, the device has sm_%d", c->compiler_name, oldest, cc);
    out->ptx = best != cc;
    snprintf(out->option, sizeof out->option, "--gpu-architecture=%s_%d", out->ptx ? "compute" : "sm", best);
    return 0;
}

/* The error message of the compiler, shortened. */
static err rejected(const struct cuda *c, struct _nvrtcProgram *p, const char *where, int status) {
    size_t n = 0;
    if (c->nvrtcGetProgramLogSize(p, &n) != 0 || n < 2) return compiler_refused(c, where, "nvrtcCompileProgram", status);
    char *log = mem_alloc(n + 1);
    if (!log) return -E601;
    if (c->nvrtcGetProgramLog(p, log) != 0) log[0] = '\0';
    const char *first = strstr(log, "error");
    const err e = FAIL_AT(E831, where, INSTALL_NVRTC, "%.200s does not compile the kernels: %.600s", c->compiler_name,
                          first ? first : log);
    mem_free(log);
    return e;
}

static err take(const struct cuda *c, struct _nvrtcProgram *p, bool ptx, const char *where, void **out, size_t *size) {
    int status = ptx ? c->nvrtcGetPTXSize(p, size) : c->nvrtcGetCUBINSize(p, size);
    if (status != 0 || *size == 0) return compiler_refused(c, where, ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", status);
    char *program = mem_alloc(*size);
    if (!program) return -E601;
    status = ptx ? c->nvrtcGetPTX(p, program) : c->nvrtcGetCUBIN(p, program);
    if (status != 0) {
        mem_free(program);
        return compiler_refused(c, where, ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", status);
    }
    *out = program;
    return 0;
}

err cuda_compile(const struct cuda *c, const struct cuda_target *t, const char *where, void **program, size_t *size) {
    const char *all[COUNT(options) + 1] = {t->option};
    struct _nvrtcProgram *p = NULL;
    *program = NULL;
    memcpy(all + 1, options, sizeof options);
    int status = c->nvrtcCreateProgram(&p, gpu_text(), "stretto.cu", 0, NULL, NULL);
    if (status != 0) return compiler_refused(c, where, "nvrtcCreateProgram", status);
    status = c->nvrtcCompileProgram(p, (int)COUNT(all), all);
    const err e = status == 0 ? take(c, p, t->ptx, where, program, size) : rejected(c, p, where, status);
    c->nvrtcDestroyProgram(&p);
    return e;
}
