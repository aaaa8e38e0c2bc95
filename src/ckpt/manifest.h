/* manifest.h - the MANIFEST of a checkpoint: one JSON file that lists its contents and is written last.
 *
 *     RUN/checkpoints/000000000300.ckpt/
 *         shard-000-of-003     raw little-endian elements, one piece after the other
 *         shard-001-of-003
 *         shard-002-of-003
 *         MANIFEST             {"stretto.checkpoint":2,"number":300,"world":3,"run":{..},
 *                               "shards":[{"bytes":4096,"crc32c":"0badcafe"},..],
 *                               "tensors":[{"name":"exp_avg","dtype":"F32","count":900,"pieces":[[0,300,0,1024],..]},..],
 *                               "crc32c":"12345678"}      of everything before ,"crc32c"
 *
 * A piece [from, to, shard, offset] locates elements [from,to) of a flat tensor. The pieces of a tensor are contiguous without
 * overlap, so the number of ranks that wrote it does not matter. */
#ifndef STRETTO_CKPT_MANIFEST_H
#define STRETTO_CKPT_MANIFEST_H

#include "base/arena.h"
#include "base/str.h"
#include "ckpt/checkpoint.h"

enum { SHARDS_MOST = 1024, SHARD_NAME = 32 };

struct manifest_piece {
    i64 lo, hi, at;
    i32 shard;
};

struct manifest_tensor {
    const char *name;
    enum dtype dtype;
    i64 n;
    i32 npiece;
    struct manifest_piece *piece;
};

struct manifest_shard {
    i64 bytes;
    u32 crc;
};

struct manifest {
    i64 number;
    i32 nshard, ntensor;
    struct manifest_shard *shard;
    struct manifest_tensor *tensor;
    const char *run; /* JSON object from the writer, informational; NULL = none */
    struct arena arena; /* owns all of the above */
};

void shard_name(i32 shard, i32 of, char out[SHARD_NAME]);
err shard_path(const char *folder, i32 shard, i32 of, char path[4096]); /* E702 if it is too long */

/* Computes the layout of items and pieces: offsets, shard sizes; checksums are still 0. run may be NULL. */
err manifest_new(i64 number, const struct ckpt_item *item, i32 nitem, const struct ckpt_pieces *p, const char *run,
                 struct manifest *out);
err manifest_text(const struct manifest *m, struct str *out);
/* E701 if it is missing; E901 if damaged, E902 if a newer version wrote it. */
err manifest_load(const char *path, struct manifest *out);
void manifest_free(struct manifest *m);
const struct manifest_tensor *manifest_find(const struct manifest *m, const char *name); /* NULL = absent */

#endif
