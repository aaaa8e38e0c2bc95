/* t_restore.c - a checkpoint whose sums hold and whose numbers do not: E901, whatever is in it.  A checkpoint with residuals of a
 * codec: the resumed run has the bits of the uninterrupted one. */
#include <stddef.h>

#include "base/file.h"
#include "base/mem.h"
#include "learn/slices/slices.h"
#include "ckpt/crc32c.h"
#include "ckpt/manifest.h"
#include "exec/one_bit.h"
#include "slicing.h"

static struct session sliced(void) { return begun((const char *[]){"parallel", "time:4", "steps", "200", NULL}); }

/* A run that was stopped after some steps; its folder. */
static void stopped(const struct session *s, const char *dir) {
    struct watcher w = {.stop_at = 20};
    struct forecaster *none;
    assert_int_equal(fit(s, 0, &w, dir, false, &none), STOP_SIGNAL);
}

/* n bytes of a tensor, with all sums as if that had been saved. */
static void rewrite(const char *dir, const char *tensor, i64 at, const void *bytes, size_t n) {
    char checkpoints[800], path[4096], shard[4200], name[SHARD_NAME], manifest[4200], *text;
    struct manifest m;
    struct str out = {0};
    i64 number, size;
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", dir);
    T_OK(ckpt_find(checkpoints, 0, path, &number));
    snprintf(manifest, sizeof manifest, "%s/MANIFEST", path);
    T_OK(manifest_load(manifest, &m));
    const struct manifest_tensor *t = manifest_find(&m, tensor);
    assert_true(t && t->npiece == 1 && at + (i64)n <= t->n * (i64)dtype_size(t->dtype));
    shard_name(t->piece[0].shard, m.nshard, name);
    snprintf(shard, sizeof shard, "%s/%s", path, name);
    T_OK(file_load(shard, 1 << 24, &text, &size));
    memcpy(text + t->piece[0].at + at, bytes, n);
    T_OK(file_write_all(shard, text, size));
    m.shard[t->piece[0].shard].crc = crc32c(0, text, size);
    T_OK(manifest_text(&m, &out));
    T_OK(file_write_all(manifest, out.s, (i64)out.len));
    mem_free(text);
    str_free(&out);
    manifest_free(&m);
}

static err resumed(const struct session *s, const char *dir) {
    struct watcher w = {0};
    struct forecaster *f = NULL;
    const err e = fit(s, 0, &w, dir, true, &f);
    if (e >= 0) forecast_free(&f->model);
    return e;
}

TEST(numbers_of_a_checkpoint_are_not_believed) {
    static const struct {
        const char *tensor;
        i64 at;
        size_t n;
        union {
            i64 i;
            f64 f;
        } v;
    } wild[] = {
        {"step", 0, 8, {.i = -1}},
        {"step", 0, 8, {.i = INT64_MAX}},
        {"best_step", 0, 8, {.i = -1}},
        {"bad", 0, 8, {.i = INT64_MAX}},
        {"good_step", 0, 8, {.i = -5}},
        {"rollbacks", 0, 8, {.i = INT64_MAX}},
        {"loss_count", 0, 8, {.i = INT64_MAX}},
        {"steps_done", 0, 8, {.i = INT64_MAX}},
        {"best_steps", 16, 8, {.i = INT64_MIN}},
        {"lr_factor", 0, 8, {.f = (f64)NAN}},
        {"lr_factor", 0, 8, {.f = 1e30}},
        {"weight", 0, 8, {.f = 2}},
        {"watch", offsetof(struct slice_watch, slices), 4, {.i = 0}},
        {"watch", offsetof(struct slice_watch, nlayer), 4, {.i = WATCH_LAYERS + 1}},
        {"watch", offsetof(struct slice_watch, layer[0].all[1].again), 8, {.i = INT64_MAX}},
        {"watch", offsetof(struct slice_watch, history.whole), 4, {.i = INT32_MAX}},
        {"watch", offsetof(struct slice_watch, history.rose), 1, {.i = 3}},
        {"watch", offsetof(struct slice_watch, planned), 1, {.i = 7}},
        {"watch", offsetof(struct slice_watch, turns.n), 4, {.i = 1 << 20}},
    };
    struct session s = sliced();
    char dir[700];
    for (size_t i = 0; i < COUNT(wild); i++) {
        snprintf(dir, sizeof dir, "%s/wild%zu", t_dir(), i);
        stopped(&s, dir);
        rewrite(dir, wild[i].tensor, wild[i].at, &wild[i].v, wild[i].n);
        const err e = resumed(&s, dir);
        if (e != -E901) fail_msg("%s at %lld: %d, %s", wild[i].tensor, (long long)wild[i].at, e, err_last()->text);
    }
    session_end(&s);
}

