/* search.h - a training of k-means: restarts, of which the best one is kept; kmeans.c runs them, state.c saves and restores. */
#ifndef STRETTO_LEARN_KMEANS_SEARCH_H
#define STRETTO_LEARN_KMEANS_SEARCH_H

#include "learn/kmeans/kmeans.h"
#include "learn/snapshots.h"

struct search {
    struct kmeans *f;
    struct lloyd l;
    struct batches batches; /* rows 0 = all rows in each iteration */
    struct snapshots shots;
    bool seeded;     /* the model of l holds the centers that the next restart begins with */
    i64 most;        /* iterations of a restart, at most */
    i64 from, done;  /* iterations before the restart's first one of this run; iterations that are done */
};

/* state.c.  For snapshots_turn; takes the state of a resumed run, E901. */
err kmeans_list_state(void *search, struct snapshot *to);
err kmeans_take_state(struct search *s);

#endif
