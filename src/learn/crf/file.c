/* file.c - a CRF as tensors and JSON, and its facts. */
#include <string.h>

#include "base/mem.h"
#include "learn/crf/crf.h"

enum { LABELS_MAX = 4096 };

/* ------------------------------------------------------------------ facts --------------------------------------------------- */

/* Labels have no blanks: they were words of a file of columns. */
static err put_labels(const struct crf *f, struct js *to) {
    struct str names = {0};
    for (i32 y = 0; y < f->L; y++) str_addf(&names, "%s%s", y ? " " : "", vocab_word(&f->label, y));
    const err e = str_ok(&names);
    if (e >= 0) js_put_text(to, "label_names", str_text(&names));
    str_free(&names);
    return e;
}

err crf_describe(const struct model *m, struct description *out) {
    const struct crf *f = crf_of(m);
    struct js *of[] = {out->info, out->record};
    out->parameters = f->nattr * f->L + (f->t.bigram ? (i64)f->L * f->L : 0);
    for (size_t i = 0; i < COUNT(of); i++) {
        if (!of[i]) continue;
        js_put_i64(of[i], "labels", f->L);
        js_put_i64(of[i], "attributes", f->nattr);
        js_put_i64(of[i], "attributes_seen", f->seen);
        js_put_i64(of[i], "templates", f->t.n);
        js_put_f64(of[i], "objective", f->objective);
        js_put_i64(of[i], "iterations", f->iterations);
        js_put_i64(of[i], "passes", f->evaluations);
        js_put_i64(of[i], "tokens", f->tokens);
    }
    model_put_end(m, out->record);
    return out->info ? put_labels(f, out->info) : 0;
}

/* ------------------------------------------------------------------ writing ------------------------------------------------- */

/* Words one after the other, each with a NUL. */
static err put_words(struct tens_list *list, const char *name, const struct vocab *v) {
    return tens_add(list, name, DTYPE_U8, v->fill, 0, v->bytes);
}

static err put_rows(struct tens_list *list, const char *name, const struct crf *f, i64 from, i64 n) {
    f32 *to;
    ARENA_NEW(list->arena, to, n * f->L);
    for (i64 r = 0; r < n; r++) memcpy(to + r * f->L, f->w + (from + r) * f->Lp, sizeof *to * (size_t)f->L);
    return tens_add(list, name, DTYPE_F32, n, f->L, to);
}

err crf_save(const struct model *m, struct tens_list *list, struct str *json) {
    const struct crf *f = crf_of(m);
    struct js *o = js_object();
    js_put_text(o, "template", f->items ? "" : f->t.text);
    js_put_bool(o, "items", f->items);
    js_put_i64(o, "columns", f->ncolumn);
    js_put_i64(o, "tag", f->tag);
    js_put_i64(o, "labels", f->L);
    js_put_i64(o, "attributes", f->nattr);
    js_put_i64(o, "attributes_seen", f->seen);
    js_put_i64(o, "tokens", f->tokens);
    js_put_i64(o, "naive_words", f->rule.word.n);
    js_put_f64(o, "objective", f->objective);
    js_put_i64(o, "iterations", f->iterations);
    js_put_i64(o, "passes", f->evaluations);
    const err e = js_text(o, json, 0);
    js_free(o);
    TRY(e);
    TRY(put_words(list, "label", &f->label));
    TRY(put_words(list, "naive.word", &f->rule.word));
    TRY(tens_add(list, "naive.tag", DTYPE_I32, f->rule.word.n + 1, 0, f->rule.label));
    TRY(put_rows(list, "transitions", f, f->nattr, f->L));
    if (f->nattr == 0) return 0;
    TRY(put_words(list, "attribute", &f->attribute));
    return put_rows(list, "weights", f, 0, f->nattr);
}

/* ------------------------------------------------------------------ reading ------------------------------------------------- */

static err damaged(const char *path, const char *what) {
    return FAIL_AT(E901, NULL, "the model file that `stretto train` wrote", "%s: %s", path, what);
}

