/* t_slices.c - networks whose rows are slices of time give what whole sequences give. */
#include "t.h"

#include <stdlib.h>

#include "slices.h"

static void slices_give_states_and_gradients_of_the_whole(void **state) {
    (void)state;
    static const i32 cuts[] = {2, 3, 7, 16};
    for (i32 cell = 0; cell < (t_few() ? 2 : cell_count()); cell++)
        for (size_t i = 0; i < COUNT(cuts); i++) {
            struct sliced s = sliced_small((enum cell_kind)cell);
            s.P = cuts[i];
            s.W = i % 2 ? 3 : 1;
            if (i == 1) s.T = 1201; /* 401 + 400 + 400 */
            if (i == 2) s.L = 2;
            sliced_compare(s, 1 + (i32)i % 3, kern_best(), 5e-6, 1e-5);
        }
}

/* No merge-stop, a round for every slice: each row does the very arithmetic that it does in the whole sequence. */
static void tolerance_zero_gives_the_bits_of_the_whole(void **state) {
    (void)state;
    for (i32 cell = -1; cell < (t_few() ? 2 : cell_count()); cell++)
        for (i32 threads = 1; threads <= 3; threads++) {
            struct sliced s = sliced_small(cell < 0 ? CELL_LSTM : (enum cell_kind)cell), one;
            struct sliced_run whole, cut;
            s.W = 2, s.T = 203, s.P = 1 + 2 * threads, s.L = 2, s.both = threads == 2;
            if (cell < 0) s.projection = 7, s.state = false;
            one = s;
            one.P = 1;
            sliced_new(&whole, &one, kern_best(), 1, sliced_fine);
            sliced_new(&cut, &s, kern_best(), threads, (struct chain_course){.rounds = s.P});
            netplan(cut.plan)->course.slice_tol = 0;
            sliced_step(&whole);
            sliced_step(&cut);
            assert_true(sliced_states_differ(&cut, &whole) == 0);
            assert_true(sliced_grads_differ(&cut, &whole) < 3e-6); /* of the head, whose sums go another way */
            sliced_free(&whole);
            sliced_free(&cut);
        }
}

/* Slices belong to the plan: who runs them, and how often, leaves every bit as it is. */
static void any_number_of_workers_gives_the_same_bits(void **state) {
    (void)state;
    struct sliced s = sliced_small(CELL_LSTM);
    s.P = 12, s.L = 2, s.W = 2;
    for (i32 i = 0; i < 5 * PREC_N; i++) { /* plain; with all there is, and slices of unlike length; both ways; projected */
        struct sliced_run first, g;
        const i32 kind = i / PREC_N;
        s.precision = (enum precision)(i % PREC_N);
        s.both = kind >= 2, s.end = kind == 3, s.projection = kind == 4 ? 5 : 0, s.state = kind < 4;
        s.rank = kind == 1 || kind >= 3, s.recompute = kind == 1 || kind == 3, s.T = (t_few() ? 300 : 1200) + s.rank;
        if (s.projection && s.precision != PREC_F32) continue;
        if (!cell_at(kern_best(), s.cell, s.precision) || (t_few() && kind && s.precision != PREC_F32)) continue;
        sliced_new(&first, &s, kern_best(), 1, (struct chain_course){0});
        sliced_step(&first);
        for (i32 threads = 1; threads <= 4; threads += t_few() ? 2 : 1) {
            sliced_new(&g, &s, kern_best(), threads, (struct chain_course){0});
            for (i32 again = 0; again < 2; again++) {
                sliced_step(&g);
                assert_true(sliced_states_differ(&g, &first) == 0);
                assert_memory_equal(step_grad(g.x), step_grad(first.x), (size_t)g.net.ntheta * sizeof(f32));
                assert_memory_equal(&g.loss, &first.loss, sizeof g.loss);
            }
            sliced_free(&g);
        }
        sliced_free(&first);
    }
}

