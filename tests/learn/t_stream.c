/* t_stream.c - models that learn from every row of a long context (--loss-steps all): tiles and slices in training, one walk over
 * the rows in use; the walk gives what the trained net gives, wherever its chunks begin. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "learn/forecast/stream.h"
#include "session.h"

enum { ROWS = 900, C = 96, H = 3, NCOL = 2, WIDE = ROWS * NCOL * H };

/* Trained with further options "name", "value", ..., NULL. */
static struct session trained(const char *const *more) {
    static const char *const options[] = {"preset",  "stream", "target",   "a,b", "past",           "past", "known", "ahead",
                                          "cat",     "kind",   "gaps",     "mask", "horizon",        "3",    "guard", "no",
                                          "context", "96",     "calendar", "yes", "validate-every", "6",    "steps", "12",
                                          "hidden",  "9",      "layers",   "2",   "freq",           "1h",   NULL};
    return session_run(session_rows(ROWS), options, more);
}

struct kept {
    i64 first;
    i32 n;
    f32 mean[WIDE], both[WIDE], base[WIDE];
};

static err keep(void *self, const struct forecast_row *row) {
    struct kept *k = self;
    i64 at = ((row->origin - k->first) * NCOL + row->col) * H;
    assert_true(at >= 0 && at + H <= WIDE);
    memcpy(k->mean + at, row->mean, sizeof(f32) * H);
    memcpy(k->both + at, row->both, sizeof(f32) * H);
    memcpy(k->base + at, row->base, sizeof(f32) * H);
    k->n++;
    return 0;
}

static struct kept one, two;

static void chunks_agree(const char *const *more) {
    struct session s = trained(more);
    static const i32 chunk[] = {7, 64, 0};
    struct window_set set = {.first = 500, .end = ROWS + 1, .stride = 1};
    one = (struct kept){.first = set.first};
    T_OK(forecast_stream(s.f, series_of(s.d->set), &set, s.use, 1024, keep, &one));
    assert_int_equal(one.n, (ROWS + 1 - 500) * NCOL);
    for (size_t k = 0; k < COUNT(chunk); k++) {
        two = (struct kept){.first = set.first};
        T_OK(forecast_stream(s.f, series_of(s.d->set), &set, s.use, chunk[k], keep, &two));
        assert_int_equal(two.n, one.n);
        for (i32 i = 0; i < one.n * H; i++)
            if (!(fabsf(one.mean[i] - two.mean[i]) < 1e-6f * (1 + fabsf(one.mean[i]))))
                fail_msg("chunk %d: forecast %d differs", chunk[k], i);
    }
    /* few origins of the same walk are the same forecasts */
    struct window_set few = {.first = 500, .end = ROWS + 1, .stride = 13};
    two = (struct kept){.first = set.first};
    T_OK(forecast_windows(s.f, series_of(s.d->set), &few, s.use, keep, &two));
    for (i64 o = 0; o < ROWS + 1 - 500; o += 13)
        for (i32 i = 0; i < NCOL * H; i++) assert_true(fabsf(one.mean[o * NCOL * H + i] - two.mean[o * NCOL * H + i]) < 1e-5f);
    session_end(&s);
}

TEST(forecasts_do_not_depend_on_where_chunks_begin) { chunks_agree(NULL); }
TEST(nor_do_those_of_members_with_quantiles_and_a_base) {
    static const char *const more[] = {"members", "2",   "head", "quantile", "base",    "last", "cell",
                                       "gru",     "norm", "yes", "dropout", "0.2", NULL};
    chunks_agree(more);
}

