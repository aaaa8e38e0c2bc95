/* devices.h - the labels of k-means on the devices of --device (learn/offload.h).
 *
 *     heap of a device   | rows f [n][d] | label [n] | panel [groups][d][LANES], start [groups][LANES] |
 *
 * A row is copied to a device once, with the first piece that holds it.  The device multiplies the row with all centers in f32
 * and names the center of the least product where no other one lies within the rounding error.  The host decides the other rows
 * in f64, as it does for its own: so labels are those of plain Lloyd, on whatever device. */
#ifndef STRETTO_LEARN_KMEANS_DEVICES_H
#define STRETTO_LEARN_KMEANS_DEVICES_H

#include "learn/kmeans/assign.h"
#include "learn/offload.h"

struct shared_assign;
/* Points, centers and track are the caller's; they stay until the end. */
err shared_assign_open(const struct points *p, const struct centers *c, struct track *t, const struct resources *use,
                       struct shared_assign **out);
void shared_assign_close(struct shared_assign *s); /* NULL is fine */
/* Labels of all rows for the centers as they are; adds to *count. */
err shared_assign_run(struct shared_assign *s, struct assign_count *count);
const struct offload *shared_assign_offload(const struct shared_assign *s);

#endif