/* More workers in the plan than lanes: the first of each chain does it all, in the order that the plan's edges leave. */
static void fewer_lanes_than_devices_give_the_same_bits(void **state) {
    (void)state;
    struct sliced s = sliced_small(CELL_GRU);
    s.P = 8, s.W = 2;
    struct sliced_run a, b;
    sliced_new(&a, &s, kern_best(), 4, sliced_fine);
    sliced_new(&b, &s, kern_best(), 4, sliced_fine);
    step_free(b.x);
    pool_free(b.pool);
    T_OK(pool_new(2, &b.pool));
    T_OK(step_bind(b.plan, &b.net, kern_best(), b.pool, &b.store, NULL, NULL, &b.x));
    sliced_step(&a);
    sliced_step(&b);
    assert_true(sliced_states_differ(&a, &b) == 0);
    assert_memory_equal(step_grad(a.x), step_grad(b.x), (size_t)a.net.ntheta * sizeof(f32));
    sliced_free(&a);
    sliced_free(&b);
}

/* One worker runs the rows of four members by themselves: what happened is what happens anyway, and the spans have all of it. */
static void rows_run_apart_give_the_same_bits(void **state) {
    (void)state;
    struct sliced s = sliced_small(CELL_LSTM);
    s.P = 12, s.L = 2, s.W = 2;
    for (i32 i = 0; i < 2 * PREC_N; i++) {
        struct sliced_run a, b;
        s.precision = (enum precision)(i % PREC_N);
        s.rank = i / PREC_N, s.recompute = i / PREC_N, s.T = 1200 + i / PREC_N;
        if (!cell_at(kern_best(), s.cell, s.precision)) continue;
        sliced_new(&a, &s, kern_best(), 3, (struct chain_course){0});
        sliced_new(&b, &s, kern_best(), 3, (struct chain_course){0});
        assert_int_equal(b.plan->ndevice, 3);
        step_free(b.x);
        pool_free(b.pool);
        T_OK(pool_new(1, &b.pool));
        T_OK(step_bind(b.plan, &b.net, kern_best(), b.pool, &b.store, NULL, NULL, &b.x));
        sliced_step(&a);
        for (i32 on = 1; on >= 0; on--) {
            step_apart(b.x, on == 1);
            exec_trace(step_exec(b.x), true);
            sliced_step(&b);
            assert_true(sliced_states_differ(&a, &b) == 0);
            assert_memory_equal(step_grad(a.x), step_grad(b.x), (size_t)a.net.ntheta * sizeof(f32));
        }
        struct task_span span[200];
        const i32 n = exec_spans(step_exec(b.x), span, COUNT(span));
        i32 chains = 0;
        for (i32 k = 0; k < n; k++) {
            const struct task *t = &b.plan->task[span[k].task];
            char name[64];
            plan_task_name(b.plan, &b.net, span[k].task, name);
            assert_memory_equal(name, span[k].name, strlen(span[k].name));
            chains += t->kind == TASK_FWD && t->members == 3 && t->member == 0;
        }
        assert_int_equal(chains, 2 * s.L); /* of two steps */
        sliced_free(&a);
        sliced_free(&b);
    }
}

/* Rounds needed are 1 + ceil(w / L), and two more at most (docs/time-parallel.md). */
static void rounds_follow_the_memory(void **state) {
    (void)state;
    struct sliced s = sliced_small(CELL_LSTM);
    s.T = 4096, s.P = 4;
    struct sliced_run g;
    i32 sorted[64];
    sliced_new(&g, &s, kern_best(), 2, sliced_fine);
    sliced_step(&g);
    const i32 w = chain_forgets(step_chain(g.x, 2, false), sorted);
    assert_in_range(w, 1, 1023);
    sliced_free(&g);
    for (s.P = 8; s.P <= 64; s.P *= 2) {
        sliced_new(&g, &s, kern_best(), 2, sliced_fine);
        sliced_step(&g);
        for (i32 way = 0; way < 2; way++)
            assert_in_range(step_chain(g.x, 2, way == 1)->rounds, 1, 1 + ceil_div(w, 4096 / s.P) + 2);
        sliced_free(&g);
    }
}

