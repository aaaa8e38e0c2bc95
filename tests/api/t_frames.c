/* t_frames.c - memory instead of files: models as bytes, predictions as columns of Arrow, and both against what files hold. */
#include "t.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/arrow_c.h"
#include "stretto/stretto.h"

enum { HORIZON = 6 };

struct trained {
    stretto_config *config;
    stretto_data *data;
    stretto_trainer *trainer;
    stretto_model *model;
};

static stretto_config *quick(const char *target) {
    stretto_config *c = stretto_config_new();
    const char *const option[][2] = {{"target", target}, {"horizon", "6"}, {"members", "1"}, {"steps", "5"}, {"threads", "1"}};
    for (size_t i = 0; i < COUNT(option); i++) T_OK(stretto_config_set(c, option[i][0], option[i][1]));
    return c;
}

static void train(const char *sample, const char *target, struct trained *t) {
    char *text = NULL;
    *t = (struct trained){.config = quick(target)};
    T_OK(stretto_sample(sample, 400, 3, &text));
    T_OK(stretto_data_open(t->config, t_file("series.csv", text), &t->data));
    stretto_text_free(text);
    T_OK(stretto_trainer_new(t->config, t->data, &t->trainer));
    assert_true(stretto_trainer_run(t->trainer) > 0);
    t->model = stretto_trainer_model(t->trainer);
}

static void drop(struct trained *t) {
    stretto_trainer_free(t->trainer);
    stretto_data_free(t->data);
    stretto_config_free(t->config);
}

TEST(bytes_of_a_model_are_those_of_its_file) {
    struct trained t;
    void *bytes;
    char path[600], *file;
    size_t n;
    i64 size;
    double a[HORIZON], b[HORIZON];
    train("tides", "height", &t);
    snprintf(path, sizeof path, "%s/m.model", t_dir());
    T_OK(stretto_model_save(t.model, path));
    T_OK(file_load(path, 1 << 28, &file, &size));
    T_OK(stretto_model_to_bytes(t.model, &bytes, &n));
    assert_int_equal(n, size);
    assert_memory_equal(bytes, file, n);
    mem_free(file);

    stretto_model *again;
    T_OK(stretto_model_from_bytes(bytes, n, &again));
    T_OK(stretto_predict(t.model, t.data, a, NULL));
    T_OK(stretto_predict(again, t.data, b, NULL));
    assert_memory_equal(a, b, sizeof a);
    char *info = NULL;
    T_OK(stretto_model_info(again, 0, &info));
    assert_null(strstr(info, "/proc"));
    stretto_text_free(info);
    stretto_model_free(again);

    T_FAILS(stretto_model_from_bytes(bytes, n / 2, &again), 901);
    assert_null(again);
    assert_null(strstr(stretto_errwhere(), "/proc"));
    assert_null(strstr(stretto_errmsg(), "/proc"));
    T_FAILS(stretto_model_from_bytes("", 0, &again), 901);
    stretto_bytes_free(bytes);
    stretto_bytes_free(NULL);
    drop(&t);
}

static const struct ArrowArray *column(const struct ArrowArray *a, const struct ArrowSchema *s, const char *name,
                                       const char *format) {
    for (int64_t i = 0; i < s->n_children; i++) {
        if (strcmp(s->children[i]->name, name) != 0) continue;
        assert_string_equal(s->children[i]->format, format);
        assert_int_equal(a->children[i]->length, a->length);
        return a->children[i];
    }
    fail_msg("there is no column %s", name);
    return NULL;
}

TEST(predictions_as_columns_are_those_of_the_arrays) {
    struct trained t;
    struct ArrowArray a;
    struct ArrowSchema s;
    double mean[HORIZON], band[HORIZON * 3];
    train("tides", "height", &t);
    const int nq = stretto_model_quantiles(t.model);
    assert_int_equal(nq, 3);
    T_OK(stretto_predict(t.model, t.data, mean, band));
    T_OK(stretto_predict_arrow(t.model, t.data, 0, 0, &a, &s));
    assert_int_equal(a.length, HORIZON);
    const double *m = column(&a, &s, "mean", "g")->buffers[1], *q = column(&a, &s, "q0.9", "g")->buffers[1];
    const int64_t *time = column(&a, &s, "time", "tss:")->buffers[1], *step = column(&a, &s, "step", "l")->buffers[1];
    const int64_t *origin = column(&a, &s, "origin", "tss:")->buffers[1];
    const struct ArrowArray *id = column(&a, &s, "id", "U");
    for (int k = 0; k < HORIZON; k++) {
        assert_true(m[k] == mean[k] && q[k] == band[k * 3 + 2]);
        assert_int_equal(step[k], k + 1);
        assert_int_equal(time[k] - origin[k], (k + 1) * 3600);
    }
    assert_memory_equal(id->buffers[2], "heightheight", 12);
    assert_int_equal(((const int64_t *)id->buffers[1])[2], 12);
    a.release(&a);
    assert_int_equal(s.n_children, 8); /* the schema outlives the array */
    s.release(&s);

    T_OK(stretto_predict_arrow(t.model, t.data, 4, 7, &a, &s));
    assert_int_equal(a.n_children, 8);
    assert_true(fabs(((const double *)column(&a, &s, "sample.4", "g")->buffers[1])[0] - mean[0]) < 10);
    s.release(&s);
    a.release(&a);
    T_FAILS(stretto_predict_arrow(t.model, t.data, -1, 7, &a, &s), 106);
    assert_true(!a.release && !s.release);
    drop(&t);
}

