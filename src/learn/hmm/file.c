/* file.c - a hidden Markov model as tensors and JSON, and its facts for `stretto info`. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/hmm/hmm.h"

/* ------------------------------------------------------------------ facts --------------------------------------------------- */

err hmm_describe(const struct model *m, struct description *out) {
    const struct hmm *h = hmm_of(m);
    out->parameters = (i64)(h->L - 1) * (h->L + 1) + (i64)h->L * (h->W - 1);
    struct js *of[] = {out->info, out->record};
    for (size_t i = 0; i < COUNT(of); i++) {
        if (!of[i]) continue;
        js_put_text(of[i], "trained by", h->tag >= 0 ? "counts of tags" : "Baum-Welch");
        js_put_i64(of[i], h->tag >= 0 ? "tags" : "states", h->L);
        js_put_i64(of[i], "words", h->W - 1);
        if (h->ncurve > 0) js_put_i64(of[i], "iterations", h->ncurve);
        if (h->ncurve > 0) js_put_f64(of[i], "log-likelihood per token", h->curve[h->ncurve - 1]);
    }
    model_put_end(m, out->record);
    return 0;
}

/* ------------------------------------------------------------------ writing ------------------------------------------------- */

static struct js *words_json(const struct vocab *v) {
    struct js *list = js_array();
    for (i32 i = 0; i < v->n; i++) js_push(list, js_new_text(vocab_word(v, i)));
    return list;
}

err hmm_save(const struct model *m, struct tens_list *list, struct str *json) {
    const struct hmm *h = hmm_of(m);
    struct js *o = js_object();
    js_put_i64(o, "labels", h->L);
    js_put_i64(o, "words", h->W - 1);
    js_put_i64(o, "columns", h->ncolumn);
    js_put_i64(o, "tag", h->tag);
    js_put(o, "label", words_json(&h->label));
    js_put(o, "word", words_json(&h->word));
    const err e = js_text(o, json, 0);
    js_free(o);
    TRY(e);
    TRY(tens_add(list, "start", DTYPE_F64, h->L, 0, h->start));
    TRY(tens_add(list, "transitions", DTYPE_F64, h->L, h->L, h->trans));
    TRY(tens_add(list, "emissions", DTYPE_F64, h->W, h->L, h->emit));
    TRY(tens_add(list, "left", DTYPE_F64, h->L, 0, h->left));
    TRY(tens_add(list, "emitted", DTYPE_F64, h->L, 0, h->emitted));
    TRY(tens_add(list, "unigram", DTYPE_F64, h->W, 0, h->rate));
    TRY(tens_add(list, "usual", DTYPE_I32, h->W, 0, h->usual));
    return h->ncurve > 0 ? tens_add(list, "curve", DTYPE_F64, h->ncurve, 0, h->curve) : 0;
}

/* ------------------------------------------------------------------ reading ------------------------------------------------- */

static err damaged(const char *path, const char *what) {
    return FAIL_AT(E901, NULL, "the model file that `stretto train` wrote", "%s: %s", path, what);
}

static err take_words(const char *path, const struct js *list, i32 n, struct vocab *out) {
    for (i32 i = 0; i < n; i++) {
        const char *word = js_str(js_at(list, i), NULL);
        i32 code;
        if (!word) return damaged(path, "a word or label is missing");
        TRY(vocab_code(out, word, (i64)strlen(word), &code));
        if (code != i) return damaged(path, "a word or label occurs twice");
    }
    return js_len(list) == n ? 0 : damaged(path, "its words and labels do not add up");
}

/* Numbers that are finite and not negative. */
static err take_numbers(const struct st_file *file, const char *path, const char *name, i64 rows, i64 cols, f64 *to) {
    const struct tens *t;
    TRY(model_tensor(file, name, DTYPE_F64, rows, cols, &t));
    const i64 n = tens_count(t);
    memcpy(to, t->data, sizeof(f64) * (size_t)n);
    for (i64 i = 0; i < n; i++)
        if (!(to[i] >= 0 && to[i] < 1e18)) return damaged(path, "a probability or a count is out of range");
    return 0;
}

static err take_usual(const struct st_file *file, const char *path, struct hmm *h) {
    const struct tens *t;
    TRY(model_tensor(file, "usual", DTYPE_I32, h->W, 0, &t));
    memcpy(h->usual, t->data, sizeof(i32) * (size_t)h->W);
    for (i32 w = 0; w < h->W; w++)
        if (h->usual[w] < 0 || h->usual[w] >= h->L) return damaged(path, "a label is out of range");
    return 0;
}

static err take_curve(const struct st_file *file, struct hmm *h) {
    const struct tens *t = st_find(file, "curve");
    if (!t || t->dtype != DTYPE_F64 || t->ndim != 1 || t->dim[0] > INT32_MAX) return 0;
    NEW(h->curve, t->dim[0]);
    h->ncurve = (i32)t->dim[0];
    memcpy(h->curve, t->data, sizeof(f64) * (size_t)h->ncurve);
    return 0;
}

static err read_all(const struct st_file *file, const char *path, const struct js *o, struct hmm *h) {
    const i64 L = js_i64(js_get(o, "labels"), 0), words = js_i64(js_get(o, "words"), -1);
    const i64 columns = js_i64(js_get(o, "columns"), 0), tag = js_i64(js_get(o, "tag"), -2);
    if (L < 1 || L > VITERBI_LABELS || words < 1 || words >= INT32_MAX || columns < 1 || columns > INT32_MAX || tag < -1 ||
        tag >= columns)
        return damaged(path, "its sizes are out of range");
    h->L = (i32)L;
    h->W = (i32)words + 1;
    h->ncolumn = (i32)columns;
    h->tag = (i32)tag;
    TRY(take_words(path, js_get(o, "word"), h->W - 1, &h->word));
    TRY(take_words(path, js_get(o, "label"), h->L, &h->label));
    TRY(hmm_alloc(h));
    TRY(take_numbers(file, path, "start", L, 0, h->start));
    TRY(take_numbers(file, path, "transitions", L, L, h->trans));
    TRY(take_numbers(file, path, "emissions", h->W, L, h->emit));
    TRY(take_numbers(file, path, "left", L, 0, h->left));
    TRY(take_numbers(file, path, "emitted", L, 0, h->emitted));
    TRY(take_numbers(file, path, "unigram", h->W, 0, h->rate));
    TRY(take_usual(file, path, h));
    TRY(take_curve(file, h));
    return hmm_fix(h);
}

err hmm_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json, struct model **out) {
    struct hmm *h;
    (void)o;
    NEW(h, 1);
    *out = &h->model;
    return read_all(file, path, json, h);
}
