/* cuda_api.h - the functions of NVIDIA's driver (libcuda.so.1) and of its run-time compiler (NVRTC) that cuda.c uses, without
 * their headers: names, prototypes and constants as documented for the CUDA driver API and NVRTC 12 and 13.
 *
 * Both libraries are opened at run time.  A build needs no CUDA toolkit, and a program that never asks needs no driver.  Members
 * are called as the functions; the names with _v2 are those that cuda.h hides behind macros. */
#ifndef STRETTO_GPU_CUDA_API_H
#define STRETTO_GPU_CUDA_API_H

#include "base/err.h"

typedef unsigned long long cu_address; /* CUdeviceptr */
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUarray_st;
struct _nvrtcProgram;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_NOT_READY = 600,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
};

/* CUDA_MEMCPY2D: `height` rows of `width` bytes. */
struct cu_copy {
    size_t src_x, src_y;
    int src_type; /* CU_MEMORYTYPE_.. */
    const void *src_host;
    cu_address src_device;
    struct CUarray_st *src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    int dst_type;
    void *dst_host;
    cu_address dst_device;
    struct CUarray_st *dst_array;
    size_t dst_pitch;
    size_t width, height;
};

/* X(name, arguments): every call returns 0 or a CUresult. */
#define CUDA_CALLS(X)                                                                                                            \
    X(cuInit, (unsigned int))                                                                                                    \
    X(cuDriverGetVersion, (int *))                                                                                               \
    X(cuGetErrorString, (int, const char **))                                                                                    \
    X(cuGetErrorName, (int, const char **))                                                                                      \
    X(cuDeviceGet, (int *, int))                                                                                                 \
    X(cuDeviceGetCount, (int *))                                                                                                 \
    X(cuDeviceGetName, (char *, int, int))                                                                                       \
    X(cuDeviceTotalMem_v2, (size_t *, int))                                                                                      \
    X(cuDeviceGetAttribute, (int *, int, int))                                                                                   \
    X(cuDevicePrimaryCtxRetain, (struct CUctx_st **, int))                                                                       \
    X(cuDevicePrimaryCtxRelease_v2, (int))                                                                                       \
    X(cuCtxSetCurrent, (struct CUctx_st *))                                                                                      \
    X(cuCtxGetCurrent, (struct CUctx_st **))                                                                                     \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                                                                     \
    X(cuMemAlloc_v2, (cu_address *, size_t))                                                                                     \
    X(cuMemFree_v2, (cu_address))                                                                                                \
    X(cuMemHostAlloc, (void **, size_t, unsigned int))                                                                           \
    X(cuMemFreeHost, (void *))                                                                                                   \
    X(cuMemsetD8Async, (cu_address, unsigned char, size_t, struct CUstream_st *))                                                \
    X(cuMemcpyHtoDAsync_v2, (cu_address, const void *, size_t, struct CUstream_st *))                                            \
    X(cuMemcpyDtoHAsync_v2, (void *, cu_address, size_t, struct CUstream_st *))                                                  \
    X(cuMemcpy2DAsync_v2, (const struct cu_copy *, struct CUstream_st *))                                                        \
    X(cuStreamCreate, (struct CUstream_st **, unsigned int))                                                                     \
    X(cuStreamDestroy_v2, (struct CUstream_st *))                                                                                \
    X(cuStreamSynchronize, (struct CUstream_st *))                                                                               \
    X(cuStreamQuery, (struct CUstream_st *))                                                                                     \
    X(cuStreamWaitEvent, (struct CUstream_st *, struct CUevent_st *, unsigned int))                                              \
    X(cuEventCreate, (struct CUevent_st **, unsigned int))                                                                       \
    X(cuEventDestroy_v2, (struct CUevent_st *))                                                                                  \
    X(cuEventRecord, (struct CUevent_st *, struct CUstream_st *))                                                                \
    X(cuEventSynchronize, (struct CUevent_st *))                                                                                 \
    X(cuEventElapsedTime, (float *, struct CUevent_st *, struct CUevent_st *))                                                   \
    X(cuModuleLoadData, (struct CUmod_st **, const void *))                                                                      \
    X(cuModuleUnload, (struct CUmod_st *))                                                                                       \
    X(cuModuleGetFunction, (struct CUfunc_st **, struct CUmod_st *, const char *))                                               \
    X(cuLaunchKernel, (struct CUfunc_st *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,   \
                       unsigned int, struct CUstream_st *, void **, void **))                                                    \
    X(cuStreamBeginCapture_v2, (struct CUstream_st *, int))                                                                      \
    X(cuStreamEndCapture, (struct CUstream_st *, struct CUgraph_st **))                                                          \
    X(cuGraphInstantiateWithFlags, (struct CUgraphExec_st **, struct CUgraph_st *, unsigned long long))                          \
    X(cuGraphLaunch, (struct CUgraphExec_st *, struct CUstream_st *))                                                            \
    X(cuGraphExecDestroy, (struct CUgraphExec_st *))                                                                             \
    X(cuGraphDestroy, (struct CUgraph_st *))

