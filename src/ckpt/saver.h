/* saver.h - asynchronous writing of checkpoints, one saver per rank: copies at a step boundary, then a thread writes while
 * training continues.
 *
 *     every rank   begin: copy own pieces |~~ thread: shard .tmp, fsync, rename, read back ~~| checksum --.
 *                                          training continues                                             |  the caller gathers
 *     rank 0       commit: |~~ thread: all shards visible? MANIFEST, read back, N.part -> N.ckpt, trim ~~|   all checksums
 *
 * One checkpoint is in progress at a time. The saver sends no messages: the caller brings the checksums to rank 0. */
#ifndef STRETTO_CKPT_SAVER_H
#define STRETTO_CKPT_SAVER_H

#include "ckpt/checkpoint.h"

enum { SAVER_WHO = 96 };

/* The result of one rank's part. */
struct ckpt_sum {
    i64 bytes;
    u32 crc;
    char who[SAVER_WHO];   /* "rank 1 on host b" */
    struct err_record why; /* code 0 = success */
};

struct ckpt_saver;
/* room: bytes to preallocate for the copy; it grows if necessary. */
err ckpt_saver_new(const char *dir, i32 rank, const char *who, i64 room, struct ckpt_saver **out);
void ckpt_saver_free(struct ckpt_saver *s); /* waits for the thread, removes unfinished files; NULL is allowed */

/* Arguments of begin, which copies and returns. pieces: of all ranks; run (may be NULL): informational JSON object; number and
 * step of the saved state. */
struct ckpt_save {
    i64 number, step;
    const struct ckpt_item *item;
    i32 nitem, keep;
    struct ckpt_pieces pieces;
    const char *run;
};
err ckpt_saver_begin(struct ckpt_saver *s, const struct ckpt_save *what);
bool ckpt_saver_busy(const struct ckpt_saver *s);               /* the thread is running */
void ckpt_saver_sum(struct ckpt_saver *s, struct ckpt_sum *out); /* waits for the thread */
/* On rank 0, with the results of all ranks: publishes the checkpoint. ckpt_saver_sum then returns the outcome. */
void ckpt_saver_commit(struct ckpt_saver *s, const struct ckpt_sum *all);
/* Abandons the current checkpoint and removes this rank's part. */
void ckpt_saver_drop(struct ckpt_saver *s);
/* Marks the current checkpoint as committed; the next one may begin. */
void ckpt_saver_done(struct ckpt_saver *s);
i64 ckpt_saver_bytes(const struct ckpt_item *item, const struct ckpt_pieces *p, i32 rank); /* size of that rank's shard */

#endif
