/* t_windows.c - windows with their loss behind them (a direct head, both decoders, one way and both, a projection), trained in
 * slices of time: the gradient is that of whole windows, forecasts come from whole windows, and who runs the slices changes no
 * bit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/slices/slices.h"
#include "api/api.h"
#include "step/slices/solver.h"
#include "learn/forecast/fit.h"
#include "model/cell/cell.h"
#include "model/layer.h"
#include "session.h"

enum { ROWS = 700, H = 5, NCOL = 2, WIDE = ROWS * NCOL * H, WINDOWS = 3 };

/* The models: how they forecast, and how many rows a step reads.  45 rows are 23 segments of 2. */
static const struct trained {
    const char *decoder, *segment, *option, *value;
    i32 context;
} models[] = {{"direct", "1", "norm", "yes", 45},
              {"direct", "2", "head", "quantile", 45},
              {"parallel", "2", "norm", "yes", 45},
              {"autoregressive", "2", "teacher-forcing", "1", 45},
              {"autoregressive", "2", "teacher-forcing", "0", 45},
              {"direct", "1", "bidirectional", "yes", 362},
              {"direct", "1", "projection", "6", 362},
              {"direct", "1", "norm", "yes", 361}}; /* longer than what it remembers */

/* Only an lstm has a projection. */
static bool has(const char *cell, const struct trained *m) {
    return strcmp(m->option, "projection") != 0 || strcmp(cell, "lstm") == 0;
}

static struct session trained_in(const char *precision, const struct trained *m, const char *cell, const char *parallel,
                                 const char *threads) {
    char context[16];
    snprintf(context, sizeof context, "%d", m->context);
    static const char *const options[] = {"preset", "none", "target",  "a,b", "past",  "past", "known", "ahead", "cat",    "kind",
                                          "gaps",   "mask", "horizon", "5",   "guard", "no",   "base",  "last",  "freq",   "1h",
                                          "calendar", "yes", "validate-every", "8", "steps", "24",
                                          "hidden", "9",
                                          "layers", "2",    "loss-steps", "last", "batch", "3",    "lr", "0.01", NULL};
    const char *more[] = {"decoder", m->decoder, "segment", m->segment, m->option, m->value, "cell", cell, "parallel",
                          parallel, "threads", threads, "context", context, "precision", precision, NULL};
    return session_run(session_rows(ROWS), options, more);
}

static struct session trained(const struct trained *m, const char *cell, const char *parallel, const char *threads) {
    return trained_in("fp32", m, has(cell, m) ? cell : "lstm", parallel, threads);
}

/* --- the gradient --- */

/* One step that changes nothing, over P slices of the windows of a batch. */
struct trial {
    struct net *net;
    struct forecast_spec spec;
    struct engine engine;
    struct batcher batch;
    f64 loss;
};

static void trial_run(struct trial *g) {
    const struct batch_slot *slot = &g->batch.slot[0];
    struct step_args step = {.input = slot->input, .loss_scale = 1.f / (f32)slot->present, .seed = 9, .step = 1,
                             .hyper = {.step = 1, .grad_scale = 1}};
    struct exec_result r = {0};
    T_OK(step_run(g->engine.exec, &step, &r));
    assert_true(slot->present > 0 && r.finite && isfinite(r.loss) && r.loss > 0);
    g->loss = r.loss;
}

