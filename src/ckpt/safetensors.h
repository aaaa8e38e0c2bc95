/* safetensors.h - the file format of models and checkpoints: 8-byte length, JSON header, raw little-endian tensors.
 *
 * Files are written to a temporary name, synced and renamed.  Identical content gives identical bytes. */
#ifndef STRETTO_CKPT_SAFETENSORS_H
#define STRETTO_CKPT_SAFETENSORS_H

#include "base/arena.h"
#include "tens/tens.h"

struct meta {              /* an entry of __metadata__: string to string */
    const char *key, *value;
};

struct st_file {
    i32 ntens, nmeta;
    struct tens *tens;     /* data points into the mapping or the read buffer */
    struct meta *meta;
    struct arena arena;
    void *map;
    size_t map_size;
};

/* E702, E703 when it cannot be written; the old file is untouched then. */
err st_write(const char *path, const struct tens *tens, i32 ntens, const struct meta *meta, i32 nmeta);
/* E701 cannot be read; E901 with the byte position and what is wrong otherwise. */
err st_read(const char *path, struct st_file **out);
void st_free(struct st_file *f);
const struct tens *st_find(const struct st_file *f, const char *name); /* NULL = absent */
const char *st_meta(const struct st_file *f, const char *key);         /* NULL = absent */

#endif
