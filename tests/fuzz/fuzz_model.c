/* fuzz_model.c - any forecaster description inside a valid model file: E901 (E902, E903), or a model that can be described,
 * scored and used for a forecast safely.
 *
 *     input = the JSON text of "stretto.forecast"; around it always the same tensors: an lstm 1x1 with context 4 and horizon 2, a
 *     ridge base of that shape, one quantile */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "ckpt/safetensors.h"
#include "stretto/stretto.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(condition)            \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

enum { FLOATS = 4096, ROWS = 64 };
static char dir[64], path[96], csv[96];
static f32 values[FLOATS];
static f64 mase = 1;

static void remove_dir(void) {
    unlink(path);
    unlink(csv);
    rmdir(dir);
}

static void begin(void) {
    if (dir[0]) return;
    snprintf(dir, sizeof dir, "/dev/shm/stretto_fuzz_XXXXXX");
    if (!mkdtemp(dir)) {
        snprintf(dir, sizeof dir, "/tmp/stretto_fuzz_XXXXXX");
        MUST(mkdtemp(dir));
    }
    snprintf(path, sizeof path, "%s/m", dir);
    snprintf(csv, sizeof csv, "%s/d.csv", dir);
    FILE *f = fopen(csv, "w");
    MUST(f);
    fputs("t,y,z\n", f);
    for (i32 i = 0; i < ROWS; i++) fprintf(f, "2020-01-%02d %02d:00,%d,%d\n", 1 + i / 24, i % 24, i % 7, i % 5);
    fclose(f);
    for (i32 i = 0; i < FLOATS; i++) values[i] = 0.01f * (f32)(i % 17 - 8);
    atexit(remove_dir);
}

static void options_of(const char *json, struct str *out) {
    struct js *o = NULL;
    if (js_parse(json, strlen(json), "model", &o) < 0 || js_text(js_get(o, "options"), out, 0) < 0) err_clear();
    js_free(o);
    if (!out->len) str_add(out, "{}");
}

static err write_model(const char *json, const char *options) {
    struct meta meta[] = {{"stretto.schema", "1"},
                          {"stretto.forecast", json},
                          {"stretto.options", options},
                          {"stretto.record", "{}"}};
    struct tens t[] = {{.name = "lstm.weight_ih_l0", .dtype = DTYPE_F32, .ndim = 2, .dim = {4, 1}, .data = values},
                       {.name = "lstm.weight_hh_l0", .dtype = DTYPE_F32, .ndim = 2, .dim = {4, 1}, .data = values},
                       {.name = "lstm.bias_ih_l0", .dtype = DTYPE_F32, .ndim = 1, .dim = {4}, .data = values},
                       {.name = "lstm.bias_hh_l0", .dtype = DTYPE_F32, .ndim = 1, .dim = {4}, .data = values},
                       {.name = "head.weight", .dtype = DTYPE_F32, .ndim = 2, .dim = {2, 1}, .data = values},
                       {.name = "head.bias", .dtype = DTYPE_F32, .ndim = 1, .dim = {2}, .data = values},
                       {.name = "base.ridge", .dtype = DTYPE_F32, .ndim = 2, .dim = {5, 2}, .data = values},
                       {.name = "spread", .dtype = DTYPE_F32, .ndim = 2, .dim = {1, 2}, .data = values},
                       {.name = "scale.mase", .dtype = DTYPE_F64, .ndim = 1, .dim = {1}, .data = &mase}};
    return st_write(path, t, (i32)COUNT(t), meta, (i32)COUNT(meta));
}

static void use(stretto_model *m) {
    stretto_data *d = NULL;
    char *text = NULL;
    double skill;
    if (stretto_model_info(m, 0, &text) == 0) stretto_text_free(text);
    if (stretto_model_horizon(m) > ROWS || stretto_model_context(m) > ROWS) return;
    if (stretto_model_open(m, csv, &d) < 0) return;
    text = NULL;
    if (stretto_predict_file(m, d, "-", 0, &text) == 0) stretto_text_free(text);
    if (stretto_sample_file(m, d, "-", 9, 1, &text) == 0) stretto_text_free(text);
    if (stretto_marginals_file(m, d, "-", &text) == 0) stretto_text_free(text);
    text = NULL;
    if (stretto_eval(m, d, NULL, 0, &text, &skill) == 0) stretto_text_free(text);
    stretto_data_free(d);
}

static void once(const char *json) {
    stretto_model *m = NULL;
    struct str options = {0};
    mem_set_limit(256 << 20);
    options_of(json, &options);
    if (write_model(json, str_text(&options)) < 0) { /* no UTF-8: the writer refuses it */
    } else if (stretto_model_load(path, &m) >= 0) {
        use(m);
    } else {
        int code = stretto_errcode();
        if (code != 901 && code != 902 && code != 601 && code != 101 && code != 103 && code != 104) {
            fprintf(stderr, "E%03d %s\n", code, stretto_errmsg());
            abort();
        }
    }
    stretto_model_free(m);
    str_free(&options);
    mem_set_limit(0);
}

/* Runs twice: the first call creates global tables, so the second must not leak. */
int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    char *json;
    begin();
    if (size > 1 << 16 || memchr(data, 0, size)) return 0;
    MUST((json = mem_alloc(size + 1)));
    memcpy(json, data, size);
    once(json);
    i64 live = mem_stats().live;
    once(json);
    MUST(mem_stats().live == live);
    mem_free(json);
    return 0;
}