/* The same for NVRTC; every call returns 0 or an nvrtcResult. */
#define NVRTC_CALLS(X)                                                                                                           \
    X(nvrtcVersion, (int *, int *))                                                                                              \
    X(nvrtcGetNumSupportedArchs, (int *))                                                                                        \
    X(nvrtcGetSupportedArchs, (int *))                                                                                           \
    X(nvrtcCreateProgram, (struct _nvrtcProgram **, const char *, const char *, int, const char *const *, const char *const *))  \
    X(nvrtcDestroyProgram, (struct _nvrtcProgram **))                                                                            \
    X(nvrtcCompileProgram, (struct _nvrtcProgram *, int, const char *const *))                                                   \
    X(nvrtcGetProgramLogSize, (struct _nvrtcProgram *, size_t *))                                                                \
    X(nvrtcGetProgramLog, (struct _nvrtcProgram *, char *))                                                                      \
    X(nvrtcGetCUBINSize, (struct _nvrtcProgram *, size_t *))                                                                     \
    X(nvrtcGetCUBIN, (struct _nvrtcProgram *, char *))                                                                           \
    X(nvrtcGetPTXSize, (struct _nvrtcProgram *, size_t *))                                                                       \
    X(nvrtcGetPTX, (struct _nvrtcProgram *, char *))

enum { CUDA_LIBRARY_NAME = 256, CUDA_ARCHS = 64 };

struct cuda {
    void *driver, *compiler; /* from dlopen */
    char driver_name[CUDA_LIBRARY_NAME], compiler_name[CUDA_LIBRARY_NAME];
    int version;             /* of the driver: 13000 = CUDA 13.0 */
    int major, minor;        /* of NVRTC */
    int n, arch[CUDA_ARCHS]; /* architectures that NVRTC compiles for: 90 = sm_90 */
#define CALL(name, arguments) int(*name) arguments;
    CUDA_CALLS(CALL)
    NVRTC_CALLS(CALL)
#undef CALL
    int (*cuFuncLoad)(struct CUfunc_st *); /* NULL in drivers before CUDA 12.4 */
    const char *(*nvrtcGetErrorString)(int);
};

/* Opens both libraries and starts the driver.  E831, which names what is absent; *c then needs no cuda_close. */
err cuda_open(struct cuda *c);
void cuda_close(struct cuda *c);
/* E831, or E601 where memory is refused: `call` at `where` failed with `status`. */
err cuda_refused(const struct cuda *c, const char *where, const char *call, int status);

/* What NVRTC makes for a device of compute capability `cc` (90 = 9.0). */
struct cuda_target {
    char option[48]; /* --gpu-architecture=sm_90; compute_.. of the newest that it knows for a newer device */
    bool ptx;        /* the driver finishes the program (PTX), not NVRTC (machine code) */
};
err cuda_target(const struct cuda *c, int cc, const char *where, struct cuda_target *out);
/* Compiles the text of the kernels.  *program: mem_free. */
err cuda_compile(const struct cuda *c, const struct cuda_target *t, const char *where, void **program, size_t *size);
const char *cuda_options(void); /* those of every compilation, for the key of a cache */

#endif