/* The walk from row 0 on against the net that was trained, run forward over one tile. */
TEST(the_walk_gives_what_the_trained_net_gives) {
    struct session s = trained(NULL);
    struct engine e;
    struct batcher b;
    struct window_set set = {.first = 1, .end = C + 1, .stride = 1};
    struct exec_result r;
    T_OK(engine_new(&s.f->net, s.use, NCOL, NCOL, NULL, &e));
    T_OK(batcher_new(s.f, &s.f->net, &s.f->shape, series_of(s.d->set), s.use->kern, NCOL, 1, &b));
    b.scored = set;
    batch_fill_walk(&b, 0, 0);
    memcpy(e.store.theta, s.f->theta[0], sizeof(f32) * (size_t)s.f->net.ntheta);
    T_OK(step_run(e.forward, &(struct step_args){.input = b.slot[0].input, .loss_scale = 1.f / (f32)b.slot[0].present}, &r));
    const f32 *out = step_buf(e.forward, s.f->net.op[s.f->net.nop - 1].spec.in[0]);
    one = (struct kept){.first = 1};
    T_OK(forecast_stream(s.f, series_of(s.d->set), &set, s.use, 10, keep, &one));
    assert_int_equal(one.n, C * NCOL);
    for (i32 i = 0; i < C * NCOL; i++)
        for (i32 k = 0; k < H; k++)
            assert_true(fabsf(one.base[i * H + k] + out[i * LANES + k] - one.both[i * H + k]) < 1e-5f);
    /* and the loss of the walk is that of the net */
    struct stream *st;
    f64 loss;
    T_OK(stream_new(s.f, series_of(s.d->set), s.use, 13, 1, &st));
    T_OK(stream_loss(st, s.f->theta[0], &set, &loss));
    assert_true(fabs(loss - r.loss) < 1e-5 * (1 + fabs(loss)) && loss > 0);
    stream_free(st);
    batcher_free(&b);
    engine_free(&e);
    session_end(&s);
}

/* Forecasts look at rows before their origin only. */
TEST(the_walk_does_not_look_ahead) {
    struct session s = trained(NULL);
    struct series *x = series_of(s.d->set);
    struct window_set set = {.first = 600, .end = 651, .stride = 1};
    one = (struct kept){.first = 600}, two = (struct kept){.first = 600};
    T_OK(forecast_windows(s.f, x, &set, s.use, keep, &one));
    for (i32 c = 0; c < x->ntarget + x->npast; c++)
        for (i64 i = 650; i < x->nrow; i++) x->v[(i64)c * x->nrow + i] = 99;
    T_OK(forecast_windows(s.f, x, &set, s.use, keep, &two));
    assert_memory_equal(one.mean, two.mean, sizeof(f32) * 51 * NCOL * H);
    for (i64 i = 649; i < 650; i++) x->v[i] = 99; /* the last row before the last origin counts */
    T_OK(forecast_windows(s.f, x, &set, s.use, keep, &two));
    assert_memory_equal(one.mean, two.mean, sizeof(f32) * 50 * NCOL * H);
    assert_memory_not_equal(one.mean + (size_t)(50 * NCOL * H), two.mean + (size_t)(50 * NCOL * H), sizeof(f32) * H);
    session_end(&s);
}

/* Of a short context the first row still counts at the first origin, the row before it does not. */
TEST(the_walk_begins_a_context_before_the_first_origin) {
    struct session s = trained((const char *[]){"context", "4", "base", "none", NULL});
    struct series *x = series_of(s.d->set);
    struct window_set set = {.first = 600, .end = 601, .stride = 1};
    one = (struct kept){.first = 600}, two = (struct kept){.first = 600};
    T_OK(forecast_windows(s.f, x, &set, s.use, keep, &one));
    x->v[595] = 99;
    T_OK(forecast_windows(s.f, x, &set, s.use, keep, &two));
    assert_memory_equal(one.mean, two.mean, sizeof(f32) * NCOL * H);
    x->v[596] = 99;
    T_OK(forecast_windows(s.f, x, &set, s.use, keep, &two));
    assert_memory_not_equal(one.mean, two.mean, sizeof(f32) * H);
    session_end(&s);
}

/* --- tiles and slices --- */

/* A net of the session's model cut into P slices. */
static void cut(const struct session *s, i32 P, struct forecaster *f) {
    *f = *s->f;
    f->spec.cut.slices = P;
    T_OK(forecast_net(&f->spec, &f->shape, series_of(s->d->set), &f->net));
}

