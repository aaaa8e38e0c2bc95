/* devices.h - the counts of T_GR on the devices of --device (learn/offload.h).
 *
 *     heap of a device   | bins of all inputs [ninput][rows] | lane 0: entries, inputs, partial counts | lane 1: .. |
 *     partition          the rows of an open node, of which there are few large and many small ones; pieces are parts of its rows
 *
 * Bins are copied to a device once, the entries of a piece with it: splits on the cores permute them in each stage.  Counts are
 * integers, so trees are the same on whatever device. */
#ifndef STRETTO_LEARN_FOREST_DEVICES_H
#define STRETTO_LEARN_FOREST_DEVICES_H

#include "learn/forest/tree.h"
#include "learn/offload.h"

/* A node whose rows are counted at `slots` inputs. */
struct count_node {
    const struct entry *entry; /* [n] */
    i64 n;
    i32 slots;
    const i32 *input;          /* [slots] */
    char *counts;              /* [slots] blocks of counts_bytes, which the counts are added to */
};

struct shared_counts;
/* slots: most inputs of a node. */
err shared_counts_open(const struct tree_data *d, i32 slots, const struct resources *use, struct shared_counts **out);
void shared_counts_close(struct shared_counts *s); /* NULL is fine */
err shared_counts_run(struct shared_counts *s, const struct count_node *node, i32 n);
const struct offload *shared_counts_offload(const struct shared_counts *s);

#endif
