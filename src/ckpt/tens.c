/* tens.c - sizes and names of element types. */
#include "ckpt/tens.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[DTYPE_N] = {
    [DTYPE_F32] = {"F32", 4},   [DTYPE_F64] = {"F64", 8}, [DTYPE_I32] = {"I32", 4},
    [DTYPE_I64] = {"I64", 8},   [DTYPE_U8] = {"U8", 1},   [DTYPE_F16] = {"F16", 2},
    [DTYPE_BF16] = {"BF16", 2}, [DTYPE_I8] = {"I8", 1},   [DTYPE_BOOL] = {"BOOL", 1},
};

size_t dtype_size(enum dtype d) { return dtypes[d].size; }
const char *dtype_name(enum dtype d) { return dtypes[d].name; }

i64 tens_count(const struct tens *t) {
    i64 n = 1;
    for (i32 i = 0; i < t->ndim; i++) n *= t->dim[i];
    return n;
}