/* Recurrent weights that do not contract: noticed, done serially from there on, and right. */
static void what_does_not_contract_is_done_serially(void **state) {
    (void)state;
    for (i32 kind = 0; kind < 3; kind++) { /* one way, both, projected */
        struct sliced s = sliced_small(CELL_LSTM), one;
        struct sliced_run whole, cut;
        const i32 both = kind == 1;
        s.W = 2, s.spread = 14, s.P = 10, s.both = both;
        if (kind == 2) s.projection = 12, s.spread = 60, s.state = false;
        one = s;
        one.P = 1;
        sliced_new(&whole, &one, kern_best(), 1, sliced_fine);
        sliced_new(&cut, &s, kern_best(), 2, sliced_fine);
        sliced_step(&whole);
        sliced_step(&cut);
        for (i32 way = 0; way <= both; way++) assert_true(step_chain(cut.x, sliced_chain(&cut, way), false)->serial > 0);
        assert_true(isfinite(cut.loss));
        assert_true(sliced_states_differ(&cut, &whole) <= 5e-6 || fabs(cut.loss - whole.loss) <= 0.1 * whole.loss);
        sliced_free(&whole);
        sliced_free(&cut);
    }
}

/* A NaN in one slice: the step ends, and says so; what lies before it is as it was. */
static void a_nan_in_a_slice_ends(void **state) {
    (void)state;
    struct sliced s = sliced_small(CELL_LSTM);
    struct sliced_run g;
    s.P = 8;
    sliced_new(&g, &s, kern_best(), 2, sliced_fine);
    g.input[0][(20 * 8 + 5) * (i64)buf_fp(&g.net.buf[0])] = NAN; /* slice 5, step 20 */
    sliced_step(&g);
    assert_true(isnan(g.loss));
    assert_true(isfinite(sliced_at(&g, 2, 0, 5 * 150 + 19, 0)));
    assert_true(isnan(sliced_at(&g, 2, 0, 5 * 150 + 20, 0)));
    assert_true(isnan(sliced_at(&g, 2, 0, 1199, 0)));
    g.input[0][(20 * 8 + 5) * (i64)buf_fp(&g.net.buf[0])] = 0;
    sliced_step(&g);
    assert_true(isfinite(g.loss));
    sliced_free(&g);
}

/* In bf16 h has 8 bits: the gap between slices is of that size, and so is what it does to the gradient. */
static void bf16_slices_are_within_bf16(void **state) {
    (void)state;
    struct sliced s = sliced_small(CELL_LSTM);
    s.P = 16, s.precision = PREC_BF16;
    if (!cell_at(kern_best(), s.cell, PREC_BF16)) skip();
    struct sliced_run whole, cut;
    struct sliced one = s;
    one.P = 1;
    sliced_new(&whole, &one, kern_best(), 1, (struct chain_course){0});
    sliced_new(&cut, &s, kern_best(), 2, (struct chain_course){0});
    sliced_step(&whole);
    sliced_step(&cut);
    assert_true(sliced_states_differ(&cut, &whole) <= 1e-2);
    assert_true(sliced_grads_differ(&cut, &whole) <= 1e-2);
    assert_in_range(step_chain(cut.x, 2, false)->rounds, 2, 5);
    sliced_free(&whole);
    sliced_free(&cut);
}

/* If the net remembers over many slices, the low-rank correction of initial states (--slice-rank) saves rounds. */
static void a_rank_makes_rounds_few(void **state) {
    (void)state;
    struct sliced s = sliced_small(CELL_LSTM), one;
    struct sliced_run whole, cut;
    i32 rounds[3][5];
    s.T = 4096, s.P = 64, s.H = 32, s.spread = 1, s.state = false;
    one = s;
    one.P = 1;
    for (i32 many = 0; many < (t_few() ? 1 : 3); many++) {
        s.slow = one.slow = many == 1 ? 3 : 1;
        s.forget = one.forget = many == 1 ? 4.6f : 6.9f;
        s.projection = one.projection = many == 2 ? 8 : 0;
        sliced_new(&whole, &one, kern_best(), 1, sliced_fine);
        sliced_step(&whole);
        for (i32 rank = 0; rank <= 4; rank++) {
            if (t_few() && rank > 1) continue;
            s.rank = rank;
            sliced_new(&cut, &s, kern_best(), 2, (struct chain_course){.slice_tol = 1e-6f, .rounds = 64});
            sliced_step(&cut);
            const struct chain_trace *f = step_chain(cut.x, 1, false), *b = step_chain(cut.x, 1, true);
            rounds[many][rank] = f->rounds;
            if (getenv("SHOW"))
                print_message("slow %d rank %d: rounds %d again %.2f back %d again %.2f states %.2e grads %.2e\n", s.slow, rank,
                              f->rounds, (f64)f->again / (f64)f->first, b->rounds, (f64)b->again / (f64)b->first,
                              sliced_states_differ(&cut, &whole), sliced_grads_differ(&cut, &whole));
            assert_true(sliced_states_differ(&cut, &whole) <= 2e-5);
            assert_true(sliced_grads_differ(&cut, &whole) <= 1e-4);
            sliced_free(&cut);
        }
        sliced_free(&whole);
    }
    assert_true(rounds[0][0] >= 47 && rounds[0][1] <= 10); /* one mode of memory */
    if (t_few()) return;
    assert_true(rounds[1][0] >= 23 && rounds[1][4] <= 7);  /* three */
    assert_true(rounds[2][0] >= 47 && rounds[2][1] <= 10); /* one, in c of a layer that hands on 8 of 32 values */
}