TEST(an_epoch_takes_every_tile_once) {
    struct session s = trained(NULL);
    struct batcher b;
    i64 rows = 3 * C + 40, phase[8];
    T_OK(batcher_new(s.f, &s.f->net, &s.f->shape, series_of(s.d->set), s.use->kern, NCOL, 2, &b));
    b.set = (struct window_set){.first = C, .end = rows + 1, .stride = 1};
    b.scored = (struct window_set){.first = 1, .end = INT64_MAX, .stride = 1};
    b.nwin = 1;
    b.seed = 5;
    i32 moved = 0;
    for (i64 epoch = 0; epoch < 8; epoch++) {
        bool met[3] = {false};
        for (i64 k = 0; k < 3; k++) {
            batch_fill_tiles(&b, epoch * 3 + k, 0);
            assert_int_equal(b.slot[0].present, batch_cells_tiles(&b, epoch * 3 + k));
            i64 first = b.slot[0].origin[0];
            assert_int_equal(first, b.slot[0].origin[1]);
            if (k == 0) phase[epoch] = first % C;
            assert_int_equal(first % C, phase[epoch]);
            assert_in_range(first, 0, rows - C);
            assert_false(met[first / C]);
            met[first / C] = true;
        }
        moved += phase[epoch] != phase[0];
    }
    assert_true(moved > 4);
    i64 least = rows, most = 0; /* no row before the first, none behind the last: that would be one of validation */
    for (i64 k = 0; k < 1200; k++) {
        batch_fill_tiles(&b, k, 0);
        least = lmin(least, b.slot[0].origin[0]);
        most = lmax(most, b.slot[0].origin[0]);
    }
    assert_true(least == 0 && most == rows - C);
    batch_fill_tiles(&b, 7, 1); /* a pure function of the batch's number */
    batch_fill_tiles(&b, 20, 0);
    batch_fill_tiles(&b, 7, 0);
    assert_memory_equal(b.slot[0].input[0], b.slot[1].input[0], sizeof(f32) * (size_t)buf_floats(&s.f->net.buf[0], NCOL));
    batcher_free(&b);
    session_end(&s);
}

static i32 input_of(const struct net *n, const char *name) {
    for (i32 i = 0; i < n->nbuf; i++)
        if (n->buf[i].input && strcmp(n->buf[i].name, name) == 0) return i;
    return -1;
}

static const i32 *ids_of(const struct batcher *b, const char *name) {
    return (const i32 *)(const void *)b->slot[0].input[input_of(b->net, name)];
}

/* Step t of window w in a batch of slices is step t of the uncut batch, every input of it. */
static void slices_hold(const struct session *s, i32 P) {
    enum { NWIN = 2, W = NWIN * NCOL };
    static struct forecaster f;
    struct batcher whole, part;
    cut(s, P, &f);
    T_OK(batcher_new(s->f, &s->f->net, &s->f->shape, series_of(s->d->set), s->use->kern, W, 1, &whole));
    T_OK(batcher_new(&f, &f.net, &f.shape, series_of(s->d->set), s->use->kern, W * P, 1, &part));
    whole.set = part.set = (struct window_set){.first = C, .end = 3 * C + 41, .stride = 1};
    whole.scored = part.scored = (struct window_set){.first = 1, .end = INT64_MAX, .stride = 1};
    whole.nwin = part.nwin = NWIN;
    batch_fill_tiles(&whole, 3, 0);
    batch_fill_tiles(&part, 3, 0);
    assert_int_equal(whole.slot[0].present, part.slot[0].present);
    assert_int_equal(input_of(&f.net, "length") >= 0, C % P != 0);
    assert_int_equal(input_of(&f.net, "after") >= 0, P > 1);
    for (i32 r = 0, before = 1 << 30; r < W * P; r++) {
        struct slice_place p = forecast_slice(f.spec.context, P, W * P, r),
                           ahead = forecast_slice(f.spec.context, P, W * P, imax(0, r - W));
        assert_int_equal(p.after, r < W ? -1 : r - W);
        assert_true(p.steps <= before && p.steps >= C / P);
        before = p.steps;
        if (r < W) assert_int_equal(p.from, 0);
        else assert_int_equal(p.from, ahead.from + ahead.steps);
        if (r >= W * (P - 1)) assert_int_equal(p.from + p.steps, C);
        if (C % P) assert_int_equal(ids_of(&part, "length")[r], p.steps);
        if (P > 1) assert_int_equal(ids_of(&part, "after")[r], p.after);
        for (i32 i = 0; i < s->f->net.nbuf; i++) {
            const struct buf *buf = &s->f->net.buf[i];
            if (!buf->input) continue;
            size_t ld = buf->ids ? 1 : (size_t)buf_fp(buf);
            const f32 *a = part.slot[0].input[input_of(&f.net, buf->name)], *b = whole.slot[0].input[i];
            for (i32 t = 0; t < p.steps; t++)
                assert_memory_equal(a + ((size_t)t * (size_t)(W * P) + (size_t)r) * ld,
                                    b + ((size_t)(p.from + t) * W + (size_t)(r % W)) * ld, sizeof(f32) * ld);
        }
    }
    batcher_free(&whole);
    batcher_free(&part);
}

