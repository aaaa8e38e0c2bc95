/* bench_diag.c - the diagonal cells on one long sequence, one thread: sequential execution versus Newton (paragru, paralstm)
 * and the exact scan (minlstm), with the dense LSTM for comparison.
 *
 *     cmake --build BUILD --target bench_diag && BUILD/bench/time/bench_diag [T] [rounds]
 *
 * Per row: microseconds per step of the whole batch (best of the rounds), forward and backward without dW; Newton iterations
 * per block; off: largest difference of y from the sequential result of another instruction set (base), which shows the effect
 * of rounding alone. Weights are initial ones (state weights within 0.5) or larger (within 3): bistable units, as training may
 * produce. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/cell/diag.h"

enum { INPUTS = 8 };

struct bench {
    const struct cell *c;
    const struct cell_kern *k;
    struct cell_args box;
    f32 *memory, *y, *w, *want;
    i64 ny;
};

static f32 *take(f32 **at, i64 n) {
    f32 *p = *at;
    *at += round_up64(n, LANES);
    return p;
}

static f32 between(u32 what, i64 i, f32 most) { return (2 * rng_uniform(11, RNG_TEST, what, (u64)i) - 1) * most; }

static void weights(struct bench *b, f32 state) {
    const i32 I = INPUTS, H = b->box.H;
    for (i32 i = 0; i < cell_tensors(b->c); i++) {
        i32 rows, cols;
        cell_tensor(b->c, i, I, H, &rows, &cols);
        const f32 most = i < 2 && b->c->diagonal ? 1 / sqrtf(I + 1) : b->c->diagonal ? state : 1 / sqrtf((f32)H);
        for (i64 j = 0; j < (i64)rows * imax(1, cols); j++) {
            const i64 at = cell_place(b->c, i, I, H, (i32)(j / imax(1, cols)), (i32)(j % imax(1, cols)));
            b->w[at < 0 ? ~at : at] += between(10 + (u32)i, j, most);
        }
    }
}

/* Returns false if memory is refused. */
static bool open(struct bench *b, const struct cell *c, i32 T, i32 B, i32 H, f32 state) {
    const struct kern *k = kern_best();
    const i64 Hp = round_up(H, LANES), nx = (i64)T * B * LANES, nw = cell_packed_w(c, INPUTS, H), nb = cell_packed_bias(c, H);
    *b = (struct bench){.c = c, .k = cell_kernels(c, k, PREC_F32), .ny = (i64)T * B * Hp};
    const i64 act = b->k->act_floats(T, B, INPUTS, H), wt = b->k->wt_floats(INPUTS, H);
    const i64 all = act + 2 * nx + 3 * b->ny + nw + nb + wt + 8 * B * Hp + 256;
    if (mem_new((void **)&b->memory, all, sizeof *b->memory) < 0) return false;
    f32 *at = (f32 *)(((uintptr_t)b->memory + 63) / 64 * 64), *x = take(&at, nx), *dy, *turned;
    b->box = (struct cell_args){.T = T, .B = B, .I = INPUTS, .H = H, .x = x, .x_ld = LANES, .dx_ld = LANES};
    for (i64 i = 0; i < (i64)T * B; i++)
        for (i32 j = 0; j < INPUTS; j++) x[i * LANES + j] = between(1, i * INPUTS + j, 1.7f);
    b->y = b->box.y = take(&at, b->ny);
    b->want = take(&at, b->ny);
    b->box.dy = dy = take(&at, b->ny);
    for (i64 i = 0; i < b->ny; i++) dy[i] = i % Hp < H ? between(2, i, 1) : 0;
    b->box.act = take(&at, act);
    b->box.dx = take(&at, nx);
    b->w = take(&at, nw + nb);
    weights(b, state);
    b->box.w = b->w, b->box.bias = b->w + nw;
    b->box.wt = turned = take(&at, wt);
    b->k->prep(INPUTS, H, b->w, turned);
    b->box.carry = take(&at, 2 * B * Hp);
    return true;
}