/* As many directions as a state has parts: Newton's method for the begins of all slices (test 8).  A cell that is linear in h is
 * done when it has been asked once.  An lstm is not linear: Newton begins from a guess, and far from it needs its rounds too. */
static void as_many_directions_as_states_is_newton(void **state) {
    (void)state;
    static const struct {
        enum cell_kind cell;
        i32 H, slow;
        f32 forget;
        i32 without, with; /* rounds: at least, at most */
    } cases[] = {{(enum cell_kind)CELL_AT_minlstm, 4, 4, 6.9f, 64, 3}, {CELL_LSTM, 2, 1, 4.6f, 14, 8}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sliced s = sliced_small(cases[i].cell), one;
        struct sliced_run whole, cut;
        s.T = 4096, s.P = 64, s.H = cases[i].H, s.spread = 1, s.state = false;
        s.slow = cases[i].slow, s.forget = cases[i].forget;
        one = s;
        one.P = 1;
        sliced_new(&whole, &one, kern_best(), 1, sliced_fine);
        sliced_step(&whole);
        i32 rounds[2];
        for (i32 k = 0; k < 2; k++) {
            s.rank = k ? 4 : 0;
            sliced_new(&cut, &s, kern_best(), 1, (struct chain_course){.slice_tol = 1e-6f, .rounds = 64});
            sliced_step(&cut);
            rounds[k] = step_chain(cut.x, 1, false)->rounds;
            if (getenv("SHOW"))
                print_message("cell %d rank %d: %d rounds, states %.2e, gradients %.2e\n", (int)s.cell, s.rank, rounds[k],
                              sliced_states_differ(&cut, &whole), sliced_grads_differ(&cut, &whole));
            assert_true(sliced_states_differ(&cut, &whole) <= 2e-5);
            sliced_free(&cut);
        }
        sliced_free(&whole);
        assert_true(rounds[0] >= cases[i].without && rounds[1] <= cases[i].with);
    }
}

/* A slice of one row: what it begins from, ends in, and the gradients of both. */
enum { WALK = 6, UNITS = 16, STATE = 2 * UNITS };
struct slice_walk {
    struct cell_args box;
    const struct cell_kern *kern;
    i32 n; /* of a state */
    f32 begin[STATE], end[STATE], dbegin[STATE], dend[STATE];
    struct arena a;
};

static f32 *floats(struct slice_walk *g, i64 n, u32 seed, f32 size) {
    f32 *p = arena_new(&g->a, sizeof(f32) * (size_t)lmax(1, n));
    assert_non_null(p);
    for (i64 i = 0; i < n; i++) p[i] = size * sliced_noise(seed, i);
    return p;
}

