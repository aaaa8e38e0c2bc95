/* file.c - a forecaster as a model file: safetensors with PyTorch names, everything else as JSON in the metadata.
 *
 *     lstm.weight_ih_l0, head.weight, ...         member 0; further members as member.1.lstm.weight_ih_l0
 *     base.ridge, row.ridge                       linear base, ridge row to beat
 *     base.trees                                  boosted trees of the base
 *     paths                                       ranks of errors, for sample paths
 *     spread, bands                               residual quantiles; their unit, scores of calibration
 *     stretto.forecast  {"shape.seg":..., "columns":[...], "base":"...", "weight":0.8}   what training found out
 *                       "recipe": how another program forecasts with the file (docs/model-file.md); not read back
 *     stretto.options                             the spec follows from them, by the table that reads flags and config files
 *     stretto.record                              for people; learn/model.c reads and writes it */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "learn/forecast/ops.h"
#include "learn/forecast/paths.h"
#include "learn/forecast/resolve.h"
#include "learn/forecast/shares.h"

/* Results of the training that do not follow from its options. */
#define FACTS(X)                                                                                                                 \
    X(spec.nband) X(shape.context) X(shape.horizon) X(shape.seg) X(shape.nseg) X(shape.out_seg) X(shape.nout) X(shape.mask)      \
    X(shape.calendar)

/* --- writing --- */
static struct js *columns_json(const struct schema *c) {
    struct js *list = js_array();
    for (i32 i = 0; i < c->ncol; i++) {
        struct js *col = js_object();
        js_put_text(col, "name", c->name[i]);
        js_put_f64(col, "mean", c->mean[i]);
        js_put_f64(col, "dev", c->dev[i]);
        js_push(list, col);
    }
    return list;
}

static struct js *categories_json(const struct schema *c) {
    struct js *list = js_array();
    for (i32 i = 0; i < c->ncat; i++) {
        struct js *cat = js_object(), *words = js_array();
        js_put_text(cat, "name", c->cat_name[i]);
        for (i32 k = 0; k < c->nword[i]; k++) js_push(words, js_new_text(c->word[i][k]));
        js_put(cat, "words", words);
        js_push(list, cat);
    }
    return list;
}

static struct js *freq_json(const struct freq *f) {
    struct js *o = js_object();
    js_put_i64(o, "step", f->step);
    js_put_i64(o, "months", f->months);
    js_put_i64(o, "season", f->season);
    js_put_text(o, "name", f->name);
    if (f->zoned) js_put_i64(o, "zone", f->zone);
    return o;
}

static void push_features(struct js *list, const struct schema *c, const char *role, i32 from, i32 n) {
    char feature[320];
    for (i32 i = from; i < from + n; i++) {
        snprintf(feature, sizeof feature, "%s %s", role, c->panel ? c->column[1 + i] : c->name[c->ntarget + i]);
        js_push(list, js_new_text(feature));
    }
}

/* The features of an input segment in order, or of the horizon. */
static struct js *features_json(const struct forecaster *f, bool ahead) {
    const struct schema *c = &f->schema;
    struct js *list = js_array();
    if (!ahead) {
        js_push(list, js_new_text("target"));
        if (f->shape.mask) js_push(list, js_new_text("present"));
        push_features(list, c, "past", 0, c->npast);
    }
    push_features(list, c, "known", c->npast, c->nknown);
    if (f->shape.calendar) js_push(list, js_new_text("calendar"));
    for (i32 k = 0; k < c->ncat && !ahead; k++) js_push(list, js_new_text("category"));
    return list;
}

/* The columns of the file that a panel was read from: the target and the covariates, of which the last are static. */
static struct js *panel_json(const struct schema *c) {
    struct js *o = js_object(), *list = js_array();
    for (i32 k = 0; k < 1 + c->npast + c->nknown; k++) js_push(list, js_new_text(c->column[k]));
    js_put(o, "columns", list);
    js_put_i64(o, "static", c->nstatic);
    return o;
}

