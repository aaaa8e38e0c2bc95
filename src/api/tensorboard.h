/* tensorboard.h - event files for TensorBoard: the measurements of a training as another sink of its events.
 *
 *     DIR/events.out.tfevents.SECONDS.HOST.PID     records: length, its checksum, an Event message, its checksum
 *
 * Tags: loss/train, loss/valid, lr, grad_norm, windows_per_s; of member k of an ensemble "member k/loss/train", of the last
 * training on all rows "refit/..".  A resumed run writes a file of its own, from its first step on. */
#ifndef STRETTO_API_TENSORBOARD_H
#define STRETTO_API_TENSORBOARD_H

#include "base/event.h"
#include "base/str.h"

struct tensorboard {
    int fd; /* -1 = not open */
    char path[4352];
    struct err_record failed; /* the first failure */
};

/* Makes the folder and a file in it. E702, E703. */
err tensorboard_open(struct tensorboard *t, const char *folder);
struct sink tensorboard_sink(struct tensorboard *t); /* t must outlive it */
err tensorboard_close(struct tensorboard *t);        /* the first failure; may be called twice */

#endif
