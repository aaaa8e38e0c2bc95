/* dialect.h - one kernel text for OpenCL C 1.2 and for CUDA (NVRTC).
 *
 * A KERNEL runs in groups of 256 x 1 x 1 work items, a KERNEL_OF(n) in groups of n x 1 x 1.  SHARED declares an array in the
 * scope of a kernel function; ON_SHARED qualifies a pointer to one. */
#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define KERNEL_OF(n) __kernel __attribute__((reqd_work_group_size(n, 1, 1)))
#define GLOBAL __global
#define SHARED __local
#define ON_SHARED __local
#define RESTRICT restrict
#define GROUP(i) ((int)get_group_id(i))
#define LOCAL(i) ((int)get_local_id(i))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define BARRIER_ALL barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE) /* what the group wrote to the heap is seen, too */
#define FMA(a, b, c) fma(a, b, c)
#define MUL(a, b) fma(a, b, -0.0f) /* a product that no compiler fuses with the sum behind it */
#define INVERSE(x) ((float)(1.0 / (double)(x))) /* 1 / x as the host rounds it, which OpenCL need not */
#define FLOAT_OF(bits) as_float(bits)
#define BITS_OF(x) as_int(x)
#define EXP(x) exp(x)
#define TANH(x) tanh(x)
#define ABS(x) fabs(x)
#define SQRT(x) sqrt(x)
#define MULHI(a, b) mul_hi(a, b)
#define ATOMIC_ADD(shared, v) atomic_add(shared, v) /* u32 of the group, in any order */
#define INLINE static inline
typedef long i64;
typedef ulong u64;
#else
#define KERNEL_OF(n) extern "C" __global__ __launch_bounds__(n)
#define GLOBAL
#define SHARED __shared__
#define ON_SHARED
#define RESTRICT __restrict__
#define GROUP(i) ((int)((i) == 0 ? blockIdx.x : (i) == 1 ? blockIdx.y : blockIdx.z))
#define LOCAL(i) ((int)((i) == 0 ? threadIdx.x : (i) == 1 ? threadIdx.y : threadIdx.z))
#define BARRIER __syncthreads()
#define BARRIER_ALL __syncthreads()
#define FMA(a, b, c) fmaf(a, b, c)
#define MUL(a, b) __fmul_rn(a, b)
#define INVERSE(x) __frcp_rn(x)
#define FLOAT_OF(bits) __int_as_float(bits)
#define BITS_OF(x) __float_as_int(x)
#define EXP(x) expf(x)
#define TANH(x) tanhf(x)
#define ABS(x) fabsf(x)
#define SQRT(x) sqrtf(x)
#define MULHI(a, b) __umulhi(a, b)
#define ATOMIC_ADD(shared, v) atomicAdd(shared, v)
#define INLINE static __device__ inline
typedef long long i64;
typedef unsigned long long u64;
#endif
#define KERNEL KERNEL_OF(256)
typedef int i32;
typedef unsigned int u32;
typedef float f32;
typedef double f64;