/* ------------------------------------------------------------------ a frame ------------------------------------------------- */

static double tide[400];

static void no_release_schema(struct ArrowSchema *s) { s->release = NULL; }
static void no_release_array(struct ArrowArray *a) { a->release = NULL; }
static void no_release_stream(struct ArrowArrayStream *s) { s->release = NULL; }

static int one_column(struct ArrowArrayStream *s, struct ArrowSchema *out) {
    static struct ArrowSchema column = {.format = "g", .name = "height"}, *child[1] = {&column};
    (void)s;
    *out = (struct ArrowSchema){.format = "+s", .n_children = 1, .children = child, .release = no_release_schema};
    return 0;
}

static int one_batch(struct ArrowArrayStream *s, struct ArrowArray *out) {
    static const void *buffer[2] = {NULL, tide}, *none[1];
    static struct ArrowArray column = {.length = 400, .n_buffers = 2, .buffers = buffer}, *child[1] = {&column};
    *out = (struct ArrowArray){0};
    if (s->private_data) return 0;
    s->private_data = tide;
    *out = (struct ArrowArray){.length = 400, .n_buffers = 1, .buffers = none, .n_children = 1, .children = child,
                               .release = no_release_array};
    return 0;
}

TEST(a_frame_trains_as_its_file_does) {
    struct ArrowArrayStream s = {.get_schema = one_column, .get_next = one_batch, .release = no_release_stream};
    struct trained t;
    double a[HORIZON], b[HORIZON];
    stretto_frame *frame;
    stretto_data *d;
    stretto_trainer *trainer;
    char *data_path = NULL, *model_path = NULL, folder[600];
    train("tides", "height", &t);
    for (int i = 0; i < 400; i++) tide[i] = stretto_data_value(t.data, 0, i);
    T_OK(stretto_frame_new(&s, "data frame", &frame));
    T_OK(stretto_config_set(t.config, "calendar", "no"));
    T_OK(stretto_data_open(t.config, stretto_frame_path(frame), &d));
    stretto_frame_free(frame);
    assert_int_equal(stretto_data_rows(d), 400);
    assert_non_null(strstr(stretto_data_summary(d), "data frame"));
    T_OK(stretto_trainer_new(t.config, d, &trainer));
    snprintf(folder, sizeof folder, "%s/frame.run", t_dir());
    T_OK(stretto_trainer_run_dir(trainer, folder, 0));
    assert_true(stretto_trainer_run(trainer) > 0);
    T_OK(stretto_run_paths(folder, &data_path, &model_path));
    stretto_data *none;
    T_FAILS(stretto_data_open(t.config, data_path, &none), 701); /* no other process can have it */
    assert_non_null(strstr(stretto_errmsg(), "in the memory of a program, and is no more"));
    stretto_text_free(data_path);
    stretto_text_free(model_path);
    T_OK(stretto_predict(stretto_trainer_model(trainer), d, b, NULL));
    stretto_trainer_free(trainer);
    stretto_data_free(d);
    stretto_frame_free(NULL);

    const char *const name = "height";
    T_OK(stretto_data_wrap(t.config, tide, 400, 1, &name, 0, 0, &d));
    T_OK(stretto_trainer_new(t.config, d, &trainer));
    assert_true(stretto_trainer_run(trainer) > 0);
    T_OK(stretto_predict(stretto_trainer_model(trainer), d, a, NULL));
    assert_memory_equal(a, b, sizeof a);
    stretto_trainer_free(trainer);
    stretto_data_free(d);
    drop(&t);
}

/* ------------------------------------------------------------------ threads ------------------------------------------------ */

enum { CLIENTS = 8, REQUESTS = 4 };

struct client {
    pthread_t thread;
    const void *bytes;
    size_t n;
    double mean[REQUESTS][HORIZON];
    err failed;
};

