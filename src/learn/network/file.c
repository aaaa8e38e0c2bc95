/* file.c - a network as a model file: tensors with PyTorch's names, its layers as JSON; and its facts. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/network/network.h"
#include "model/cell/cell.h"

static const char *const reads_word[] = {"steps", "last", "ends"}, *const act_word[] = {"none", "relu", "tanh"};

static struct js *layer_json(const struct network_layer *l) {
    struct js *o = js_object();
    js_put_text(o, "kind", l->cell < 0 ? "dense" : cell_of((enum cell_kind)l->cell)->name);
    js_put_i64(o, "inputs", l->I);
    js_put_i64(o, "units", l->units);
    if (l->cell >= 0)
        js_put_i64(o, "directions", l->both ? 2 : 1);
    else
        js_put_text(o, "activation", act_word[l->act]);
    return o;
}

static void put_facts(const struct network *w, struct js *o) {
    struct js *list = js_array();
    for (i32 k = 0; k < w->nlayer; k++) js_push(list, layer_json(&w->layer[k]));
    js_put_text(o, "source", w->source);
    js_put_i64(o, "inputs", w->I);
    js_put_i64(o, "outputs", w->O);
    js_put_text(o, "reads", reads_word[w->reads]);
    js_put(o, "layers", list);
}

static i64 parameters(const struct network *w) {
    struct tensor_info info[8];
    i64 n = 0;
    for (i32 l = 0; l < w->net.nop; l++) {
        const struct op *op = &w->net.op[l];
        for (i32 t = op->ntheta > 0 ? op->layer->tensors(op, info) - 1 : -1; t >= 0; t--)
            n += (i64)info[t].rows * imax(1, info[t].cols);
    }
    return n;
}

err network_describe(const struct model *m, struct description *out) {
    const struct network *w = network_of(m);
    out->parameters = parameters(w);
    if (out->info) put_facts(w, out->info);
    if (out->record) put_facts(w, out->record);
    return 0;
}

err network_save(const struct model *m, struct tens_list *list, struct str *json) {
    const struct network *w = network_of(m);
    struct js *o = js_object();
    put_facts(w, o);
    const err e = js_text(o, json, 0);
    js_free(o);
    TRY(e);
    return model_put(list, &w->net, w->theta, "");
}

static err damaged(const char *path, const char *what) {
    return FAIL_AT(E901, NULL, "the model file that `stretto import` wrote", "%s: %s", path, what);
}

static i32 word_at(const char *const *list, i32 n, const char *word) {
    i32 i = 0;
    while (i < n && strcmp(list[i], word) != 0) i++;
    return i < n ? i : -1;
}

/* Widths must follow from the layers in front; recurrent layers come first. */
static err read_layer(const struct js *o, const char *path, struct network *w) {
    struct network_layer *l = &w->layer[w->nlayer];
    const char *kind = js_str(js_get(o, "kind"), "");
    const struct cell *c = cell_find(kind);
    const struct network_layer *before = w->nlayer > 0 ? l - 1 : NULL;
    const i32 act = word_at(act_word, COUNT(act_word), js_str(js_get(o, "activation"), "none"));
    const i64 I = js_i64(js_get(o, "inputs"), 0), units = js_i64(js_get(o, "units"), 0);
    const i64 want = !before ? w->I : (i64)before->units * (before->both ? 2 : 1);
    if ((!c && strcmp(kind, "dense") != 0) || act < 0 || I != want || units < 1 || units > NETWORK_WIDTH)
        return damaged(path, "a layer is not complete");
    *l = (struct network_layer){.cell = c ? (i32)c->kind : -1, .I = (i32)I, .units = (i32)units, .act = (enum activation)act};
    l->both = js_i64(js_get(o, "directions"), 1) == 2;
    if (c && (c->diagonal || (before && before->cell < 0))) return damaged(path, "a layer is not complete");
    w->nlayer++;
    return 0;
}

static err read_all(const struct js *json, const char *path, struct network *w) {
    const struct js *list = js_get(json, "layers");
    const i64 n = js_len(list), I = js_i64(js_get(json, "inputs"), 0);
    const i32 reads = word_at(reads_word, COUNT(reads_word), js_str(js_get(json, "reads"), ""));
    if (n < 1 || n > NETWORK_LAYERS || I < 1 || I > NETWORK_WIDTH || reads < 0) return damaged(path, "its layers are missing");
    w->I = (i32)I;
    w->reads = (enum network_reads)reads;
    snprintf(w->source, sizeof w->source, "%.255s", js_str(js_get(json, "source"), ""));
    for (i64 k = 0; k < n; k++) TRY(read_layer(js_at(list, k), path, w));
    if (w->layer[0].cell < 0) return damaged(path, "its first layer is not recurrent");
    const struct network_layer *top = &w->layer[n - 1];
    w->O = top->units * (top->both ? 2 : 1);
    return 0;
}

err network_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json,
                 struct model **out) {
    struct network *w;
    i32 buf;
    (void)o;
    NEW(w, 1);
    *out = &w->model;
    TRY(read_all(json, path, w));
    TRY(network_net(w, 1, &w->net, &buf));
    NEW(w->theta, w->net.ntheta);
    return model_take(file, &w->net, "", w->theta);
}

void network_free(struct model *m) {
    struct network *w = network_of(m);
    if (!w) return;
    mem_free(w->theta);
    model_drop(&w->model);
    mem_free(w);
}