/* A turn to a number of slices that cannot be. */
TEST(turns_of_a_checkpoint_are_not_believed) {
    const struct plan_turns turns = {.n = 1, .at = {{.step = 24, .slices = 1 << 20}}};
    struct session s = sliced();
    char dir[700];
    snprintf(dir, sizeof dir, "%s/turned", t_dir());
    stopped(&s, dir);
    rewrite(dir, "watch", offsetof(struct slice_watch, turns), &turns, sizeof turns);
    T_FAILS(resumed(&s, dir), E901);
    session_end(&s);
}

/* Else the two above would say nothing. */
TEST(a_checkpoint_that_was_written_anew_as_it_was_is_taken) {
    const f64 as_it_was = 1;
    struct session s = sliced();
    char dir[700];
    snprintf(dir, sizeof dir, "%s/same", t_dir());
    stopped(&s, dir);
    rewrite(dir, "lr_factor", 0, &as_it_was, sizeof as_it_was);
    T_OK(resumed(&s, dir));
    session_end(&s);
}

/* ------------------------------------------------------------------ residuals ----------------------------------------------- */

static void same_weights(const struct forecaster *a, const struct forecaster *b, bool same) {
    const bool equal = memcmp(a->theta[0], b->theta[0], sizeof(f32) * (size_t)a->net.ntheta) == 0;
    if (equal != same) fail_msg("the weights are %s", same ? "others" : "the same");
}

static bool has_residuals(const char *dir) {
    char checkpoints[800], path[4096];
    struct ckpt *c;
    i64 key, number;
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", dir);
    T_OK(ckpt_find(checkpoints, 0, path, &number));
    T_OK(ckpt_open(path, &c));
    const bool has = ckpt_take(c, &(struct ckpt_item){"residual.key", DTYPE_I64, &key, 1}, 1) >= 0;
    ckpt_close(c);
    return has;
}

/* Without load balancing: when micro-batches move between ranks, residuals restart from zero (codec.h). */
static void resume_with_codec(const char *policy, const struct codec *codec) {
    struct session s = begun((const char *[]){"ranks", "3", "pipeline", policy, "batch", "6", "parallel", "data", "steps", "100",
                                              "balance", "off", NULL});
    struct watcher w = {0}, stop = {.stop_at = 9};
    struct forecaster *whole, *none, *resumed, *plain;
    char dir[700];
    snprintf(dir, sizeof dir, "%s/%s-%d", t_dir(), policy, codec != NULL);
    T_OK(fit(&s, 0, &w, NULL, false, &plain));
    codec_try_first(codec);
    T_OK(fit(&s, 0, &w, NULL, false, &whole));
    assert_int_equal(fit(&s, 0, &stop, dir, false, &none), STOP_SIGNAL);
    assert_true(has_residuals(dir) == (codec != NULL));
    T_OK(fit(&s, 0, &w, dir, true, &resumed));
    same_weights(whole, resumed, true);
    same_weights(whole, plain, codec == NULL);
    assert_int_equal(w.warnings, 0);
    codec_try_first(NULL);
    forecast_free(&plain->model);
    forecast_free(&whole->model);
    forecast_free(&resumed->model);
    session_end(&s);
}

TEST(a_run_resumes_with_what_its_codec_dropped) {
    resume_with_codec("overlap", &codec_one_bit);
    resume_with_codec("linear", &codec_one_bit);
    resume_with_codec("delay1", &codec_one_bit);
    resume_with_codec("overlap", NULL);
}

/* As from a version without residuals in checkpoints: the codec starts from zero, with a warning. */
TEST(a_run_resumes_without_residuals_in_its_checkpoint) {
    struct session s = begun((const char *[]){"ranks", "2", "batch", "6", "parallel", "data", "steps", "100",
                                              "balance", "off", NULL});
    struct watcher w = {0};
    struct forecaster *resumed;
    char dir[700];
    snprintf(dir, sizeof dir, "%s/older", t_dir());
    stopped(&s, dir);
    codec_try_first(&codec_one_bit);
    T_OK(fit(&s, 0, &w, dir, true, &resumed));
    codec_try_first(NULL);
    assert_int_equal(w.warnings, 1);
    forecast_free(&resumed->model);
    session_end(&s);
}

T_MAIN(cmocka_unit_test(numbers_of_a_checkpoint_are_not_believed), cmocka_unit_test(turns_of_a_checkpoint_are_not_believed),
       cmocka_unit_test(a_checkpoint_that_was_written_anew_as_it_was_is_taken),
       cmocka_unit_test(a_run_resumes_with_what_its_codec_dropped),
       cmocka_unit_test(a_run_resumes_without_residuals_in_its_checkpoint))
