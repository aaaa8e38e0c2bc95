/* file.c - a tagger as a model file: tensors with PyTorch's names; features, their words and the tags as JSON. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/tagger/tagger.h"

static struct js *words_json(const struct vocab *v) {
    struct js *list = js_array();
    for (i32 i = 0; i < v->n; i++) js_push(list, js_new_text(vocab_word(v, i)));
    return list;
}

static struct js *feature_json(const struct tag_feature *f) {
    struct js *o = js_object();
    js_put_text(o, "kind", feature_kind_name(f->kind));
    js_put_i64(o, "column", f->column);
    js_put_i64(o, "n", f->n);
    js_put_i64(o, "width", f->width);
    js_put(o, "words", words_json(&f->words));
    return o;
}

err tagger_save(const struct model *m, struct tens_list *tensors, struct str *json) {
    const struct tagger *t = tagger_of(m);
    struct js *o = js_object(), *list = js_array(), *naive = js_array();
    for (i32 i = 0; i <= t->rule.word.n; i++) js_push(naive, js_new_i64(t->rule.label[i]));
    for (i32 k = 0; k < t->nfeature; k++) js_push(list, feature_json(&t->feature[k]));
    js_put_i64(o, "columns", t->ncol);
    js_put_i64(o, "tag", t->tag_column);
    js_put_i64(o, "best_step", t->best_step);
    if (!isnan(t->valid_error)) js_put_f64(o, "valid_error", t->valid_error);
    js_put(o, "tags", words_json(&t->tags));
    js_put(o, "naive_words", words_json(&t->rule.word));
    js_put(o, "naive_tags", naive);
    js_put(o, "features", list);
    const err e = js_text(o, json, 0);
    js_free(o);
    TRY(e);
    return model_put(tensors, &t->net, t->theta, "");
}

static err damaged(const char *path, const char *what) {
    return FAIL_AT(E901, NULL, "the model file that `stretto train` wrote", "%s: %s", path, what);
}

static err read_words(const struct js *list, const char *path, struct vocab *out) {
    const i32 n = (i32)js_len(list);
    for (i32 i = 0; i < n; i++) {
        const char *word = js_str(js_at(list, i), NULL);
        i32 at;
        if (!word) return damaged(path, "a word of its vocabulary is no text");
        TRY(vocab_code(out, word, (i64)strlen(word), &at));
        if (at != i) return damaged(path, "a word stands twice in its vocabulary");
    }
    return 0;
}

static err read_feature(const struct js *o, const char *path, i32 ncol, struct tag_feature *f) {
    const char *kind = js_str(js_get(o, "kind"), "");
    i32 k = 0;
    while (k < FEATURE_KINDS && strcmp(kind, feature_kind_name((enum feature_kind)k)) != 0) k++;
    *f = (struct tag_feature){.kind = (enum feature_kind)k, .column = (i32)js_i64(js_get(o, "column"), -1),
                              .n = (i32)js_i64(js_get(o, "n"), -1), .width = (i32)js_i64(js_get(o, "width"), 0)};
    const bool fits = k < FEATURE_KINDS && f->column >= 0 && f->column < ncol && f->n >= 0 && f->n < FEATURE_TEXT;
    if (!fits || f->width < 1 || f->width > 65536) return damaged(path, "a feature is not complete");
    return read_words(js_get(o, "words"), path, &f->words);
}

static err read_rule(const struct js *json, const char *path, struct tagger *t) {
    const struct js *list = js_get(json, "naive_tags");
    TRY(read_words(js_get(json, "naive_words"), path, &t->rule.word));
    if (js_len(list) != t->rule.word.n + 1) return damaged(path, "the tags of its naive rule are missing");
    NEW(t->rule.label, js_len(list));
    for (i32 i = 0; i <= t->rule.word.n; i++) {
        t->rule.label[i] = (i32)js_i64(js_at(list, i), -1);
        if (t->rule.label[i] < 0 || t->rule.label[i] >= t->tags.n)
            return damaged(path, "a tag of its naive rule is out of range");
    }
    return 0;
}

static err read_parts(const struct js *json, const char *path, struct tagger *t) {
    const struct js *list = js_get(json, "features");
    const i32 n = (i32)js_len(list);
    t->ncol = (i32)js_i64(js_get(json, "columns"), 0);
    t->tag_column = (i32)js_i64(js_get(json, "tag"), -1);
    t->best_step = js_i64(js_get(json, "best_step"), 0);
    t->valid_error = js_f64(js_get(json, "valid_error"), (f64)NAN);
    if (n < 1 || n > TAGGER_FEATURES || t->ncol < 1) return damaged(path, "its features are missing");
    for (i32 k = 0; k < n; k++) {
        TRY(read_feature(js_at(list, k), path, t->ncol, &t->feature[k]));
        t->nfeature = k + 1;
    }
    TRY(read_words(js_get(json, "tags"), path, &t->tags));
    return t->tags.n > 1 ? read_rule(json, path, t) : damaged(path, "its tags are missing");
}

err tagger_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json,
                struct model **out) {
    struct tagger *t;
    NEW(t, 1);
    *out = &t->model;
    t->layers = (i32)o->layers;
    opt_give_net(o, &t->options);
    TRY(read_parts(json, path, t));
    TRY(tagger_net(t, 1, &t->net));
    NEW(t->theta, t->net.ntheta);
    return model_take(file, &t->net, "", t->theta);
}

void tagger_free(struct model *m) {
    struct tagger *t = tagger_of(m);
    if (!t) return;
    for (i32 k = 0; k < TAGGER_FEATURES; k++) vocab_free(&t->feature[k].words);
    vocab_free(&t->tags);
    tag_rule_free(&t->rule);
    mem_free(t->theta);
    model_drop(&t->model);
    mem_free(t);
}