static void walk_new(struct slice_walk *g, const struct cell *c) {
    const i64 w = cell_packed_w(c, LANES, UNITS);
    const bool two = c->states > 1;
    *g = (struct slice_walk){.kern = cell_kernels(c, kern_best(), PREC_F32), .n = c->states * UNITS};
    g->box = (struct cell_args){.T = WALK, .B = 1, .I = LANES, .H = UNITS, .x_ld = LANES, .dx_ld = LANES};
    g->box.x = floats(g, WALK * LANES, 3, 1);
    g->box.w = floats(g, w + cell_packed_bias(c, UNITS), 4, 0.4f);
    g->box.bias = g->box.w + w;
    f32 *wt = floats(g, cell_wt_max(c, PREC_F32, LANES, UNITS), 0, 0);
    g->kern->prep(LANES, UNITS, g->box.w, wt);
    g->box.wt = wt;
    g->box.act = floats(g, cell_act_max(c, PREC_F32, WALK, 1, LANES, UNITS), 0, 0);
    g->box.y = floats(g, WALK * UNITS, 0, 0);
    g->box.carry = floats(g, 2 * UNITS, 0, 0);
    g->box.h0 = g->begin, g->box.c0 = two ? g->begin + UNITS : NULL;
    g->box.hT = g->end, g->box.cT = two ? g->end + UNITS : NULL;
    g->box.dhT = g->dend, g->box.dcT = two ? g->dend + UNITS : NULL;
    g->box.dh0 = g->dbegin, g->box.dc0 = two ? g->dbegin + UNITS : NULL;
}

/* <end(at + e v) - end(at - e v), u> / 2e */
static f64 answer(struct slice_walk *g, const f32 *at, const f32 *v, const f32 *u, f32 e) {
    f64 sum = 0;
    for (i32 side = -1; side <= 1; side += 2) {
        for (i32 i = 0; i < g->n; i++) g->begin[i] = at[i] + (f32)side * e * v[i];
        g->kern->fwd(&g->box, 0, 1, 0, WALK);
        for (i32 i = 0; i < g->n; i++) sum += side * (f64)g->end[i] * (f64)u[i] / (2 * (f64)e);
    }
    return sum;
}

/* <J v, u> = <v, J' u> of a slice (test 7): J v by fourth-order differences of the forward kernels, J' u by the backward ones. */
static void backward_is_forward_transposed(void **state) {
    (void)state;
    for (i32 cell = 0; cell < cell_count(); cell++) {
        struct slice_walk g;
        walk_new(&g, cell_of((enum cell_kind)cell));
        const f32 *v = floats(&g, g.n, 5, 1), *u = floats(&g, g.n, 6, 1), *at = floats(&g, g.n, 7, 0.3f);
        const f64 forth = (4 * answer(&g, at, v, u, 1.f / 16) - answer(&g, at, v, u, 1.f / 8)) / 3;
        f64 back = 0, size = 0;
        memcpy(g.begin, at, sizeof(f32) * (size_t)g.n);
        memcpy(g.dend, u, sizeof(f32) * (size_t)g.n);
        g.kern->fwd(&g.box, 0, 1, 0, WALK);
        g.kern->bwd(&g.box, 0, 1, 0, WALK);
        for (i32 i = 0; i < g.n; i++) {
            back += (f64)v[i] * (f64)g.dbegin[i];
            size += fabs((f64)v[i] * (f64)g.dbegin[i]);
        }
        if (getenv("SHOW"))
            print_message("%s: <Jv,u> %.9g <v,J'u> %.9g of %.3g\n", cell_of((enum cell_kind)cell)->name, forth, back, size);
        assert_true(size > 1e-3 && fabs(forth - back) <= 1e-4 * size);
        arena_free(&g.a);
    }
}

/* Stale boundaries: one round a step, from what the step before left.  With weights at rest the gradient becomes the exact one;
 * in training its error goes down with the rate (test 10). */