static void step_new(struct trial *g, struct session *s, i32 P) {
    struct resources use = *s->use;
    i32 B = WINDOWS * NCOL * P;
    memset(g, 0, sizeof *g);
    struct forecaster f = *s->f;
    g->spec = s->f->spec;
    g->spec.cut.slices = use.slices = f.spec.cut.slices = P;
    use.parallel = P > 1 ? "time_slice" : "serial";
    use.course = g->spec.cut.course;
    use.steps = 0;
    T_OK(mem_new((void **)&g->net, 1, sizeof *g->net));
    T_OK(forecast_net(&g->spec, &s->f->shape, series_of(s->d->set), g->net));
    T_OK(engine_new(g->net, &use, B, 0, optim_find("sgd"), &g->engine));
    T_OK(batcher_new(&f, g->net, &s->f->shape, series_of(s->d->set), use.kern, B, 1, &g->batch));
    g->batch.spec = &g->spec;
    g->batch.set = (struct window_set){.first = s->f->spec.context, .end = 500, .stride = 1};
    g->batch.seed = 3;
    g->batch.nwin = WINDOWS;
    memcpy(g->engine.store.theta, s->f->theta[0], sizeof(f32) * (size_t)g->net->ntheta);
    training_fill(&g->batch, 1, 0);
    trial_run(g);
}

static void trial_free(struct trial *g) {
    batcher_free(&g->batch);
    engine_free(&g->engine);
    mem_free(g->net);
}

/* Relative L2 distance of one tensor of an op. */
static f64 tensor_off(const struct trial *a, const struct trial *b, const struct op *op, i32 tensor,
                      const struct tensor_info *info) {
    static f32 x[1 << 14], y[1 << 14];
    const i64 n = (i64)info->rows * imax(1, info->cols);
    f64 diff = 0, size = 0;
    assert_true(n <= (i64)COUNT(x));
    layer_store(op, tensor, step_grad(a->engine.exec) + op->theta0, x);
    layer_store(op, tensor, step_grad(b->engine.exec) + op->theta0, y);
    for (i64 i = 0; i < n; i++) {
        const f64 d = (f64)x[i] - (f64)y[i];
        diff += d * d;
        size += (f64)y[i] * (f64)y[i];
    }
    return size > 0 ? sqrt(diff / size) : diff;
}

static void same_gradient(const struct trial *cut, const struct trial *whole, i32 P, f64 loss, f64 tol) {
    i32 moved = 0;
    if (!(fabs(cut->loss - whole->loss) <= loss * whole->loss)) fail_msg("P %d: loss %.9g, %.9g", P, cut->loss, whole->loss);
    for (i32 l = 0; l < whole->net->nop; l++) {
        const struct op *op = &whole->net->op[l];
        struct tensor_info info[8];
        const i32 n = op->layer->tensors ? op->layer->tensors(op, info) : 0;
        for (i32 t = 0; t < n; t++) {
            const f64 off = tensor_off(cut, whole, op, t, &info[t]);
            if (!(off <= tol)) fail_msg("P %d: gradient of %s is off by %.2e", P, info[t].name, off);
            moved++;
        }
    }
    assert_true(moved > 4);
}

static void slices_give_the_gradient(const char *cell) {
    static const i32 cuts[] = {2, 3, 7};
    for (size_t m = 0; m < COUNT(models); m += t_few() ? 3 : 1) {
        if (!has(cell, &models[m])) continue;
        struct session s = trained(&models[m], cell, "serial", "2");
        struct trial whole, cut;
        step_new(&whole, &s, 1);
        for (size_t i = 0; i < COUNT(cuts); i++) {
            step_new(&cut, &s, cuts[i]);
            assert_int_equal(cut.batch.slot[0].present, whole.batch.slot[0].present);
            same_gradient(&cut, &whole, cuts[i], 1e-6, 1e-5);
            trial_free(&cut);
        }
        trial_free(&whole);
        session_end(&s);
    }
}

TEST(slices_give_the_gradient_of_whole_windows_lstm) { slices_give_the_gradient("lstm"); }
TEST(slices_give_the_gradient_of_whole_windows_gru) { slices_give_the_gradient("gru"); }

