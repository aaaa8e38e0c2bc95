/* share.h - data that one process reads and others of its host map: large arrays by their place in its files, the rest as bytes.
 *
 *     giver    series --series_share--> | head | fields, texts, places of arrays |     a file in memory
 *     taker    that file --series_share--> series, whose arrays are those of the giver, read only
 *
 * One function for each struct walks its fields in both directions, so what is written and what is read cannot differ.  Errors
 * stay in `e`: a walk goes on after the first one and does nothing. */
#ifndef STRETTO_DATA_SHARE_H
#define STRETTO_DATA_SHARE_H

#include "base/arena.h"
#include "base/str.h"

struct share {
    bool gives;
    err e;
    struct str out;      /* gives */
    const char *at, *end; /* takes: the bytes that are not read yet */
    void *map;
    size_t bytes;
};

/* What another process needs to open the file. */
struct share_place {
    i32 pid, fd; /* fd -1 = nothing is given */
    i64 bytes;
    u64 token;
};

void share_give(struct share *x);                                      /* begins; arrays were made within spill_share */
err share_publish(struct share *x, struct share_place *out, int *fd); /* ends; *fd is closed when all have taken */
/* Begins to take.  E701: the system does not let this process open it. */
err share_open(struct share *x, const struct share_place *at);
err share_close(struct share *x); /* ends; the error of the walk, E1 if bytes are left */

void share_bytes(struct share *x, void *p, i64 n);
/* n elements that the taker keeps in the arena; NULL stays NULL. */
void share_list(struct share *x, struct arena *a, void **list, i64 n, size_t size);
void share_text(struct share *x, struct arena *a, const char **text);
void share_texts(struct share *x, struct arena *a, const char ***list, i64 n);
/* An array of spill_new: mapped, or copied where it is small.  True if the taker has mapped it, and must not write it. */
bool share_array(struct share *x, void **array, i64 n, size_t size);

#endif
