/* saver.h - one rank's part in writing checkpoints: copied at the border of a step, written by a thread while steps go on.
 *
 *     every rank   begin: copy own pieces |~~ thread: shard .tmp, fsync, rename, read back ~~| sum --.
 *                                          steps go on                                               |  all ranks' sums, by
 *     rank 0       commit: |~~ thread: all shards seen? MANIFEST, read back, N.part -> N.ckpt, older ones away ~~|   the caller
 *
 * One checkpoint is in flight at a time.  The saver knows no messages: the caller tells ranks apart and brings sums to rank 0. */
#ifndef STRETTO_CKPT_SAVER_H
#define STRETTO_CKPT_SAVER_H

#include "ckpt/checkpoint.h"

enum { SAVER_WHO = 96 };

/* What became of one rank's part. */
struct ckpt_sum {
    i64 bytes;
    u32 crc;
    char who[SAVER_WHO];   /* "rank 1 on host b" */
    struct err_record why; /* code 0 = well */
};

struct ckpt_saver;
/* room: bytes to have at hand for the copy; more are asked for when they are needed. */
err ckpt_saver_new(const char *dir, i32 rank, const char *who, i64 room, struct ckpt_saver **out);
void ckpt_saver_free(struct ckpt_saver *s); /* waits for the thread; what is unfinished is removed; NULL is fine */

/* Copy and go.  Pieces are those of all ranks, run (may be NULL) a JSON object for people; number and step: of what is saved. */
struct ckpt_save {
    i64 number, step;
    const struct ckpt_item *item;
    i32 nitem, keep;
    struct ckpt_pieces pieces;
    const char *run;
};
err ckpt_saver_begin(struct ckpt_saver *s, const struct ckpt_save *what);
bool ckpt_saver_busy(const struct ckpt_saver *s);               /* the thread is at work */
void ckpt_saver_sum(struct ckpt_saver *s, struct ckpt_sum *out); /* waits for the thread */
/* Rank 0, with the sums of all ranks: makes the checkpoint what readers look for.  Its sum then says how that went. */
void ckpt_saver_commit(struct ckpt_saver *s, const struct ckpt_sum *all);
/* The checkpoint in flight is of no use: this rank's part of it goes. */
void ckpt_saver_drop(struct ckpt_saver *s);
/* It is committed: the next one may begin. */
void ckpt_saver_done(struct ckpt_saver *s);
i64 ckpt_saver_bytes(const struct ckpt_item *item, const struct ckpt_pieces *p, i32 rank); /* of that rank's shard */

#endif