/* bf16: both are as far from fp32 as bf16 is; slices add little. */
TEST(slices_give_the_gradient_of_whole_windows_bf16) {
    if (!cell_at(kern_best(), CELL_LSTM, PREC_BF16)) skip();
    for (size_t m = 0; m < COUNT(models); m += t_few() ? 3 : 1) {
        if (m > 0 && m + 1 < COUNT(models) && strcmp(models[m].option, "bidirectional") != 0) continue;
        struct session s = trained_in("bf16", &models[m], "lstm", "serial", "2");
        struct trial whole, cut;
        step_new(&whole, &s, 1);
        step_new(&cut, &s, 3);
        same_gradient(&cut, &whole, 3, 1e-2, 2e-2);
        trial_free(&cut);
        trial_free(&whole);
        session_end(&s);
    }
}

/* Backward from the ends of windows: slices that the gradient has not reached are not walked, in no layer. */
TEST(slices_that_no_gradient_reaches_sleep) {
    enum { P = 7, W = WINDOWS * NCOL };
    struct session s = trained(&models[COUNT(models) - 1], "lstm", "serial", "2");
    struct trial g;
    step_new(&g, &s, P);
    i32 layers = 0;
    for (i32 l = 0; l < g.net->nop; l++) {
        const struct chain_trace *back = step_chain(g.engine.exec, l, true), *forth = step_chain(g.engine.exec, l, false);
        if (!op_is_chain(&g.net->op[l])) continue;
        layers++;
        assert_int_equal(forth->first, P * W * g.net->op[l].T);
        assert_int_equal(back->first, W * g.net->op[l].T);
        for (i32 r = 0; r < W; r++)
            for (i32 round = 0; round < imin(back->rounds, back->nslice); round++)
                assert_int_equal(back->ran[round * P * W + r], 0);
    }
    assert_int_equal(layers, 2);
    trial_free(&g);
    session_end(&s);
}

static bool ahead_of_a_window(const char *name) {
    return strcmp(name, "future") == 0 || strcmp(name, "base") == 0 || strcmp(name, "first") == 0;
}

/* Rows that do not end their window have no targets; other numbers ahead of them change no bit of the gradient or the loss. */
static void inner_rows_say_nothing(const struct trained *m) {
    enum { P = 3, B = WINDOWS * NCOL * P };
    struct session s = trained(m, "lstm", "serial", "1");
    struct trial g, other;
    i32 changed = 0;
    step_new(&g, &s, P);
    step_new(&other, &s, P);
    for (i32 i = 0; i < g.net->nbuf; i++) {
        const struct buf *b = &g.net->buf[i];
        const bool y = strcmp(b->name, "y") == 0;
        if (!b->input || b->ids || (!y && !ahead_of_a_window(b->name))) continue;
        for (i64 k = 0; k < buf_floats(b, B); k++) {
            f32 *value = &other.batch.slot[0].input[i][k];
            if (k / buf_fp(b) % B >= B - WINDOWS * NCOL || k % buf_fp(b) >= b->F) continue;
            assert_true(!y || isnan(*value));
            if (y) continue;
            *value = 3 * sinf((f32)k);
            changed++;
        }
    }
    assert_true(changed > 0);
    trial_run(&other);
    assert_memory_equal(&other.loss, &g.loss, sizeof g.loss);
    for (i64 i = 0; i < g.net->ntheta; i++)
        if (!(step_grad(g.engine.exec)[i] == step_grad(other.engine.exec)[i])) fail_msg("%s: gradient %d", m->decoder, (i32)i);
    trial_free(&g);
    trial_free(&other);
    session_end(&s);
}

TEST(rows_inside_a_window_have_no_gradient_of_their_own) {
    for (size_t m = 0; m < COUNT(models); m += t_few() ? 3 : 1) inner_rows_say_nothing(&models[m]);
}

/* --- whole trainings --- */
struct kept {
    i64 first;
    i32 n;
    f32 mean[WIDE];
};

static err keep(void *self, const struct forecast_row *row) {
    struct kept *k = self;
    const i64 at = ((row->origin - k->first) * NCOL + row->col) * H;
    assert_true(at >= 0 && at + H <= WIDE);
    memcpy(k->mean + at, row->mean, sizeof(f32) * H);
    k->n++;
    return 0;
}

