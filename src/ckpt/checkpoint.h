/* checkpoint.h - training checkpoints: finding, verifying and reading them, bit-exact.
 *
 *     RUN/checkpoints/000000000300.ckpt/     the caller's number, increasing from checkpoint to checkpoint
 *     RUN/checkpoints/000000000400.part/     being written, or left by a process that died
 *
 *     TRY(ckpt_newest(dir, &passed, &c));    the newest intact one; which ones were skipped, and why
 *     TRY(ckpt_take(c, item, COUNT(item)));
 *     ckpt_close(c);
 *
 * A name ending in .ckpt is complete: the folder is renamed after its MANIFEST (manifest.h) and all shards have been verified.
 * All ranks write it (saver.h); any number of ranks can read it. A file N.ckpt is the older format, one safetensors file; it is
 * read but never written. */
#ifndef STRETTO_CKPT_CHECKPOINT_H
#define STRETTO_CKPT_CHECKPOINT_H

#include "base/str.h"
#include "ckpt/safetensors.h"

enum { CKPT_SCHEMA = 2 }; /* "stretto.checkpoint" of a MANIFEST; 1 = a single file */

struct ckpt_item { /* a flat tensor */
    const char *name;
    enum dtype dtype;
    void *p;
    i64 n; /* elements */
};

static inline i64 ckpt_item_bytes(const struct ckpt_item *i) { return i->n * (i64)dtype_size(i->dtype); }

/* Distribution of data: elements [lo,hi) of an item are in this shard. Sorted by item, then by element. */
struct ckpt_piece {
    i32 item, shard;
    i64 lo, hi;
};
struct ckpt_pieces {
    const struct ckpt_piece *piece;
    i32 n, shards;
};

enum ckpt_state { CKPT_WHOLE, CKPT_PART };
err ckpt_path(const char *dir, i64 number, enum ckpt_state state, char path[4096]); /* E702 if it is too long */

/* Removes all checkpoints of dir (for a new run); succeeds if there are none. */
err ckpt_clear(const char *dir);
/* Removes unfinished checkpoints. */
err ckpt_sweep(const char *dir);
/* Keeps the newest `keep` checkpoints up to `number`; removes larger numbers, which belong to an abandoned continuation. */
err ckpt_trim(const char *dir, i64 number, i32 keep);

/* The k-th newest checkpoint of dir, k from 0. E705 if there are fewer. */
err ckpt_find(const char *dir, i32 k, char path[4096], i64 *number);

i64 ckpt_number_of(const char *name); /* of "000000000300.ckpt"; -1 = it is no such name */
/* Calls each for the names of the files of a checkpoint until it fails. */
err ckpt_files(const char *path, err (*each)(void *self, const char *name), void *self);

struct ckpt;
/* E701 if a part cannot be read, E901 if one is damaged; the message names the file. */
err ckpt_open(const char *path, struct ckpt **out);
/* Opens the newest intact checkpoint. passed (may be NULL): one line per newer, damaged one with the reason. If all are
 * damaged, returns the error of the newest. */
err ckpt_newest(const char *dir, struct str *passed, struct ckpt **out);
const char *ckpt_name(const struct ckpt *c);  /* its path */
i64 ckpt_number(const struct ckpt *c);        /* -1 if its name is not a number */
/* Reads the items: E901 if one is missing or has another size; then none is modified. */
err ckpt_take(const struct ckpt *c, const struct ckpt_item *item, i32 nitem);
void ckpt_close(struct ckpt *c); /* NULL is allowed */

#endif