static void stale_begins_come_right_as_weights_come_to_rest(void **state) {
    (void)state;
    struct sliced s = sliced_small(CELL_LSTM);
    struct sliced_run g, exact;
    f64 error[3];
    s.P = 8, s.W = 2;
    sliced_new(&exact, &s, kern_best(), 1, sliced_fine);
    for (i32 i = 0; i < 3; i++) {
        sliced_new(&g, &s, kern_best(), 2, (struct chain_course){.slice_tol = 1e-6f, .slice_rounds = 1, .exact_back = true});
        for (i32 step = 0; step < 6; step++) sliced_train(&g, 0, step > 0);
        memcpy(exact.store.theta, g.store.theta, (size_t)g.net.ntheta * sizeof(f32));
        sliced_step(&exact);
        assert_true(sliced_grads_differ(&g, &exact) <= 1e-5);
        const f32 lr = 0.2f / (f32)(1 << i);
        sliced_train(&g, lr, true);
        memcpy(exact.store.theta, g.store.theta, (size_t)g.net.ntheta * sizeof(f32));
        sliced_train(&g, 0, true); /* begins are one update old */
        sliced_step(&exact);
        error[i] = sliced_grads_differ(&g, &exact);
        assert_int_equal(step_chain(g.x, 2, false)->rounds, 1);
        sliced_free(&g);
    }
    if (getenv("SHOW")) print_message("gradient errors %.3e %.3e %.3e\n", error[0], error[1], error[2]);
    const f64 slope = log(error[0] / error[2]) / log(4);
    assert_true(error[0] > 1e-5);
    assert_true(slope > 0.85 && slope < 1.15);
    sliced_free(&exact);
}

/* Without what the step before left, one round is not enough: this is what the memory of the chain is worth. */
static void stale_and_cold_is_wrong(void **state) {
    (void)state;
    for (i32 projection = 0; projection < 10; projection += 5) {
        struct sliced s = sliced_small(CELL_LSTM);
        struct sliced_run g, exact;
        s.P = 16, s.projection = projection, s.state = projection == 0;
        sliced_new(&exact, &s, kern_best(), 1, sliced_fine);
        sliced_new(&g, &s, kern_best(), 1, (struct chain_course){.slice_tol = 1e-6f, .slice_rounds = 1, .exact_back = true});
        sliced_step(&exact);
        sliced_step(&g);
        assert_true(sliced_grads_differ(&g, &exact) > 1e-3);
        const i32 l = sliced_chain(&g, 0), n = step_chain_state(g.x, l);
        assert_int_equal(n, projection ? LANES + 2 * LANES : 4 * LANES); /* h and c of 20 units, or of 5 and 20 */
        f32 *kept = arena_new(&g.arena, (size_t)(16 * n) * sizeof *kept);
        for (i32 row = 0; row < 16; row++) step_chain_save(exact.x, l, row, kept + row * n);
        for (i32 row = 0; row < 16; row++) step_chain_load(g.x, l, row, kept + row * n);
        sliced_train(&g, 0, true);
        assert_true(sliced_grads_differ(&g, &exact) <= 1e-5);
        sliced_free(&g);
        sliced_free(&exact);
    }
}

/* Masks are a function of the place, so slices that run again see the same: dropout between layers, rounds to tolerance against
 * rounds to the last bit (test 17). */
static void dropout_is_the_same_in_every_round(void **state) {
    (void)state;
    struct sliced s = sliced_small(CELL_LSTM);
    struct sliced_run g, exact;
    s.P = 7, s.W = 2, s.L = 2, s.rate = 0.3f;
    sliced_new(&g, &s, kern_best(), 2, sliced_fine);
    sliced_new(&exact, &s, kern_best(), 1, (struct chain_course){.rounds = 7});
    netplan(exact.plan)->course.slice_tol = 0;
    sliced_step(&exact);
    for (i32 again = 0; again < 2; again++) {
        sliced_step(&g);
        assert_true(sliced_states_differ(&g, &exact) <= 5e-6);
        assert_true(sliced_grads_differ(&g, &exact) <= 1e-5);
    }
    sliced_free(&g);
    sliced_free(&exact);
}

/* Gates made anew in backward, instead of kept: the same bits where tolerance is none, else the same to tolerance; and less
 * memory. */
