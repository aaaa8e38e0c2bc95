/* pack.h - recurrent layers in PyTorch's layout, into and out of the panels of the kernels: for tests and benchmarks. */
#ifndef STRETTO_TESTS_KERN_PACK_H
#define STRETTO_TESTS_KERN_PACK_H

#include "kern/kern.h"

/* One layer in PyTorch's layout: w_ih [G*H][I], w_hh [G*H][H], b_ih, b_hh [G*H]; gates lstm i,f,g,o, gru r,z,n. cell_pack adds
 * the two biases, except for gru's n. cell_unpack (of weights or of gradients) writes the sum to b_ih and zero to b_hh, except
 * for gru's n. (For gradients PyTorch's db_hh equals db_ih wherever the biases are added.) */
struct cell_canon {
    f32 *w_ih, *w_hh, *b_ih, *b_hh;
};
void cell_pack(enum cell_kind kind, i32 I, i32 H, const struct cell_canon *from, f32 *w, f32 *bias);
void cell_unpack(enum cell_kind kind, i32 I, i32 H, const f32 *w, const f32 *bias, const struct cell_canon *to);

#endif
