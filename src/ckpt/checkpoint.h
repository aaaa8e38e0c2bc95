/* checkpoint.h - all that the rest of a training run depends on, as one safetensors file of packed vectors: read back bit-exact.
 *
 *     RUN/checkpoints/000000000300.ckpt      the number is the caller's: it grows from checkpoint to checkpoint
 *
 *     struct ckpt_item item[] = {{"theta", CKPT_F32, store.theta, P}, {"exp_avg", CKPT_F32, store.state[0], P},
 *                                {"step", CKPT_I64, &state.step, 1}, {"best", CKPT_F64, &state.best, 1}};
 *     TRY(ckpt_write(dir, state.step, item, COUNT(item), note, 2));
 *     TRY(ckpt_resume(dir, item, COUNT(item), &note, &number));
 *
 * Written to a temporary name, synced, renamed; older ones beyond `keep`, and those with larger numbers, go only after that. */
#ifndef STRETTO_CKPT_CHECKPOINT_H
#define STRETTO_CKPT_CHECKPOINT_H

#include "base/str.h"
#include "ckpt/safetensors.h"

enum { CKPT_SCHEMA = 1 }; /* metadata "stretto.checkpoint" */
enum ckpt_kind { CKPT_F32, CKPT_F64, CKPT_I64, CKPT_BYTES };

struct ckpt_item {
    const char *name;
    enum ckpt_kind kind;
    void *p;
    i64 n; /* elements (bytes for CKPT_BYTES) */
};

/* note: free text (JSON) or NULL.  Makes dir when it is not there. */
err ckpt_write(const char *dir, i64 number, const struct ckpt_item *item, i32 nitem, const char *note, i32 keep);

/* Remove all checkpoints of dir (a run that begins anew); fine when there are none. */
err ckpt_clear(const char *dir);

/* The k-th newest checkpoint of dir, k from 0.  E705 when there are not that many. */
err ckpt_find(const char *dir, i32 k, char path[4096], i64 *number);

/* Fill the items from a file: E901 when it is damaged, or an item is missing or has another size; then no item was touched.
 * note may be NULL; otherwise the text is appended. */
err ckpt_read(const char *path, const struct ckpt_item *item, i32 nitem, struct str *note);

/* ckpt_read of the newest checkpoint that is whole: a damaged one is passed over when an older one reads well. */
err ckpt_resume(const char *dir, const struct ckpt_item *item, i32 nitem, struct str *note, i64 *number);

/* Only the note of the newest whole checkpoint: what run is this? */
err ckpt_note(const char *dir, struct str *note);

#endif
