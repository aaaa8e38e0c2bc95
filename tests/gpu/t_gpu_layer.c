/* t_gpu_layer.c - struct kern_device of every device of this machine: losses, dropout, optimisers and embedding tables against
 * plain loops. */
#include "gpu/cards.h"

#include "base/mem.h"
#include "base/rng.h"
#include "kern/device.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ losses -------------------------------------------------- */

static const f32 quantile_[] = {0.1f, 0.5f, 0.9f};

static f64 loss_of(enum loss_kind kind, f64 e, f64 q) {
    return kind == LOSS_MSE ? e * e : kind == LOSS_MAE ? fabs(e) : e * (e > 0 ? 2 * (1 - q) : -2 * q);
}

static f64 slope_of(enum loss_kind kind, f64 e, f64 q) {
    const f64 above = kind == LOSS_MAE ? 1 : 2 * (1 - q), below = kind == LOSS_MAE ? -1 : -2 * q;
    return kind == LOSS_MSE ? 2 * e : e > 0 ? above : e < 0 ? below : 0;
}

/* The plain loop over one value of each row and quantile. */
static void loss_twin(const struct device_loss *l, f64 *sum, f32 *slope) {
    const i64 Fp = round_up(l->F, LANES), Ip = round_up(l->F * l->Q, LANES);
    for (i32 t = l->t0; t < l->t1; t++)
        for (i32 b = l->b0; b < l->b1; b++) {
            const i64 at = (i64)t * l->B + b;
            for (i32 i = 0; i < Ip; i++) {
                const i64 cell = at * Fp + i % l->F;
                const bool real = i < l->F * l->Q;
                const f64 base = l->base ? (f64)l->base[cell] : 0, q = real ? (f64)l->quantile[i / l->F] : 0;
                f64 e = real ? (f64)l->pred[at * Ip + i] + base - (f64)l->target[cell] : 0;
                if (isnan(e)) e = 0;
                sum[(b + l->row0) / l->grain] += loss_of(l->kind, e, q) / l->Q;
                slope[at * Ip + i] = (f32)(real ? slope_of(l->kind, e, q) * (f64)l->scale : 0);
            }
        }
}

static void one_loss(enum loss_kind kind, i32 F, i32 Q, bool based, i32 row0) {
    enum { T = 5, B = 13, MICRO = 8 };
    const i64 Fp = round_up(F, LANES), Ip = round_up(F * Q, LANES), TB = (i64)T * B;
    f32 *pred = noise(TB * Ip, 20), *target = noise(TB * Fp, 21), *base = noise(TB * Fp, 22), *slope = noise(TB * Ip, 23);
    f64 want[MICRO] = {0}, got[MICRO];
    for (i64 i = 0; i < TB * Fp; i += 5) target[i] = NAN;
    room_reset();
    struct device_loss h = {.kind = kind, .F = F, .Q = Q, .t1 = T, .b1 = B, .B = B, .pred = pred, .target = target,
                            .base = based ? base : NULL, .quantile = quantile_, .scale = 0.3f, .grain = 4, .row0 = row0}, d = h;
    d.pred = up(pred, TB * Ip), d.target = up(target, TB * Fp), d.base = based ? up(base, TB * Fp) : NULL;
    d.slope = up(slope, TB * Ip), d.sum = up_bytes(want, sizeof want);
    loss_twin(&h, want, slope);
    gpu_kern()->device->loss_slope(&d);
    d.t1 = 2, gpu_kern()->device->loss_sum(&d), d.t0 = 2, d.t1 = T, gpu_kern()->device->loss_sum(&d);
    gpu_get(got, sizeof got, d.sum, sizeof got, sizeof got, 1);
    for (i32 g = 0; g < MICRO; g++) assert_true(fabs(got[g] - want[g]) <= 1e-6 * fabs(want[g]));
    near_device("slope of a loss", d.slope, slope, TB * Ip);
    mem_free(pred), mem_free(target), mem_free(base), mem_free(slope);
}

EACH_CARD(losses_equal_the_plain_loop) {
    for (enum loss_kind kind = LOSS_MSE; kind <= LOSS_QUANTILE; kind++)
        for (i32 F = 1; F <= 33; F += 16)
            for (i32 based = 0; based < 2; based++) one_loss(kind, F, kind == LOSS_QUANTILE ? 3 : 1, based, 8 * based);
}

/* ------------------------------------------------------------------ dropout, optimisers, tables ----------------------------- */

static u32 mask_twin(u64 seed, u32 step, u64 place, u32 drop) {
    u32 w[8], mask = 0;
    rng_words(seed, RNG_DROPOUT, step, place, w), rng_words(seed, RNG_DROPOUT, step, place + 1, w + 4);
    for (u32 i = 0; i < LANES; i++) mask |= (u32)((w[i / 2] >> (i % 2 * 16) & 0xffff) >= drop) << i;
    return mask;
}

EACH_CARD(dropout_draws_the_masks_of_the_host) {
    enum { PANELS = 333 };
    const i64 n = PANELS * LANES, place = (i64)3 << 48 | 7000;
    f32 *x = noise(n, 30), *want = floats(n);
    struct device_dropout a = {.panels = PANELS, .place = place, .seed = 0x123456789abcdef0u, .step = 17, .drop = 20000,
                               .scale = 1.5f, .draw = true};
    for (i64 i = 0; i < n; i++)
        want[i] = mask_twin(a.seed, a.step, (u64)place + 2 * (u64)(i / LANES), a.drop) >> (i % LANES) & 1 ? x[i] * a.scale : 0;
    a.x = up(x, n), a.y = room(n * 4), a.mask = room(PANELS * 4);
    gpu_kern()->device->dropout(&a);
    near_device("dropout", a.y, want, n);
    a.draw = false, a.y = room(n * 4);
    gpu_kern()->device->dropout(&a);
    near_device("dropout again", a.y, want, n);
    mem_free(x), mem_free(want);
}