static void recomputed_gates_give_the_same(void **state) {
    (void)state;
    for (i32 precision = 0; precision < PREC_N; precision++)
        for (i32 cell = -1; cell < (t_few() ? 1 : cell_count()); cell++)
            for (i32 exact = 0; exact < 2; exact++) {
                struct sliced s = sliced_small(cell < 0 ? CELL_LSTM : (enum cell_kind)cell);
                struct sliced_run a, b;
                if (cell < 0 && precision != PREC_F32) continue;
                if (cell < 0) s.projection = 5, s.state = false;
                s.P = 6, s.W = 2, s.L = 2, s.T = 1201, s.precision = (enum precision)precision;
                if (net_cell_runs(s.cell, s.precision, kern_best()) < 0) continue;
                const struct chain_course how = exact ? (struct chain_course){.rounds = 6} : (struct chain_course){0};
                sliced_new(&a, &s, kern_best(), 2, how);
                s.recompute = true;
                sliced_new(&b, &s, kern_best(), 2, how);
                if (exact) netplan(a.plan)->course.slice_tol = netplan(b.plan)->course.slice_tol = 0;
                sliced_step(&a);
                sliced_step(&b);
                const f64 near = precision == PREC_BF16 ? 1e-2 : 5e-6;
                if (getenv("SHOW"))
                    print_message("recompute: precision %d cell %d exact %d states %.2e grads %.2e\n", precision, cell, exact,
                                  sliced_states_differ(&a, &b), sliced_grads_differ(&a, &b));
                assert_true(sliced_states_differ(&a, &b) <= (exact ? 0 : near));
                /* the gradient of h of a gru, or a projection, is one sum within a row, and two where it is handed on */
                const bool bits = s.cell == CELL_LSTM && !precision && !s.projection;
                assert_true(sliced_grads_differ(&a, &b) <= (!exact ? near : bits ? 0 : 1e-3 * near + 1e-6));
                assert_true(b.plan->peak_bytes < a.plan->peak_bytes);
                sliced_free(&a);
                sliced_free(&b);
            }
}

/* What foresees begins knows no bound of h where the cell has none, and rank helps no cell to another result. */
static void a_rank_changes_no_result(void **state) {
    (void)state;
    for (i32 precision = 0; precision < PREC_N; precision++)
        for (i32 cell = 0; cell < (t_few() ? 1 : cell_count()); cell++) {
            struct sliced s = sliced_small((enum cell_kind)cell);
            struct sliced_run a, b;
            s.P = 12, s.W = 2, s.spread = 4, s.precision = (enum precision)precision;
            if (net_cell_runs(s.cell, s.precision, kern_best()) < 0) continue;
            sliced_new(&a, &s, kern_best(), 1, (struct chain_course){0});
            s.rank = 2;
            sliced_new(&b, &s, kern_best(), 2, (struct chain_course){0});
            sliced_step(&a);
            sliced_step(&b);
            assert_true(sliced_states_differ(&a, &b) <= (precision == PREC_BF16 ? 2e-2 : 2e-5));
            sliced_free(&a);
            sliced_free(&b);
        }
}

static void every_instruction_set_gives_the_gradients_of_the_whole(void **state) {
    (void)state;
    for (i32 a = 0; a < KERN_NARCH; a++) {
        const struct kern *k = kern_get((enum kern_arch)a);
        struct sliced s = sliced_small(CELL_LSTM);
        s.T = 301, s.P = 5, s.W = 2, s.H = 9;
        if (k) sliced_compare(s, 2, k, 5e-6, 1e-5);
    }
}

T_MAIN(cmocka_unit_test(slices_give_states_and_gradients_of_the_whole),
       cmocka_unit_test(tolerance_zero_gives_the_bits_of_the_whole), cmocka_unit_test(any_number_of_workers_gives_the_same_bits),
       cmocka_unit_test(fewer_lanes_than_devices_give_the_same_bits), cmocka_unit_test(rows_run_apart_give_the_same_bits),
       cmocka_unit_test(rounds_follow_the_memory), cmocka_unit_test(what_does_not_contract_is_done_serially),
       cmocka_unit_test(a_nan_in_a_slice_ends), cmocka_unit_test(bf16_slices_are_within_bf16),
       cmocka_unit_test(a_rank_makes_rounds_few), cmocka_unit_test(as_many_directions_as_states_is_newton),
       cmocka_unit_test(backward_is_forward_transposed), cmocka_unit_test(a_rank_changes_no_result),
       cmocka_unit_test(stale_begins_come_right_as_weights_come_to_rest), cmocka_unit_test(stale_and_cold_is_wrong),
       cmocka_unit_test(dropout_is_the_same_in_every_round), cmocka_unit_test(recomputed_gates_give_the_same),
       cmocka_unit_test(every_instruction_set_gives_the_gradients_of_the_whole))
