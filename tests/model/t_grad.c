/* t_grad.c - gradients of whole networks against central differences of the f64 twin; losses against the twin's value. */
#include "grad.h"

static void check(const struct net *n, const struct kern *k, i32 B, i32 grain) { grad_check(n, k, B, grain, NULL, 5e-6); }

static const struct shape shapes[] = {
    /* B grain T  I   H  steps w vocab nk */
    {1, 1, 1, 1, 1, 1, 1, 0, 0},   {5, 2, 3, 4, 3, 2, 5, 3, 0},  {7, 4, 2, 17, 16, 3, 3, 2, 2},
    {3, 8, 4, 3, 17, 2, 17, 5, 1}, {9, 3, 5, 2, 5, 1, 4, 1, 17}, {4, 2, 2, 5, 2, 4, 2, 300, 0},
};

TEST(long_net_gradient_equals_twin_every_cell_and_shape) {
    static const char *const loss[] = {"loss_mse", "loss_mae", "loss_quantile"};
    for (i32 cell = 0; cell < cell_count(); cell++)
        for (u32 s = 0; s < COUNT(shapes); s++) {
            struct net n;
            nets_long(&n, shapes[s], (enum cell_kind)cell, loss[((u32)cell + s) % 3], s % 2 ? 0.3f : 0);
            check(&n, kern_best(), shapes[s].B, shapes[s].grain);
        }
}

TEST(short_net_gradient_equals_twin_every_cell_and_shape) {
    for (i32 cell = 0; cell < cell_count(); cell++)
        for (u32 s = 0; s < COUNT(shapes); s++) {
            struct net n;
            nets_short(&n, shapes[s], (enum cell_kind)cell, s % 2 ? "loss_mse" : "loss_quantile");
            check(&n, kern_best(), shapes[s].B, shapes[s].grain);
        }
}

TEST(mixed_net_gradient_equals_twin_every_cell_and_shape) {
    for (i32 cell = 0; cell < cell_count(); cell++)
        for (u32 s = 0; s < COUNT(shapes); s++) {
            struct net n;
            nets_mixed(&n, shapes[s], (enum cell_kind)cell);
            check(&n, kern_best(), shapes[s].B, shapes[s].grain);
        }
}

TEST(gradient_equals_twin_on_every_instruction_set) {
    for (i32 a = 0; a < KERN_NARCH; a++) {
        const struct kern *k = kern_get((enum kern_arch)a);
        struct net n;
        nets_long(&n, shapes[3], CELL_LSTM, "loss_mse", 0.5f);
        if (k) check(&n, k, 6, 4);
        nets_mixed(&n, shapes[2], CELL_GRU);
        if (k) check(&n, k, 3, 3);
        for (i32 cell = CELL_NKIND; cell < cell_count() && k; cell++) {
            nets_long(&n, shapes[3], (enum cell_kind)cell, "loss_mse", 0.5f);
            check(&n, k, 6, 4);
            nets_mixed(&n, shapes[2], (enum cell_kind)cell);
            check(&n, k, 3, 3);
        }
    }
}

/* Few grains of many rows: backward and dW take turns on slices of time. */
static const struct shape wide = {260, 256, 5, 2, 3, 2, 2, 0, 0};

TEST(gradient_in_slices_of_time_equals_twin_every_cell) {
    for (i32 cell = 0; cell < cell_count(); cell++)
        for (i32 bf16 = 0; bf16 < 2; bf16++) {
            struct net n;
            if (bf16 && !cell_at(kern_best(), (enum cell_kind)cell, PREC_BF16)) continue;
            nets_precision = bf16 ? PREC_BF16 : PREC_F32;
            nets_short(&n, wide, (enum cell_kind)cell, "loss_mse");
            check(&n, kern_best(), wide.B, wide.grain);
            nets_precision = PREC_F32;
        }
}

T_MAIN(cmocka_unit_test(long_net_gradient_equals_twin_every_cell_and_shape),
       cmocka_unit_test(short_net_gradient_equals_twin_every_cell_and_shape),
       cmocka_unit_test(mixed_net_gradient_equals_twin_every_cell_and_shape),
       cmocka_unit_test(gradient_equals_twin_on_every_instruction_set),
       cmocka_unit_test(gradient_in_slices_of_time_equals_twin_every_cell))
