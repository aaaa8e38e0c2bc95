/* twin64.h - reference of the kernel tests: the three recurrent cells in f64 and PyTorch's layout.
 *
 * x [T][B][I]; w_ih [G*H][I], w_hh [G*H][H], b_ih, b_hh [G*H]; h0, c0, hT, cT [B][H]; y, dy [T][B][H]. Row b has the steps
 * 0..steps[b]-1. Backward overwrites every gradient. */
#ifndef STRETTO_TESTS_KERN_TWIN64_H
#define STRETTO_TESTS_KERN_TWIN64_H

#include "kern/kern.h"

struct twin {
    enum cell_kind kind;
    i32 T, B, I, H;
    const i32 *steps; /* [B] */
    f64 *x, *w_ih, *w_hh, *b_ih, *b_hh, *h0, *c0;
    f64 *y, *hT, *cT;
    f64 *gate; /* [T][B][4][H] activated gates (gru: the fourth is the h-side n pre-activation) */
    f64 *c;    /* [T][B][H] lstm */
    f64 *dy, *dhT, *dcT;
    f64 *dx, *dw_ih, *dw_hh, *db_ih, *db_hh, *dh0, *dc0;
};

/* All arrays zeroed; steps is borrowed.  One call frees all. */
void twin_new(struct twin *w, enum cell_kind kind, i32 T, i32 B, i32 I, i32 H, const i32 *steps);
void twin_free(struct twin *w);
void twin_forward(struct twin *w);
void twin_backward(struct twin *w);
f64 twin_loss(const struct twin *w); /* sum of y*dy + hT*dhT + cT*dcT: its gradients are those of twin_backward */

#endif
