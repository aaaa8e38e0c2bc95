/* tens.h - a named tensor by reference: what model files are made of.  Owns nothing. */
#ifndef STRETTO_CKPT_TENS_H
#define STRETTO_CKPT_TENS_H

#include "base/bits.h"

enum dtype { DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_I64, DTYPE_U8, DTYPE_F16, DTYPE_BF16, DTYPE_I8, DTYPE_BOOL, DTYPE_N };

struct tens {
    const char *name;
    enum dtype dtype;
    i32 ndim;
    i64 dim[4]; /* row-major, dim[ndim-1] fastest */
    void *data;
};

size_t dtype_size(enum dtype d);
const char *dtype_name(enum dtype d); /* "F32", as in safetensors */
i64 tens_count(const struct tens *t); /* elements; 1 for a scalar */

#endif