static struct kept one, two;

static void forecasts(const struct forecaster *f, const struct session *s, struct kept *out) {
    const struct window_set set = {.first = 500, .end = ROWS - H + 1, .stride = 1};
    *out = (struct kept){.first = set.first};
    T_OK(forecast_windows(f, series_of(s->d->set), &set, s->use, keep, out));
    assert_int_equal(out->n, (ROWS - H + 1 - 500) * NCOL);
}

/* A loaded model knows of no slices: its forecasts are those of whole windows, and were before. */
static void loads_alike(struct session *s) {
    char path[700];
    stretto_model *loaded;
    snprintf(path, sizeof path, "%s/cut.model", t_dir());
    T_OK(stretto_trainer_save(s->t, path));
    T_OK(stretto_model_load(path, &loaded));
    assert_int_equal(imax(1, forecaster_in(loaded->m)->spec.cut.slices), 1);
    forecasts(forecaster_in(loaded->m), s, &two);
    assert_memory_equal(one.mean, two.mean, sizeof one.mean);
    stretto_model_free(loaded);
}

TEST(a_training_in_slices_is_that_of_whole_windows) {
    for (size_t m = 0; m < COUNT(models); m += t_few() ? 3 : 1) {
        struct session cut = trained(&models[m], "lstm", "time:4", "2"), whole = trained(&models[m], "lstm", "serial", "2");
        f64 off = 0, size = 0;
        assert_int_equal(cut.f->spec.cut.slices, 4);
        assert_int_equal(cut.f->slices->watch.layer[1].all[0].steps, 24);
        assert_true(cut.f->slices->gap < 1e-5);
        forecasts(cut.f, &cut, &one);
        loads_alike(&cut);
        forecasts(whole.f, &whole, &two);
        for (i32 i = 0; i < one.n * H; i++) {
            off += fabs((f64)one.mean[i] - (f64)two.mean[i]);
            size += fabs((f64)two.mean[i]);
        }
        if (!(off <= 2e-3 * size)) fail_msg("%s: forecasts differ by %.2e", models[m].decoder, off / size);
        const f64 a = cut.t->history.point[cut.t->history.n - 1].valid, b = whole.t->history.point[whole.t->history.n - 1].valid;
        if (!(fabs(a - b) <= 1e-3 * b)) fail_msg("%s: validation %.6g, %.6g", models[m].decoder, a, b);
        session_end(&cut);
        session_end(&whole);
    }
}

TEST(any_number_of_threads_gives_the_same_bits) {
    for (size_t m = 0; m < COUNT(models); m += t_few() ? 3 : 1) {
        struct session a = trained(&models[m], "gru", "time:3", "1"), b = trained(&models[m], "gru", "time:3", "2");
        assert_true(a.f->spec.cut.slices == 3 && b.f->spec.cut.slices == 3);
        assert_memory_equal(a.f->theta[0], b.f->theta[0], sizeof(f32) * (size_t)a.f->net.ntheta);
        assert_memory_equal(&a.f->slices->gap, &b.f->slices->gap, sizeof a.f->slices->gap);
        session_end(&a);
        session_end(&b);
    }
}

T_MAIN(cmocka_unit_test(slices_give_the_gradient_of_whole_windows_lstm),
       cmocka_unit_test(slices_give_the_gradient_of_whole_windows_gru),
       cmocka_unit_test(slices_give_the_gradient_of_whole_windows_bf16),
       cmocka_unit_test(slices_that_no_gradient_reaches_sleep),
       cmocka_unit_test(rows_inside_a_window_have_no_gradient_of_their_own),
       cmocka_unit_test(a_training_in_slices_is_that_of_whole_windows),
       cmocka_unit_test(any_number_of_threads_gives_the_same_bits))