/* The recipe: how another program computes a forecast from past rows. */
static struct js *recipe_json(const struct forecaster *f) {
    struct js *o = js_object();
    const char *shift, *divisor;
    window_scale_words(f->shape.scale, &shift, &divisor);
    js_put_text(o, "column", "v = (x - mean) / dev");
    js_put_text(o, "shift", shift);
    js_put_text(o, "divisor", divisor);
    js_put_f64(o, "least_divisor", WINDOW_FLOOR);
    js_put_text(o, "target", "(v - shift) / divisor");
    js_put(o, "segment", features_json(f, false));
    js_put(o, "ahead", features_json(f, true));
    js_put_i64(o, "output", head_point(&f->spec));
    js_put_text(o, "forecast",
                forecast_averages(&f->spec) ? "mean + dev * (base + weight * share * (shift + divisor * output - base))"
                                            : "mean + dev * (base + weight * divisor * output)");
    return o;
}

static err forecast_json(const struct forecaster *f, struct str *out) {
    struct js *o = js_object();
    struct str base = {0}, row = {0};
    err e = f->base ? base_text(f->base, &base) : 0;
    if (e >= 0 && f->ridge) e = base_text(f->ridge, &row);
#define X(field) js_put_i64(o, #field, (i64)f->field);
    FACTS(X)
#undef X
    js_put_i64(o, "ntarget", f->schema.ntarget);
    js_put_i64(o, "npast", f->schema.npast);
    js_put_i64(o, "nknown", f->schema.nknown);
    if (f->schema.panel) js_put(o, "panel", panel_json(&f->schema));
    js_put(o, "columns", columns_json(&f->schema));
    js_put(o, "categories", categories_json(&f->schema));
    js_put(o, "freq", freq_json(&f->schema.freq));
    js_put_text(o, "base", str_text(&base));
    js_put_text(o, "ridge", str_text(&row));
    js_put_i64(o, "seen_rows", f->seen_rows);
    js_put_i64(o, "seen_from", f->seen_from);
    js_put_i64(o, "seen_time", f->seen_time);
    js_put_i64(o, "nmember", f->nmember);
    js_put_f64(o, "weight", f->weight);
    if (f->shares.n > 0) js_put(o, "shares", shares_json(&f->shares));
    js_put(o, "recipe", recipe_json(f));
    if (e >= 0) e = js_text(o, out, 0);
    js_free(o);
    str_free(&base);
    str_free(&row);
    return e;
}

static const char *member_prefix(i32 m, char out[24]) {
    out[0] = 0;
    if (m > 0) snprintf(out, 24, "member.%d.", m);
    return out;
}

typedef i64 base_matrix(const struct base *b, f32 *w, i32 *rows, i32 *cols);

static err put_base(const struct base *b, base_matrix *matrix, const char *name, struct tens_list *list) {
    i32 rows = 0, cols = 0;
    i64 n = b ? matrix(b, NULL, &rows, &cols) : 0;
    if (n == 0) return 0;
    f32 *w;
    ARENA_NEW(list->arena, w, n);
    matrix(b, w, &rows, &cols);
    return tens_add(list, name, DTYPE_F32, rows, cols, w);
}

static err collect(const struct forecaster *f, struct tens_list *list) {
    char prefix[24];
    for (i32 m = 0; m < f->nmember; m++) TRY(model_put(list, &f->net, f->theta[m], member_prefix(m, prefix)));
    TRY(put_base(f->base, base_tensor, "base.ridge", list));
    TRY(put_base(f->base, base_trees_tensor, "base.trees", list));
    TRY(put_base(f->ridge, base_tensor, "row.ridge", list));
    const i64 n = forecast_quantiles(f, f->schema.ntarget);
    if (f->spread) TRY(tens_add(list, "spread", DTYPE_F32, (i64)f->schema.ntarget * f->spec.nband, f->spec.horizon, f->spread));
    if (f->spread && f->spread[n] >= 0) TRY(tens_add(list, "bands", DTYPE_F32, BAND_FACTS, 0, f->spread + n));
    const struct path_shape paths = paths_shape(&f->spec, f->schema.ntarget);
    if (forecast_paths(f))
        TRY(tens_add(list, "paths", DTYPE_F32, (i64)paths.n * paths.ncol, f->spec.horizon, forecast_paths(f)));
    TRY(tens_add(list, "scale.mase", DTYPE_F64, f->schema.ntarget, 0, f->mase));
    /* the file always has at least one tensor: the scale of the columns */
    TRY(tens_add(list, "scale.mean", DTYPE_F64, f->schema.ncol, 0, f->schema.mean));
    return tens_add(list, "scale.dev", DTYPE_F64, f->schema.ncol, 0, f->schema.dev);
}

