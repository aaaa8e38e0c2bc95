/* checkpoint.h - all that the rest of a training run depends on: found, verified and read back bit-exact.
 *
 *     RUN/checkpoints/000000000300.ckpt/     the number is the caller's: it grows from checkpoint to checkpoint
 *     RUN/checkpoints/000000000400.part/     being written, or left behind by somebody who died
 *
 *     TRY(ckpt_newest(dir, &passed, &c));    the newest whose every byte is what was written; which were passed over, and why
 *     TRY(ckpt_take(c, item, COUNT(item)));
 *     ckpt_close(c);
 *
 * A name that ends in .ckpt is whole: the folder gets it when its MANIFEST (manifest.h) and all shards have been verified.  It is
 * written by as many ranks as there were (saver.h) and read by any number.  A file N.ckpt is a checkpoint of before:
 * one safetensors file, read as well, never written. */
#ifndef STRETTO_CKPT_CHECKPOINT_H
#define STRETTO_CKPT_CHECKPOINT_H

#include "base/str.h"
#include "ckpt/safetensors.h"

enum { CKPT_SCHEMA = 2 }; /* "stretto.checkpoint" of a MANIFEST; 1 = a single file */
enum ckpt_kind { CKPT_F32, CKPT_F64, CKPT_I64, CKPT_BYTES, CKPT_KINDS };

struct ckpt_item { /* a flat tensor */
    const char *name;
    enum ckpt_kind kind;
    void *p;
    i64 n; /* elements (bytes for CKPT_BYTES) */
};

/* Who writes what: elements [lo,hi) of an item stand in this shard.  In order of items, and inside an item of elements. */
struct ckpt_piece {
    i32 item, shard;
    i64 lo, hi;
};
struct ckpt_pieces {
    const struct ckpt_piece *piece;
    i32 n, shards;
};

enum dtype ckpt_dtype(enum ckpt_kind kind);

enum ckpt_state { CKPT_WHOLE, CKPT_PART };
err ckpt_path(const char *dir, i64 number, enum ckpt_state state, char path[4096]); /* E702 when that is too long */

/* Remove all checkpoints of dir (a run that begins anew); fine when there are none. */
err ckpt_clear(const char *dir);
/* Remove what nobody finished. */
err ckpt_sweep(const char *dir);
/* The newest `keep` up to `number` stay; those with larger numbers are of a course that was given up. */
err ckpt_trim(const char *dir, i64 number, i32 keep);

/* The k-th newest checkpoint of dir, k from 0.  E705 when there are not that many. */
err ckpt_find(const char *dir, i32 k, char path[4096], i64 *number);

struct ckpt;
/* E701 when a part of it cannot be read, E901 when one is not what was written; the message names the file. */
err ckpt_open(const char *path, struct ckpt **out);
/* The newest whole one of dir.  passed (may be NULL): a line for each newer one, with the file and what is wrong.  When all are
 * damaged the failure is that of the newest. */
err ckpt_newest(const char *dir, struct str *passed, struct ckpt **out);
const char *ckpt_name(const struct ckpt *c);  /* its path */
i64 ckpt_number(const struct ckpt *c);        /* -1 when its name is no number */
/* Fill the items: E901 when one is missing or has another size; then no item was touched. */
err ckpt_take(const struct ckpt *c, const struct ckpt_item *item, i32 nitem);
void ckpt_close(struct ckpt *c); /* NULL is fine */

#endif