TEST(slices_are_the_window_cut_in_time) {
    static const char *const more[] = {"base", "last", NULL};
    struct session s = trained(more);
    static const i32 P[] = {1, 2, 3, 5, 7, 31};
    for (size_t i = 0; i < COUNT(P); i++) slices_hold(&s, P[i]);
    session_end(&s);
}

/* The same steps whole and in slices: the same model, as far as the tolerance of the chain allows. */
TEST(training_in_slices_gives_the_model_of_training_whole) {
    static const char *const whole[] = {"parallel", "serial", NULL};
    static const char *const cuts[][3] = {{"parallel", "time:4", NULL}, {"parallel", "time:7", NULL}};
    struct window_set set = {.first = 500, .end = ROWS + 1, .stride = 1};
    struct session s = trained(whole);
    one = (struct kept){.first = set.first};
    T_OK(forecast_windows(s.f, series_of(s.d->set), &set, s.use, keep, &one));
    session_end(&s);
    for (size_t k = 0; k < COUNT(cuts); k++) {
        s = trained(cuts[k]);
        assert_int_equal(s.f->spec.cut.slices, k ? 7 : 4);
        two = (struct kept){.first = set.first};
        T_OK(forecast_windows(s.f, series_of(s.d->set), &set, s.use, keep, &two));
        for (i32 i = 0; i < one.n * H; i++)
            if (!(fabsf(one.both[i] - two.both[i]) < 2e-3f))
                fail_msg("%s: %g, whole %g", cuts[k][1], (f64)two.both[i], (f64)one.both[i]);
        session_end(&s);
    }
}

/* --- files --- */
TEST(a_stream_is_the_same_after_saving_and_loading) {
    struct session s = trained(NULL);
    char path[700];
    f64 before[H * NCOL], after[H * NCOL];
    stretto_model *m;
    stretto_data *d;
    snprintf(path, sizeof path, "%s/stream.model", t_dir());
    T_OK(stretto_trainer_save(s.t, path));
    T_OK(stretto_model_load(path, &m));
    T_OK(stretto_model_open(m, session_rows(ROWS), &d));
    assert_true(forecaster_in(m->m)->spec.decoder->every_step);
    T_FAILS(stretto_predict(m, d, after, NULL), 302); /* the known column ends with the rows */
    struct window_set set = {.first = ROWS - H, .end = ROWS - H + 1, .stride = 1};
    one = (struct kept){.first = set.first}, two = (struct kept){.first = set.first};
    T_OK(forecast_windows(s.f, series_of(s.d->set), &set, s.use, keep, &one));
    T_OK(forecast_windows(forecaster_in(m->m), series_of(d->set), &set, s.use, keep, &two));
    for (i32 i = 0; i < H * NCOL; i++) before[i] = (f64)one.mean[i], after[i] = (f64)two.mean[i];
    for (i32 i = 0; i < H * NCOL; i++) assert_true(isfinite(before[i]) && fabs(before[i] - after[i]) < 1e-5);
    stretto_data_free(d);
    stretto_model_free(m);
    session_end(&s);
}

T_MAIN(cmocka_unit_test(forecasts_do_not_depend_on_where_chunks_begin),
       cmocka_unit_test(nor_do_those_of_members_with_quantiles_and_a_base),
       cmocka_unit_test(the_walk_gives_what_the_trained_net_gives),
       cmocka_unit_test(the_walk_does_not_look_ahead),
       cmocka_unit_test(the_walk_begins_a_context_before_the_first_origin), cmocka_unit_test(an_epoch_takes_every_tile_once),
       cmocka_unit_test(slices_are_the_window_cut_in_time),
       cmocka_unit_test(training_in_slices_gives_the_model_of_training_whole),
       cmocka_unit_test(a_stream_is_the_same_after_saving_and_loading))