static err take_words(const struct st_file *file, const char *path, const char *name, i64 n, struct vocab *out) {
    const struct tens *t = st_find(file, name);
    if (!t || t->dtype != DTYPE_U8 || t->ndim != 1) return damaged(path, "it holds no words");
    const char *at = t->data, *end = at + t->dim[0];
    for (i64 i = 0; i < n; i++) {
        const char *stop = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
        i32 code;
        if (!stop) return damaged(path, "its words are cut off");
        TRY(vocab_code(out, at, stop - at, &code));
        if (code != i) return damaged(path, "a word occurs twice");
        at = stop + 1;
    }
    return at == end ? 0 : damaged(path, "it holds more words than it says");
}

static err take_rows(const struct st_file *file, const char *name, struct crf *f, i64 to, i64 n) {
    const struct tens *t;
    TRY(model_tensor(file, name, DTYPE_F32, n, f->L, &t));
    for (i64 r = 0; r < n; r++)
        memcpy(f->w + (to + r) * f->Lp, (const f32 *)t->data + r * f->L, sizeof(f32) * (size_t)f->L);
    return 0;
}

static err take_naive(const struct st_file *file, const char *path, struct crf *f, i64 words) {
    const struct tens *t;
    TRY(take_words(file, path, "naive.word", words, &f->rule.word));
    TRY(model_tensor(file, "naive.tag", DTYPE_I32, words + 1, 0, &t));
    NEW(f->rule.label, words + 1);
    memcpy(f->rule.label, t->data, sizeof(i32) * (size_t)(words + 1));
    for (i64 i = 0; i <= words; i++)
        if (f->rule.label[i] < 0 || f->rule.label[i] >= f->L) return damaged(path, "a label is out of range");
    return 0;
}

static err take_template(const char *path, const struct js *json, struct crf *f) {
    f->items = js_bool(js_get(json, "items"), false);
    f->t.bigram = f->items;
    if (f->items) return 0;
    char *text = mem_strdup(js_str(js_get(json, "template"), ""));
    if (!text) return -E601;
    return templates_parse(text, path, f->ncolumn - (f->tag >= 0), &f->t);
}

static err read_all(const struct st_file *file, const char *path, const struct js *json, struct crf *f) {
    const i64 L = js_i64(js_get(json, "labels"), 0), n = js_i64(js_get(json, "attributes"), -1);
    const i64 columns = js_i64(js_get(json, "columns"), 0), tag = js_i64(js_get(json, "tag"), -1);
    const i64 words = js_i64(js_get(json, "naive_words"), 0);
    if (L < 2 || L > LABELS_MAX || n < 0 || n >= INT32_MAX || columns < 2 || columns > INT32_MAX || tag < 0 || tag >= columns ||
        words < 1 || words >= INT32_MAX)
        return damaged(path, "its sizes are out of range");
    f->L = (i32)L;
    f->Lp = round_up(f->L, CRF_PAD);
    f->nattr = n;
    f->ncolumn = (i32)columns;
    f->tag = (i32)tag;
    f->seen = js_i64(js_get(json, "attributes_seen"), n);
    f->tokens = js_i64(js_get(json, "tokens"), 0);
    f->objective = js_f64(js_get(json, "objective"), 0);
    f->iterations = (i32)js_i64(js_get(json, "iterations"), 0);
    f->evaluations = (i32)js_i64(js_get(json, "passes"), 0);
    TRY(take_template(path, json, f));
    TRY(take_words(file, path, "label", L, &f->label));
    TRY(take_naive(file, path, f, words));
    TRY(mem_check((n + L) * f->Lp, sizeof *f->w));
    NEW(f->w, (n + L) * f->Lp);
    TRY(take_rows(file, "transitions", f, n, L));
    if (n == 0) return 0;
    TRY(take_words(file, path, "attribute", n, &f->attribute));
    return take_rows(file, "weights", f, 0, n);
}

err crf_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json, struct model **out) {
    struct crf *f;
    (void)o;
    TRY(crf_new(&f));
    *out = &f->model;
    return read_all(file, path, json, f);
}