/* Best time per step in microseconds. */
static void measure(struct bench *b, i32 rounds, f64 us[2]) {
    us[0] = us[1] = 1e30;
    for (i32 r = 0; r < rounds; r++) {
        f64 t0 = clock_now();
        b->k->fwd(&b->box, 0, b->box.B, 0, b->box.T);
        f64 t1 = clock_now();
        b->k->bwd(&b->box, 0, b->box.B, 0, b->box.T);
        f64 t2 = clock_now();
        us[0] = dmin(us[0], 1e6 * (t1 - t0) / b->box.T);
        us[1] = dmin(us[1], 1e6 * (t2 - t1) / b->box.T);
    }
}

static f32 off(const struct bench *b) {
    f32 worst = 0;
    for (i64 i = 0; i < b->ny; i++) worst = fmaxf(worst, fabsf(b->y[i] - b->want[i]));
    return worst;
}

/* Sequential execution with the base instruction set, into want. */
static void other_steps(struct bench *b) {
    struct cell_args box = b->box;
    box.y = b->want;
    cell_kernels(b->c, kern_get(KERN_BASE), PREC_F32)->fwd(&box, 0, box.B, 0, box.T);
}

static void rows(const struct cell *c, i32 T, i32 B, i32 H, f32 state, i32 rounds) {
    struct bench b;
    f64 steps[2], blocks[2];
    if (!open(&b, c, T, B, H, state)) {
        printf("%-9s B=%d H=%d: no memory\n", c->name, (int)B, (int)H);
        return;
    }
    measure(&b, rounds, steps);
    printf("%-9s %2d %4d  %5.1f  %-8s %8.3f %8.3f", c->name, (int)B, (int)H, (f64)state, "steps", steps[0], steps[1]);
    if (!c->diagonal) {
        printf("\n");
        mem_free(b.memory);
        return;
    }
    other_steps(&b);
    printf("  off by %.1e", (f64)off(&b));
    b.box.how = c->linear_in_h ? CELL_SCAN : CELL_NEWTON;
    measure(&b, rounds, blocks);
    struct diag_count n = diag_total(c, &b.box, 0, B);
    printf("\n%-9s %2d %4d  %5.1f  %-8s %8.3f %8.3f  off by %.1e", c->name, (int)B, (int)H, (f64)state,
           c->linear_in_h ? "scan" : "newton", blocks[0], blocks[1], (f64)off(&b));
    printf(", forward %.2fx, backward %.2fx the speed of steps", steps[0] / blocks[0], steps[1] / blocks[1]);
    if (n.blocks)
        printf(", %.1f iterations (most %d), %d of %d blocks fell back", (f64)n.iterations / n.blocks, (int)n.most,
               (int)n.fallbacks, (int)n.blocks);
    printf("\n");
    mem_free(b.memory);
}

int main(int argc, char **argv) {
    static const char *const cells[] = {"paragru", "paralstm", "minlstm", "lstm"};
    static const i32 batch[] = {1, 8}, hidden[] = {16, 64, 256};
    const i32 T = argc > 1 ? (i32)strtol(argv[1], NULL, 10) : 65536, rounds = argc > 2 ? (i32)strtol(argv[2], NULL, 10) : 3;
    if (T < 1 || rounds < 1) return 2;
    printf("T = %d, %d inputs, kernels %s, one thread; microseconds a step\n", (int)T, (int)INPUTS, kern_best()->name);
    printf("cell       B    H  state  walk      forward backward\n");
    for (u32 c = 0; c < COUNT(cells); c++)
        for (u32 b = 0; b < COUNT(batch); b++)
            for (u32 h = 0; h < COUNT(hidden); h++) {
                const struct cell *cell = cell_find(cells[c]);
                rows(cell, T, batch[b], hidden[h], 0.5f, rounds);
                if (cell->state_rows > 0) rows(cell, T, batch[b], hidden[h], 3, rounds);
            }
    return 0;
}