/* A client with a handle of its own: a frame, data and a forecast at each request. */
static void *forecast(void *self) {
    struct client *c = self;
    stretto_model *m = NULL;
    err e = stretto_model_from_bytes(c->bytes, c->n, &m);
    for (i32 k = 0; e >= 0 && k < REQUESTS; k++) {
        struct ArrowArrayStream s = {.get_schema = one_column, .get_next = one_batch, .release = no_release_stream};
        stretto_frame *frame = NULL;
        stretto_data *d = NULL;
        e = stretto_frame_new(&s, "data frame", &frame);
        if (e >= 0) e = stretto_model_open(m, stretto_frame_path(frame), &d);
        if (e >= 0) e = stretto_predict(m, d, c->mean[k], NULL);
        stretto_data_free(d);
        stretto_frame_free(frame);
    }
    stretto_model_free(m);
    c->failed = e;
    return NULL;
}

/* Also under the thread sanitizer: what the process keeps between forecasts is shared by its threads. */
TEST(threads_with_their_own_handles_forecast_at_the_same_time) {
    static struct client client[CLIENTS];
    struct ArrowArrayStream s = {.get_schema = one_column, .get_next = one_batch, .release = no_release_stream};
    struct trained t;
    stretto_frame *frame;
    stretto_data *d;
    void *bytes;
    size_t n;
    double want[HORIZON];
    train("tides", "height", &t);
    for (int i = 0; i < 400; i++) tide[i] = stretto_data_value(t.data, 0, i);
    drop(&t);
    t = (struct trained){.config = quick("height")};
    T_OK(stretto_frame_new(&s, "data frame", &frame));
    T_OK(stretto_data_open(t.config, stretto_frame_path(frame), &d));
    T_OK(stretto_trainer_new(t.config, d, &t.trainer));
    assert_true(stretto_trainer_run(t.trainer) > 0);
    T_OK(stretto_model_to_bytes(stretto_trainer_model(t.trainer), &bytes, &n));
    T_OK(stretto_predict(stretto_trainer_model(t.trainer), d, want, NULL));
    for (i32 i = 0; i < CLIENTS; i++) {
        client[i] = (struct client){.bytes = bytes, .n = n};
        assert_int_equal(pthread_create(&client[i].thread, NULL, forecast, &client[i]), 0);
    }
    for (i32 i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_join(client[i].thread, NULL), 0);
        assert_int_equal(client[i].failed, 0);
        for (i32 k = 0; k < REQUESTS; k++) assert_memory_equal(client[i].mean[k], want, sizeof want);
    }
    stretto_bytes_free(bytes);
    stretto_trainer_free(t.trainer);
    stretto_data_free(d);
    stretto_frame_free(frame);
    stretto_config_free(t.config);
}

/* A consumer may take a column and release the rest. */
TEST(a_column_outlives_its_table) {
    struct trained t;
    struct ArrowArray a, mean;
    struct ArrowSchema s;
    train("tides", "height", &t);
    T_OK(stretto_predict_arrow(t.model, t.data, 0, 0, &a, &s));
    mean = *column(&a, &s, "mean", "g");
    a.children[4]->release = NULL; /* moved */
    a.release(&a);
    s.release(&s);
    assert_true(isfinite(((const double *)mean.buffers[1])[HORIZON - 1]));
    mean.release(&mean);
    drop(&t);
}

TEST(a_lack_of_memory_leaves_nothing_behind) {
    struct trained t;
    struct ArrowArray a;
    struct ArrowSchema s;
    train("tides", "height", &t);
    T_OK(stretto_predict_arrow(t.model, t.data, 0, 0, &a, &s));
    a.release(&a);
    s.release(&s);
    const i64 before = mem_stats().live;
    err e = -1;
    for (i64 n = 1; e < 0 && n < 10000; n++) {
        mem_fail_nth(n);
        e = stretto_predict_arrow(t.model, t.data, 0, 0, &a, &s);
        mem_fail_nth(0);
        if (e < 0) assert_true(!a.release && !s.release);
        if (e < 0) assert_int_equal(stretto_errcode(), 601);
        if (e < 0) assert_int_equal(mem_stats().live, before);
    }
    T_OK(e);
    a.release(&a);
    s.release(&s);
    drop(&t);
}

T_MAIN(cmocka_unit_test(bytes_of_a_model_are_those_of_its_file),
       cmocka_unit_test(predictions_as_columns_are_those_of_the_arrays), cmocka_unit_test(a_column_outlives_its_table),
       cmocka_unit_test(a_frame_trains_as_its_file_does),
       cmocka_unit_test(threads_with_their_own_handles_forecast_at_the_same_time),
       cmocka_unit_test(a_lack_of_memory_leaves_nothing_behind))
