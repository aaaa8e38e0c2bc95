/* t_shares.c - --combine average: the network is the one that learns without a base, and the forecast is the mean of both by
 * shares that no other candidate of their piece of the horizon beats on validation. */
#include <string.h>

#include "learn/forecast/shares.h"
#include "learn/session.h"

enum { ROWS = 620, H = 12, MOST = 4096 };

static const char *const options[] = {"preset", "none",   "target", "a,b",  "past", "past", "known",   "ahead", "cat",
                                      "kind",   "gaps",   "mask",   "horizon", "12", "freq", "1h",    "context", "48",
                                      "segment", "4",     "decoder", "parallel", "cell", "gru", "hidden", "12",  "steps",
                                      "60",     "validate-every", "20", "batch", "16", "lr", "0.01",  "season", "24", NULL};

/* Base, forecast and whole network of every validation window, in the order of forecast_windows(). */
struct kept {
    i64 n;
    f32 base[MOST][H], mean[MOST][H], y[MOST][H], div[MOST];
    const struct series *s;
};

static err keep(void *self, const struct forecast_row *row) {
    struct kept *k = self;
    assert_true(k->n < MOST);
    memcpy(k->base[k->n], row->base, sizeof(f32) * H);
    memcpy(k->mean[k->n], row->mean, sizeof(f32) * H);
    for (i32 i = 0; i < H; i++) k->y[k->n][i] = series_target(k->s, row->col, row->origin + i);
    k->div[k->n++] = row->div;
    return 0;
}

static void forecasts(const struct session *s, struct kept *out) {
    const struct split *p = &s->t->job.split;
    const struct window_set valid = {.first = p->train, .end = p->validation - H + 1, .stride = 1};
    out->n = 0;
    out->s = series_of(s->d->set);
    T_OK(forecast_windows(s->f, out->s, &valid, s->use, keep, out));
    assert_true(out->n > 60);
}

/* Mean loss of a share on the steps [from, to) of the horizon. */
static f64 loss(const struct kept *alone, const struct kept *both, i32 from, i32 to, f64 share, bool squared) {
    f64 sum = 0, n = 0;
    for (i64 w = 0; w < both->n; w++)
        for (i32 k = from; k < to; k++) {
            if (isnan(both->y[w][k])) continue;
            const f64 base = (f64)both->base[w][k], net = (f64)alone->mean[w][k];
            const f64 e = ((f64)both->y[w][k] - base - share * (net - base)) / (f64)both->div[w];
            sum += squared ? e * e : fabs(e);
            n++;
        }
    return sum / n;
}

static void averages(const char *loss_name) {
    static struct kept alone, both;
    const char *rest[] = {"base", "none", "guard", "no", "loss", loss_name, NULL};
    struct session a = session_run(session_rows(ROWS), options, rest);
    forecasts(&a, &alone);
    const char *more[] = {"base", "season", "guard", "no", "loss", loss_name, "combine", "average", NULL};
    struct session b = session_run(session_rows(ROWS), options, more);
    forecasts(&b, &both);
    const struct forecaster *f = b.f;
    assert_int_equal(a.f->net.ntheta, f->net.ntheta);
    assert_memory_equal(a.f->theta[0], f->theta[0], sizeof(f32) * (size_t)f->net.ntheta);
    assert_int_equal(f->shares.n, 3);
    assert_int_equal(alone.n, both.n);
    for (i64 w = 0; w < both.n; w++)
        for (i32 k = 0; k < H; k++) {
            const f64 base = (f64)both.base[w][k], share = f->shares.of[k / 4];
            assert_true(fabs((f64)both.mean[w][k] - base - share * ((f64)alone.mean[w][k] - base)) < 2e-5);
        }
    const bool squared = strcmp(loss_name, "mse") == 0;
    for (i32 p = 0; p < 3; p++) {
        const f64 mine = f->shares.of[p];
        const f64 least = loss(&alone, &both, 4 * p, 4 * p + 4, mine, squared) + loss(&alone, &both, 0, H, mine, squared);
        for (i32 i = 0; i <= 20; i++) {
            const f64 other = i / 20.0;
            assert_true(loss(&alone, &both, 4 * p, 4 * p + 4, other, squared) + loss(&alone, &both, 0, H, other, squared) >=
                        least - 1e-6);
        }
    }
    session_end(&a);
    session_end(&b);
}

TEST(forecast_is_the_mean_by_the_best_shares_of_squares) { averages("mse"); }
TEST(forecast_is_the_mean_by_the_best_shares_of_distances) { averages("mae"); }

TEST(shares_of_a_file_are_looked_at) {
    struct shares s = {.n = 2, .of = {0.25, 1}}, t;
    struct js *list = shares_json(&s);
    shares_read(list, &t);
    assert_int_equal(t.n, 2);
    assert_true(t.of[0] == 0.25 && t.of[1] == 1 && shares_sound(&t));
    js_push(list, js_new_f64(1.5));
    shares_read(list, &t);
    assert_false(shares_sound(&t));
    js_push(list, js_new_text("x"));
    shares_read(list, &t);
    assert_false(shares_sound(&t));
    js_free(list);
    shares_read(NULL, &t);
    assert_true(t.n == 0 && shares_sound(&t));
}

T_MAIN(cmocka_unit_test(forecast_is_the_mean_by_the_best_shares_of_squares),
       cmocka_unit_test(forecast_is_the_mean_by_the_best_shares_of_distances), cmocka_unit_test(shares_of_a_file_are_looked_at))