err forecast_save(const struct model *m, struct tens_list *list, struct str *json) {
    TRY(forecast_json(forecaster_in(m), json));
    return collect(forecaster_in(m), list);
}

/* --- reading --- */
static err damaged(const char *path, const char *what) {
    return FAIL_AT(E901, NULL, "the model file that `stretto train` wrote", "%s: %s", path, what);
}

/* Derives the spec from the options, as training did. */
static err read_spec(const char *path, const struct js *o, const struct options *options, struct forecaster *f) {
    err e = spec_of(options, &f->spec);
    if (e < 0) return e == -E601 ? e : damaged(path, "its options do not fit together");
    const i32 nband = f->spec.nband;
#define X(field)                                                                                                                 \
    {                                                                                                                            \
        i64 v = js_i64(js_get(o, #field), -1);                                                                                   \
        if (v < 0 || v > 100000000) return damaged(path, "\"" #field "\" is missing or out of range");                           \
        f->field = (__typeof__(f->field))v;                                                                                      \
    }
    FACTS(X)
#undef X
    if (f->spec.nband != 0 && f->spec.nband != nband) return damaged(path, "\"quantiles\" do not fit");
    f->spec.slice_rank = 0; /* the loaded model runs on whole windows */
    f->shape.scale = f->spec.scale;
    return 0;
}

/* Checks all values that lower floors index or divide by: the file is untrusted input. */
static const char *unsound(const struct forecaster *f) {
    const struct window_shape *p = &f->shape;
    const struct forecast_spec *s = &f->spec;
    const struct schema *c = &f->schema;
    if (p->context < 1 || p->context > 1000000 || p->horizon < 1 || p->horizon > 100000 || p->seg < 1 || p->nseg < 1 ||
        p->out_seg < 1 || p->nout < 1 || (i64)p->seg * p->nseg < p->context || (i64)p->out_seg * p->nout < p->horizon ||
        p->horizon != s->horizon || p->context != s->context || (i64)p->seg * p->nseg > 2 * (i64)p->context + p->seg ||
        (i64)p->out_seg * p->nout > 2 * (i64)p->horizon)
        return "its window shape does not add up";
    if (s->stride < 1 || (s->nquantile > 0 && s->nband > 0 && s->nband != s->nquantile) ||
        (s->decoder->every_step && (p->seg != 1 || p->nout != 1)) ||
        ((s->bidirectional || s->projection) && s->decoder->plain_state))
        return "its options do not fit together";
    if (p->calendar != 0 && p->calendar != window_calendar_size(&c->freq)) return "its calendar is not that of its frequency";
    for (i32 i = 0; i < c->ncol; i++)
        if (!(c->dev[i] > 0 && c->dev[i] < 1e300 && fabs(c->mean[i]) < 1e300)) return "a column has no usable mean and deviation";
    if (!shares_sound(&f->shares)) return "\"shares\" are out of range";
    return f->weight >= 0 && f->weight <= 1 ? NULL : "\"weight\" is out of range";
}

static err read_panel(const char *path, const struct js *o, struct schema *c) {
    const struct js *list = js_get(o, "columns");
    const i32 n = (i32)js_len(list);
    if (!o) return 0;
    c->panel = true;
    c->nstatic = (i32)js_i64(js_get(o, "static"), 0);
    if (c->npast < 0 || c->nknown < 0 || n - 1 != (i64)c->npast + c->nknown || c->nstatic < 0 || c->nstatic > c->nknown)
        return damaged(path, "the columns of its panel do not add up");
    ARENA_NEW(&c->arena, c->column, n);
    for (i32 k = 0; k < n; k++) TRY(arena_keep(&c->arena, &c->column[k], js_str(js_at(list, k), "")));
    return 0;
}

static err read_columns(const char *path, const struct js *o, struct schema *c) {
    const struct js *columns = js_get(o, "columns"), *freq = js_get(o, "freq");
    c->ncol = (i32)js_len(columns);
    c->ntarget = (i32)js_i64(js_get(o, "ntarget"), -1);
    c->npast = (i32)js_i64(js_get(o, "npast"), -1);
    c->nknown = (i32)js_i64(js_get(o, "nknown"), -1);
    TRY(read_panel(path, js_get(o, "panel"), c));
    const i64 width = c->panel ? c->ntarget : 1;
    if (c->ntarget < 1 || c->npast < 0 || c->nknown < 0 || c->ntarget + (c->npast + c->nknown) * width != c->ncol)
        return damaged(path, "its columns do not add up");
    ARENA_NEW(&c->arena, c->name, c->ncol);
    ARENA_NEW(&c->arena, c->mean, c->ncol);
    ARENA_NEW(&c->arena, c->dev, c->ncol);
    for (i32 i = 0; i < c->ncol; i++) {
        const struct js *col = js_at(columns, i);
        if (!(c->name[i] = arena_strdup(&c->arena, js_str(js_get(col, "name"), "")))) return -E601;
        c->mean[i] = js_f64(js_get(col, "mean"), 0);
        c->dev[i] = js_f64(js_get(col, "dev"), 0);
        if (!(c->dev[i] > 0)) return damaged(path, "a column has no deviation");
    }
    c->freq.step = js_i64(js_get(freq, "step"), 0);
    c->freq.months = (i32)js_i64(js_get(freq, "months"), 0);
    c->freq.season = (i32)js_i64(js_get(freq, "season"), 1);
    c->freq.zoned = js_get(freq, "zone") != NULL;
    c->freq.zone = (i32)js_i64(js_get(freq, "zone"), 0);
    snprintf(c->freq.name, sizeof c->freq.name, "%s", js_str(js_get(freq, "name"), ""));
    return 0;
}

static err read_categories(const struct js *o, struct schema *c) {
    const struct js *cats = js_get(o, "categories");
    c->ncat = (i32)js_len(cats);
    ARENA_NEW(&c->arena, c->cat_name, c->ncat + 1);
    ARENA_NEW(&c->arena, c->word, c->ncat + 1);
    ARENA_NEW(&c->arena, c->nword, c->ncat + 1);
    for (i32 i = 0; i < c->ncat; i++) {
        const struct js *cat = js_at(cats, i), *words = js_get(cat, "words");
        if (!(c->cat_name[i] = arena_strdup(&c->arena, js_str(js_get(cat, "name"), "")))) return -E601;
        c->nword[i] = (i32)js_len(words);
        ARENA_NEW(&c->arena, c->word[i], c->nword[i] + 1);
        for (i32 k = 0; k < c->nword[i]; k++)
            if (!(c->word[i][k] = arena_strdup(&c->arena, js_str(js_at(words, k), "")))) return -E601;
    }
    return 0;
}

static err read_base(const char *path, const struct st_file *file, const char *text, const char *ridge, struct base **out) {
    const struct tens *r = st_find(file, ridge), *t = st_find(file, "base.trees");
    if (!*text) return 0;
    if ((r && r->dtype != DTYPE_F32) || (t && t->dtype != DTYPE_F32)) return damaged(path, "a base matrix is not F32");
    return base_read_all(text,
                         (struct base_tensors){.ridge = r ? r->data : NULL,
                                               .nridge = r ? tens_count(r) : 0,
                                               .trees = t ? t->data : NULL,
                                               .ntrees = t ? tens_count(t) : 0},
                         out);
}

/* Builds the network again from the spec. A series without rows holds the numbers of columns and words. */
static err read_members(const char *path, const struct js *o, const struct st_file *file, struct forecaster *f) {
    i64 n = js_i64(js_get(o, "nmember"), -1);
    char prefix[24];
    if (n < 0 || n > MEMBERS_MAX) return damaged(path, "\"nmember\" is out of range");
    if (n == 0) return 0;
    const struct schema *c = &f->schema;
    struct series shape = {.ncol = c->ncol,
                           .ntarget = c->ntarget,
                           .npast = c->npast,
                           .panel = c->panel,
                           .nknown = c->nknown,
                           .ncat = c->ncat,
                           .nword = c->nword,
                           .freq = c->freq};
    err e = forecast_net(&f->spec, &f->shape, &shape, &f->net);
    if (e < 0) return e == -E601 ? e : damaged(path, "its network cannot be built");
    for (i32 m = 0; m < n; m++) {
        NEW(f->theta[m], f->net.ntheta);
        f->nmember = m + 1;
        TRY(model_take(file, &f->net, member_prefix(m, prefix), f->theta[m]));
    }
    return 0;
}

/* Files before the tensor "bands" have residuals in units of the row's divisor. */
static err read_bands(const char *path, const struct st_file *file, f32 *facts) {
    const struct tens *t;
    bool sound = true;
    facts[0] = -1;
    if (!st_find(file, "bands")) return 0;
    TRY(model_tensor(file, "bands", DTYPE_F32, BAND_FACTS, 0, &t));
    memcpy(facts, t->data, sizeof(f32) * BAND_FACTS);
    for (i32 i = 0; i < BAND_FACTS; i++) sound = sound && facts[i] >= 0 && facts[i] <= 1;
    return sound ? 0 : damaged(path, "\"bands\" is out of range");
}

/* Older files have no templates of sample paths. */
static err read_paths(const char *path, const struct st_file *file, const struct forecaster *f, f32 *u) {
    const struct path_shape shape = paths_shape(&f->spec, f->schema.ntarget);
    const struct tens *t;
    bool sound = true;
    u[0] = (f32)NAN;
    if (!st_find(file, "paths")) return 0;
    TRY(model_tensor(file, "paths", DTYPE_F32, (i64)shape.n * shape.ncol, f->spec.horizon, &t));
    memcpy(u, t->data, sizeof(f32) * (size_t)shape.floats);
    for (i64 i = 0; i < shape.floats; i++) sound = sound && u[i] >= 0 && u[i] <= 1;
    return sound ? 0 : damaged(path, "\"paths\" is out of range");
}

static err read_spread(const char *path, const struct st_file *file, struct forecaster *f) {
    const struct tens *t;
    TRY(model_tensor(file, "scale.mase", DTYPE_F64, f->schema.ntarget, 0, &t));
    NEW(f->mase, f->schema.ntarget);
    memcpy(f->mase, t->data, sizeof(f64) * (size_t)f->schema.ntarget);
    if (!st_find(file, "spread")) return 0;
    TRY(model_tensor(file, "spread", DTYPE_F32, (i64)f->schema.ntarget * f->spec.nband, f->spec.horizon, &t));
    NEW(f->spread, forecast_spread_floats(f, f->schema.ntarget));
    memcpy(f->spread, t->data, sizeof(f32) * (size_t)tens_count(t));
    TRY(read_bands(path, file, f->spread + tens_count(t)));
    return read_paths(path, file, f, f->spread + tens_count(t) + BAND_FACTS);
}

/* A linear base has the horizon of the model, and no columns that the model does not have. */
static bool fits(const struct forecaster *f, const struct base *b) {
    const struct ridge *r = b ? b->ridge : NULL;
    const struct schema *c = &f->schema;
    struct trees_needs n;
    if (b && base_trees_needs(b, &n) &&
        (n.H != f->spec.horizon || n.ncol != c->ntarget || n.npast != c->npast || n.nknown != c->nknown || n.ncat != c->ncat))
        return false;
    return !r || (r->H == f->spec.horizon && r->ahead.ncol <= f->schema.nknown - f->schema.nstatic);
}

static err read_all(const char *path, const struct st_file *file, const struct options *options, const struct js *o,
                    struct forecaster *f) {
    TRY(read_spec(path, o, options, f));
    TRY(read_columns(path, o, &f->schema));
    TRY(read_categories(o, &f->schema));
    f->weight = js_f64(js_get(o, "weight"), (f64)NAN);
    shares_read(js_get(o, "shares"), &f->shares);
    if (unsound(f)) return damaged(path, unsound(f));
    TRY(read_base(path, file, js_str(js_get(o, "base"), ""), "base.ridge", &f->base));
    TRY(read_base(path, file, js_str(js_get(o, "ridge"), ""), "row.ridge", &f->ridge));
    if (!fits(f, f->base) || !fits(f, f->ridge)) return damaged(path, "a base matrix has another horizon or other columns");
    f->seen_rows = js_i64(js_get(o, "seen_rows"), 0);
    f->seen_from = js_i64(js_get(o, "seen_from"), INT64_MIN);
    f->seen_time = js_i64(js_get(o, "seen_time"), INT64_MIN);
    TRY(read_members(path, o, file, f));
    return read_spread(path, file, f);
}

err forecast_load(const struct st_file *file, const char *path, const struct options *options, const struct js *o,
                  struct model **out) {
    struct forecaster *f;
    NEW(f, 1);
    *out = &f->model;
    return read_all(path, file, options, o, f);
}
