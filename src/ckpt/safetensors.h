/* safetensors.h - the file format of models and checkpoints: 8-byte length, JSON header, raw little-endian tensors.
 *
 *     N (u64) | {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, ...} | data
 *               <------------------------------------ N bytes, padded with spaces -------------------------------->
 *
 * Files are written to a temporary name, synced and renamed.  Identical content gives identical bytes: tensors stand in the order
 * of falling element size, then name; metadata in the order of its keys. */
#ifndef STRETTO_CKPT_SAFETENSORS_H
#define STRETTO_CKPT_SAFETENSORS_H

#include "base/arena.h"

enum dtype { DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_I64, DTYPE_U8, DTYPE_F16, DTYPE_BF16, DTYPE_I8, DTYPE_BOOL, DTYPE_N };

/* A named tensor by reference; owns nothing. */
struct tens {
    const char *name;
    enum dtype dtype;
    i32 ndim;
    i64 dim[4]; /* row-major, dim[ndim-1] fastest */
    void *data;
};

size_t dtype_size(enum dtype d);
const char *dtype_name(enum dtype d); /* "F32" */
bool dtype_find(const char *name, enum dtype *out);
i64 tens_count(const struct tens *t); /* elements; 1 for a scalar */

struct meta { /* an entry of __metadata__: string to string */
    const char *key, *value;
};

struct st_file {
    i32 ntens, nmeta;
    struct tens *tens; /* in the order of the file; data is aligned for its type */
    struct meta *meta;
    const char *path;
    void *data; /* everything after the header */
    struct arena arena;
};

/* E702, E703 if it cannot be written; the old file then stays. E1 if two tensors have the same name. */
err st_write(const char *path, const struct tens *tens, i32 ntens, const struct meta *meta, i32 nmeta);
/* E701 if unreadable; E901 with the position and the problem if invalid. Checks every rule of the format: sizes, contiguous
 * ranges without overlap, unique names. At most 4 dimensions, 16 MiB of header, 16384 tensors. */
err st_read(const char *path, struct st_file **out);
void st_free(struct st_file *f);
const struct tens *st_find(const struct st_file *f, const char *name); /* NULL = absent */
const char *st_meta(const struct st_file *f, const char *key);         /* NULL = absent */

#endif