/* The rules of model/optim in double precision. */
static void optim_twin(const struct device_optim *o, f32 *theta, const f32 *grad, f32 *s0, f32 *s1) {
    const f64 b1 = (f64)o->beta1, b2 = (f64)o->beta2, lr = (f64)o->lr, decay = (f64)o->weight_decay, eps = (f64)o->eps;
    const f64 fix1 = 1 - pow(b1, (f64)o->step), fix2 = 1 - pow(b2, (f64)o->step);
    for (i64 i = 0; i < o->n; i++) {
        f64 x = (f64)theta[i], s = (f64)s0[i], g = (f64)grad[i] * (f64)o->grad_scale + (o->rule == RULE_ADAMW ? 0 : decay * x);
        if (o->rule == RULE_ADAM || o->rule == RULE_ADAMW) {
            const f64 v = b2 * (f64)s1[i] + (1 - b2) * g * g;
            s = b1 * s + (1 - b1) * g;
            x -= (o->rule == RULE_ADAMW ? lr * decay * x : 0) + lr * (s / fix1) / (sqrt(v / fix2) + eps);
            s1[i] = (f32)v;
        } else {
            s = o->rule == RULE_SGD ? (f64)o->momentum * s + g : o->rule == RULE_RMSPROP ? b2 * s + (1 - b2) * g * g : s + g * g;
            x -= o->rule == RULE_SGD ? lr * s : lr * g / (sqrt(s) + eps);
        }
        theta[i] = (f32)x, s0[i] = (f32)s;
    }
}

EACH_CARD(optimisers_equal_the_formulas) {
    enum { N = 2500 };
    for (enum optim_rule rule = RULE_SGD; rule <= RULE_ADAGRAD; rule++) {
        f32 *theta = noise(N, 40), *grad = noise(N, 41), *s0 = noise(N, 42), *s1 = noise(N, 43);
        for (i32 i = 0; i < N; i++) s0[i] = fabsf(s0[i]), s1[i] = fabsf(s1[i]);
        room_reset();
        struct device_optim a = {.rule = rule, .n = N, .lr = 0.01f, .grad_scale = 0.7f, .weight_decay = 0.1f, .momentum = 0.9f,
                                 .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-6f, .step = 3};
        a.theta = up(theta, N), a.grad = up(grad, N), a.s0 = up(s0, N), a.s1 = up(s1, N);
        gpu_kern()->device->optimise(&a);
        optim_twin(&a, theta, grad, s0, s1);
        near_device("theta", a.theta, theta, N), near_device("s0", a.s0, s0, N), near_device("s1", a.s1, s1, N);
        mem_free(theta), mem_free(grad), mem_free(s0), mem_free(s1);
    }
}

static void one_table(i32 Fp, i32 B, i32 b0, i32 b1) {
    enum { T = 6, VOCAB = 11 };
    const i64 n = (i64)T * B;
    f32 *table = noise(VOCAB * Fp, 50), *y = noise(n * Fp, 51), *sum = copy_of(table, VOCAB * Fp), *bits = floats(n);
    u8 marks[VOCAB * 64] = {0}, got[VOCAB * 64];
    i32 *ids = (i32 *)(void *)bits;
    for (i64 i = 0; i < n; i++) ids[i] = (i32)(rng_uniform(3, RNG_TEST, 52, (u64)i) * (VOCAB + 2)) - 1; /* two are unknown */
    room_reset();
    struct device_embed a = {.vocab = VOCAB, .Fp = Fp, .t0 = 1, .t1 = T, .b0 = b0, .b1 = b1, .B = B, .ids = up_bytes(ids, n * 4)};
    a.table = up(table, VOCAB * Fp), a.y = up(y, n * Fp), a.marks = up_bytes(marks, sizeof marks);
    gpu_kern()->device->embed_bwd(&a);
    for (i64 r = B; r < n; r++) {
        if (r % B < b0 || r % B >= b1 || ids[r] < 0 || ids[r] >= VOCAB) continue;
        host()->add(Fp, sum + (i64)ids[r] * Fp, y + r * Fp);
        memset(marks + (i64)ids[r] * Fp / LANES, 1, (size_t)Fp / LANES);
    }
    f32 *rows = down(a.table, VOCAB * Fp);
    assert_memory_equal(rows, sum, (size_t)(VOCAB * Fp) * sizeof *rows); /* the same order */
    gpu_get(got, sizeof got, a.marks, sizeof got, sizeof got, 1);
    assert_memory_equal(got, marks, sizeof got);
    for (i64 r = B; r < n; r++)
        if (r % B >= b0 && r % B < b1)
            copy_or_zero(y + r * Fp, ids[r] >= 0 && ids[r] < VOCAB ? sum + (i64)ids[r] * Fp : NULL, Fp);
    gpu_kern()->device->embed_fwd(&a);
    near_device("rows of a table", a.y, y, n * Fp);
    mem_free(table), mem_free(y), mem_free(sum), mem_free(bits), mem_free(rows);
}

EACH_CARD(tables_are_read_and_their_gradients_added_in_order) {
    one_table(16, 1, 0, 1), one_table(48, 13, 2, 9), one_table(272, 90, 0, 90);
}

TEST(devices_are_closed) { close_cards(); }

T_MAIN(cmocka_unit_test(losses_equal_the_plain_loop), cmocka_unit_test(dropout_draws_the_masks_of_the_host),
       cmocka_unit_test(optimisers_equal_the_formulas), cmocka_unit_test(tables_are_read_and_their_gradients_added_in_order),
       cmocka_unit_test(devices_are_closed))
