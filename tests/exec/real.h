/* real.h - batches and steps of training for tests that run real nets by different plans. */
#ifndef STRETTO_TESTS_EXEC_REAL_H
#define STRETTO_TESTS_EXEC_REAL_H

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "step/step.h"
#include "model/nets.h"

/* Recurrent layers of H, H - 1, .. hidden units with dropout after each, a head and a loss at every step.  ragged: sequences end
 * early. */
static inline void real_stack(struct net *n, enum cell_kind kind, i32 layers, i32 T, i32 H, bool ragged) {
    net_init(n);
    i32 x = nets_input(n, "x", T, 3, false), length = ragged ? nets_input(n, "length", 1, 1, true) : -1;
    for (i32 k = 0; k < layers; k++) {
        char name[24];
        snprintf(name, sizeof name, "lstm.%d", k);
        struct op_spec c = net_spec("recurrent", name, x), drop;
        c.cell = kind;
        c.hidden = H - k;
        c.in[2] = length;
        x = n->op[nets_add(n, &c)].out;
        snprintf(name, sizeof name, "dropout.%d", k);
        drop = net_spec("dropout", name, x);
        drop.dropout = 0.2f;
        x = n->op[nets_add(n, &drop)].out;
    }
    nets_loss(n, "loss_mse", nets_dense(n, "head", x, 2, ACT_NONE), T, 2, false);
    T_OK(net_check(n));
}

static inline i32 real_vocab(const struct net *n, i32 buf) {
    for (i32 l = 0; l < n->nop; l++)
        for (i32 i = 0; i < n->op[l].layer->nin; i++)
            if (n->op[l].spec.in[i] == buf) return imax(1, n->op[l].spec.vocab);
    return 1;
}

static inline void real_inputs(const struct net *n, i32 B, struct arena *a, f32 **input) {
    for (i32 i = 0; i < n->nbuf; i++)
        if (n->buf[i].input) assert_non_null(input[i] = arena_new(a, (size_t)buf_floats(&n->buf[i], B) * 4));
}

/* Numbers that depend on the step alone. */
static inline void real_fill(const struct net *n, f32 **input, i32 B, u32 step) {
    for (i32 i = 0; i < n->nbuf; i++) {
        const struct buf *b = &n->buf[i];
        if (!b->input) continue;
        for (i64 row = 0; row < (i64)b->T * B; row++)
            for (i32 f = 0; f < b->F; f++) {
                f32 u = rng_uniform(5, RNG_TEST, step * 64 + (u32)i, (u64)(row * b->F + f));
                if (!strcmp(b->name, "length"))
                    ((i32 *)(void *)input[i])[row] = imax(1, n->buf[0].T - (i32)row / 2); /* longest first */
                else if (b->ids)
                    ((i32 *)(void *)input[i])[row] = (i32)(u * (f32)real_vocab(n, i));
                else
                    input[i][row * buf_fp(b) + f] = u - 0.5f;
            }
    }
}

static inline struct step_args real_step(f32 **input, i32 B, u32 s) {
    struct step_args step = {.input = input, .loss_scale = 1.0f / (f32)B, .seed = 9, .step = s, .clip = 1};
    step.hyper = (struct optim_hyper){
        .lr = 1e-2f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .momentum = 0.9f, .weight_decay = 1e-3f, .step = s + 1};
    return step;
}

#endif
