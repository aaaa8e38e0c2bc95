/* file.c - clusters as tensors and JSON, and their facts; see ckpt/model_file.h. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/kmeans/kmeans.h"

enum { SIZES_MAX = 1 << 20 };

/* ------------------------------------------------------------------ facts --------------------------------------------------- */

static void put_facts(const struct kmeans *f, struct js *o) {
    js_put_i64(o, "clusters", f->k);
    js_put_i64(o, "inputs", f->d);
    js_put_f64(o, "inertia", f->inertia);
    js_put_f64(o, "inertia_of_one_cluster", f->total);
    if (f->left_out > 0) {
        js_put_i64(o, "rows_left_out", f->left_out);
        js_put_f64(o, "inertia_of_the_others", f->kept);
    }
    js_put_i64(o, "iterations", f->iterations);
    js_put_i64(o, "restarts", f->restarts);
    js_put_i64(o, "settled", f->settled);
    js_put_f64(o, "distances_saved", f->saved);
    js_put_f64(o, "lloyd_seconds", f->lloyd_seconds);
    js_put_f64(o, "lloyd_cpu_seconds", f->lloyd_cpu);
}

err kmeans_describe(const struct model *m, struct description *out) {
    const struct kmeans *f = kmeans_of(m);
    out->parameters = (i64)f->k * f->d;
    if (out->info) {
        struct js *sizes = js_object();
        char name[40];
        put_facts(f, out->info);
        for (i32 k = 0; k < f->k; k++) {
            snprintf(name, sizeof name, "cluster %d", k + 1);
            js_put_i64(sizes, name, f->count[k]);
        }
        js_put(out->info, "sizes", sizes);
    }
    if (!out->record) return 0;
    put_facts(f, out->record);
    model_put_end(m, out->record);
    if (out->scores) js_put_f64(out->record, "skill", out->scores->skill);
    return 0;
}

/* ------------------------------------------------------------------ write and read ------------------------------------------ */

err kmeans_save(const struct model *m, struct tens_list *list, struct str *json) {
    const struct kmeans *f = kmeans_of(m);
    struct js *o = js_object(), *names = js_array();
    put_facts(f, o);
    for (i32 j = 0; j < f->d; j++) js_push(names, js_new_text(f->scale.name[j]));
    js_put(o, "columns", names);
    const err e = js_text(o, json, 0);
    js_free(o);
    TRY(e);
    TRY(tens_add(list, "kmeans.center", DTYPE_F64, f->k, f->d, f->center));
    TRY(tens_add(list, "kmeans.count", DTYPE_I64, f->k, 0, f->count));
    TRY(tens_add(list, "kmeans.mean", DTYPE_F64, f->d, 0, f->mean));
    TRY(tens_add(list, "scale.center", DTYPE_F64, f->d, 0, f->scale.center));
    return tens_add(list, "scale.spread", DTYPE_F64, f->d, 0, f->scale.spread);
}

static err take_tensor(const struct st_file *file, const char *name, enum dtype type, i64 rows, i64 cols, void *to) {
    const struct tens *t;
    TRY(model_tensor(file, name, type, rows, cols, &t));
    memcpy(to, t->data, (size_t)tens_count(t) * dtype_size(type));
    return 0;
}

static err take_all(const struct st_file *file, const struct js *json, struct kmeans *f) {
    const struct js *names = js_get(json, "columns");
    struct column_scale *c = &f->scale;
    f->inertia = js_f64(js_get(json, "inertia"), 0);
    f->total = js_f64(js_get(json, "inertia_of_one_cluster"), 0);
    f->left_out = js_i64(js_get(json, "rows_left_out"), 0);
    f->kept = js_f64(js_get(json, "inertia_of_the_others"), f->inertia);
    f->iterations = js_i64(js_get(json, "iterations"), 0);
    f->restarts = js_i64(js_get(json, "restarts"), 0);
    f->settled = js_i64(js_get(json, "settled"), 0) != 0;
    f->saved = js_f64(js_get(json, "distances_saved"), 0);
    f->lloyd_seconds = js_f64(js_get(json, "lloyd_seconds"), 0);
    f->lloyd_cpu = js_f64(js_get(json, "lloyd_cpu_seconds"), 0);
    c->d = f->d;
    ARENA_NEW(&f->arena, c->name, f->d);
    ARENA_NEW(&f->arena, c->center, f->d);
    ARENA_NEW(&f->arena, c->spread, f->d);
    for (i32 j = 0; j < f->d; j++) TRY(arena_keep(&f->arena, &c->name[j], js_str(js_at(names, j), "")));
    TRY(take_tensor(file, "kmeans.center", DTYPE_F64, f->k, f->d, f->center));
    TRY(take_tensor(file, "kmeans.count", DTYPE_I64, f->k, 0, f->count));
    TRY(take_tensor(file, "kmeans.mean", DTYPE_F64, f->d, 0, f->mean));
    TRY(take_tensor(file, "scale.center", DTYPE_F64, f->d, 0, c->center));
    return take_tensor(file, "scale.spread", DTYPE_F64, f->d, 0, c->spread);
}

err kmeans_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json,
                struct model **out) {
    const i64 k = js_i64(js_get(json, "clusters"), 0), d = js_len(js_get(json, "columns"));
    struct kmeans *f = NULL;
    (void)o;
    if (k < 1 || k > SIZES_MAX || d < 1 || d > SIZES_MAX)
        return FAIL_AT(E901, NULL, "the model file that `stretto train` wrote", "%s: its sizes are out of range", path);
    const err e = kmeans_new((i32)k, (i32)d, &f);
    if (f) *out = &f->model;
    TRY(e);
    return take_all(file, json, f);
}
