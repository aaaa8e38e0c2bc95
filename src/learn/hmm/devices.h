/* devices.h - Viterbi paths of many sequences on the devices of --device (learn/offload.h).
 *
 *     heap of a device   | emissions [W][Lp], transitions, starts | lane 0: firsts, words, backpointers, paths | lane 1: .. |
 *     partition          sequences of about one length, longest first: a token of any of them costs the same
 *
 * Scores are integers, so paths are the same on whatever device. */
#ifndef STRETTO_LEARN_HMM_DEVICES_H
#define STRETTO_LEARN_HMM_DEVICES_H

#include "learn/hmm/hmm.h"
#include "learn/offload.h"

/* Labels of the sequences order[0, n), longest first, into path[first[k]].  on_host: of sequences order[from, to), by one thread
 * at a time, which may use the pool. */
struct shared_paths {
    const struct hmm *h;
    const struct hmm_rows *rows;
    const i32 *order;
    u8 *path;
    void *self;
    void (*on_host)(void *self, i32 from, i32 to);
};
err shared_paths_run(const struct shared_paths *p, const struct resources *use);

#endif
