/* learners.h - launches the kernels of learners on the lane of the calling thread (learn/offload.h).
 *
 * All addresses are the device's; nothing is returned.  Each kernel has its twin on the host, which the tests compare. */
#ifndef STRETTO_GPU_LEARNERS_H
#define STRETTO_GPU_LEARNERS_H

#include "base/bits.h"

/* k-means: rows [from, to) of x [..][d] -> label [..], see text/args.h.  panel [groups][d][LANES], start [groups][LANES]. */
struct gpu_nearest {
    const f32 *x, *panel, *start;
    i32 *label;
    i64 from, to;
    i32 d, groups;
    f32 margin, share;
};
void gpu_nearest(const struct gpu_nearest *n);

/* Forests: counts by bin of n entries at some inputs, in chunks; see text/args.h.  No sum of a chunk exceeds an u32 where weights
 * are at most 15. */
enum { GPU_HISTOGRAM_CHUNK = 1 << 15, GPU_HISTOGRAM_BINS = 256 };
struct gpu_histogram {
    const u8 *bin; /* the bin of a row at an input: bin[row + bin_step * input] */
    i64 bin_step;
    const void *entry; /* [n] u32 row, u32 weight << 24 | class or value */
    const i32 *input;  /* [ninput] */
    i32 n, ninput, nclass;
    u32 *part;
};
static inline i32 gpu_histogram_chunks(i32 n) { return ceil_div(n, GPU_HISTOGRAM_CHUNK); }
static inline i64 gpu_histogram_cells(i32 nclass) { return (i64)GPU_HISTOGRAM_BINS * (nclass > 0 ? nclass : 3); }
void gpu_histogram(const struct gpu_histogram *h);

/* Viterbi paths of n sequences; see text/args.h.  L <= 256. */
struct gpu_viterbi {
    const i32 *trans, *start, *emit; /* [L][Lp] packed; [L], [..][Lp] scores << shift */
    const i32 *first, *word;         /* [n + 1]; [first[n]] rows of emit */
    u8 *back, *path;                 /* [first[n]][L], [first[n]] */
    i32 n, L, Lp, shift;
};
void gpu_viterbi(const struct gpu_viterbi *v);

/* Sentences of a CRF; see text/args.h.  L <= GPU_CHAIN_LABELS. */
enum { GPU_CHAIN_LABELS = 256 };
struct gpu_chain {
    const f32 *w;                          /* rows of attributes */
    const i64 *at;
    const i32 *attribute, *gold;           /* gold: of the pass alone */
    i64 token0;
    const i32 *first, *block;              /* [n + 1], [blocks + 1]; block: of the pass */
    const f32 *M, *back;
    f32 *u, *a, *d, *note, *pair;          /* u alone for paths */
    u8 *from, *path;
    i32 tokens, n, blocks, L, Lp;
};
void gpu_chain_pass(const struct gpu_chain *c);  /* forward-backward: M = e^{A - top}, back: its transpose */
void gpu_chain_paths(const struct gpu_chain *c); /* M = A */

#endif
