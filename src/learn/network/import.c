/* import.c - the layers of an ONNX graph: a chain of LSTM, GRU, RNN, then of MatMul, Gemm, Add, Relu, Tanh.
 *
 *     input --[Transpose]--> LSTM --[Transpose, Reshape | Squeeze]--> LSTM .. --[Gather -1 | Slice -1: | Y_h]--> Gemm --> output
 *
 * Each value of the chain has a form (how its axes lie); nodes that only move axes change the form.  Values that are made from
 * shapes are zeros (initial states) or are not looked at (the shape of a Reshape). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/network/network.h"
#include "model/cell/cell.h"

enum { DEPTH = 64 };

struct sym {
    const char *name;
    enum network_form form;
    enum network_reads reads;
    i32 F, dirs, at; /* features; directions; layers in front of it */
};

struct importer {
    const struct onnx_file *f;
    struct network *w;
    struct sym *sym; /* values of the chain */
    i32 nsym;
    bool *needed;   /* [nnode] */
    struct str why; /* what cannot be held */
    i32 nwhy;
    struct arena room;
    enum network_form in;
};

static void refuse(struct importer *m, const struct onnx_in_node *n, const char *what) {
    char text[192];
    snprintf(text, sizeof text, "%s%s%.60s%s: %.80s", n ? n->op : "graph", n && *n->name ? " \"" : "", n ? n->name : "",
             n && *n->name ? "\"" : "", what);
    if (m->why.len && strstr(str_text(&m->why), text)) return;
    str_addf(&m->why, "%s%s", m->nwhy++ ? "; " : "", text);
}

static struct sym *find(const struct importer *m, const char *name) {
    for (i32 i = m->nsym - 1; i >= 0 && *name; i--)
        if (strcmp(m->sym[i].name, name) == 0) return &m->sym[i];
    return NULL;
}

static const struct onnx_in_node *maker(const struct onnx_file *f, const char *name) {
    for (i32 i = 0; i < f->nnode && *name; i++)
        for (i32 k = 0; k < f->node[i].nout; k++)
            if (strcmp(f->node[i].out[k], name) == 0) return &f->node[i];
    return NULL;
}

static bool one_of(const char *s, const char *const *list) {
    for (; *list; list++)
        if (strcmp(s, *list) == 0) return true;
    return false;
}

static bool is_recurrent(const struct onnx_in_node *n) {
    return one_of(n->op, (const char *const[]){"LSTM", "GRU", "RNN", NULL});
}

static const char *input_of(const struct onnx_in_node *n, i32 i) { return i < n->nin ? n->in[i] : ""; }

bool network_is_weight(const struct onnx_file *f, const char *input) {
    for (i32 i = 0; i < f->nnode; i++)
        for (i32 k = is_recurrent(&f->node[i]) ? 1 : 0; k < f->node[i].nin; k++)
            if (strcmp(f->node[i].in[k], input) == 0 && (k > 0 || !is_recurrent(&f->node[i]))) return k > 0;
    return false;
}

/* ------------------------------------------------------------------ constants ----------------------------------------------- */

static bool all_zero(const struct onnx_constant *t) {
    if (!t->read || !t->f) return false;
    for (i64 k = 0; k < t->n; k++)
        if (t->f[k] != 0) return false;
    return true;
}

/* A value that holds zeros whatever its shape is: the initial states of exported layers. */
static bool is_zero(const struct onnx_file *f, const char *name, i32 depth) {
    static const char *const movers[] = {"Expand",    "Slice",   "Gather",   "Unsqueeze", "Squeeze",
                                         "Transpose", "Reshape", "Identity", "Tile",      NULL};
    const struct onnx_constant *t = onnx_find(f, name);
    if (t) return all_zero(t);
    const struct onnx_in_node *n = depth < DEPTH ? maker(f, name) : NULL;
    if (!n) return false;
    if (strcmp(n->op, "ConstantOfShape") == 0) {
        const struct onnx_attribute *v = onnx_attr_of(n, "value");
        return !v || !v->t || all_zero(v->t);
    }
    bool zero = one_of(n->op, movers) && n->nin > 0 && is_zero(f, n->in[0], depth + 1);
    if (strcmp(n->op, "Concat") == 0) {
        zero = n->nin > 0;
        for (i32 i = 0; i < n->nin && zero; i++) zero = is_zero(f, n->in[i], depth + 1);
    }
    return zero;
}

/* A constant of reals with this shape; NULL if it is none. */
static const struct onnx_constant *weights(const struct importer *m, const char *name, i32 ndim, i64 a, i64 b, i64 c) {
    const struct onnx_constant *t = onnx_find(m->f, name);
    const i64 want[] = {a, b, c};
    if (!t || !t->read || !t->f || t->ndim != ndim) return NULL;
    for (i32 i = 0; i < ndim; i++)
        if (t->dim[i] != want[i]) return NULL;
    return t;
}

/* Whole number k of a constant, or of a list of attributes; `otherwise` if there is none. */
static i64 whole(const struct importer *m, const struct onnx_in_node *n, i32 in, const char *attr, i32 k, i64 otherwise) {
    const struct onnx_attribute *a = onnx_attr_of(n, attr);
    const struct onnx_constant *t = onnx_find(m->f, input_of(n, in));
    if (t && t->read && t->i && k < t->n) return t->i[k];
    return a && k < a->n ? a->ints[k] : otherwise;
}

static i64 attr_int(const struct onnx_in_node *n, const char *name, i64 otherwise) {
    const struct onnx_attribute *a = onnx_attr_of(n, name);
    return a ? a->i : otherwise;
}

/* ------------------------------------------------------------------ recurrent ----------------------------------------------- */

static const i32 order[3][4] = {{0, 2, 3, 1}, {1, 0, 2}, {0}}; /* where our gate k stands in ONNX */

/* Block `dir` of a tensor [D][parts * G][block], in our order of gates; from: the first gate. */
static const f32 *gates(struct importer *m, const struct cell *c, const struct onnx_constant *t, i64 from, i64 block) {
    f32 *w = arena_array(&m->room, c->gates * block, sizeof *w);
    for (i32 k = 0; w && k < c->gates && t; k++)
        memcpy(w + k * block, t->f + from + order[c->kind][k] * block, sizeof *w * (size_t)block);
    return w;
}

static err take_weights(struct importer *m, const struct onnx_in_node *n, struct network_layer *l, const struct cell *c) {
    const i64 D = l->both ? 2 : 1, GH = (i64)c->gates * l->units, H = l->units;
    const struct onnx_constant *W = weights(m, input_of(n, 1), 3, D, GH, l->I), *R = weights(m, input_of(n, 2), 3, D, GH, H);
    const struct onnx_constant *B = weights(m, input_of(n, 3), 2, D, 2 * GH, 0);
    if (!W || !R || (*input_of(n, 3) && !B)) {
        refuse(m, n, "its weights are no constants of the expected shape");
        return 0;
    }
    for (i64 d = 0; d < D; d++) {
        l->w[4 * d] = gates(m, c, W, d * GH * l->I, H * l->I);
        l->w[4 * d + 1] = gates(m, c, R, d * GH * H, H * H);
        l->w[4 * d + 2] = gates(m, c, B, d * 2 * GH, H);
        l->w[4 * d + 3] = gates(m, c, B, d * 2 * GH + GH, H);
        for (i32 k = 0; k < 4; k++)
            if (!l->w[4 * d + k]) return -E601;
    }
    return 0;
}

/* The functions of a cell, as many times as it has directions. */
static bool plain_activations(const struct onnx_in_node *n, const char *own) {
    const struct onnx_attribute *a = onnx_attr_of(n, "activations");
    const size_t len = strlen(own);
    if (!a || !*a->s || strcmp(a->s, own) == 0) return true;
    return strncmp(a->s, own, len) == 0 && a->s[len] == ' ' && strcmp(a->s + len + 1, own) == 0;
}

static void check_cell(struct importer *m, const struct onnx_in_node *n, const char *direction) {
    const bool gru = strcmp(n->op, "GRU") == 0, lstm = strcmp(n->op, "LSTM") == 0;
    if (onnx_attr_of(n, "clip")) refuse(m, n, "clip");
    if (attr_int(n, "input_forget", 0)) refuse(m, n, "input_forget");
    if (gru && attr_int(n, "linear_before_reset", 0) == 0) refuse(m, n, "linear_before_reset = 0");
    if (!plain_activations(n, lstm ? "Sigmoid Tanh Tanh" : gru ? "Sigmoid Tanh" : "Tanh")) refuse(m, n, "other activations");
    if (strcmp(direction, "reverse") == 0) refuse(m, n, "direction reverse");
    if (*input_of(n, 4)) refuse(m, n, "sequence_lens");
    for (i32 i = 5; i < 7; i++)
        if (*input_of(n, i) && !is_zero(m->f, n->in[i], 0)) refuse(m, n, "an initial state that is not zero");
    if (*input_of(n, 7) && !is_zero(m->f, n->in[7], 0)) refuse(m, n, "peepholes");
}

static struct sym *new_sym(struct importer *m, const char *name, struct sym like) {
    like.name = name;
    m->sym[m->nsym] = like;
    return &m->sym[m->nsym++];
}

static err recurrent(struct importer *m, const struct onnx_in_node *n, const struct sym *x) {
    const struct onnx_attribute *direction = onnx_attr_of(n, "direction");
    const bool batch_first = attr_int(n, "layout", 0) == 1;
    const struct cell *c = cell_of(strcmp(n->op, "LSTM") == 0 ? CELL_LSTM : strcmp(n->op, "GRU") == 0 ? CELL_GRU : CELL_RNN);
    const i64 H = attr_int(n, "hidden_size", 0);
    struct network *w = m->w;
    check_cell(m, n, direction ? direction->s : "forward");
    if (x->form != (batch_first ? FORM_BTF : FORM_TBF)) refuse(m, n, "its input has other axes than its layout says");
    if (x->reads != READS_STEPS) refuse(m, n, "a layer behind the last step");
    if (H < 1 || H > NETWORK_WIDTH) refuse(m, n, "hidden_size");
    for (i32 k = 0; k < w->nlayer; k++)
        if (w->layer[k].cell < 0) refuse(m, n, "a recurrent layer behind a dense one");
    if (w->nlayer == NETWORK_LAYERS) refuse(m, n, "more than 32 layers");
    if (m->nwhy > 0) return 0;
    struct network_layer *l = &w->layer[w->nlayer];
    const struct onnx_constant *W = onnx_find(m->f, input_of(n, 1));
    const i32 I = x->F > 0 ? x->F : W && W->ndim == 3 && W->dim[2] <= NETWORK_WIDTH ? (i32)W->dim[2] : 0;
    *l = (struct network_layer){
        .cell = c->kind, .both = direction && strcmp(direction->s, "bidirectional") == 0, .I = I, .units = (i32)H};
    if (w->nlayer == 0) w->I = I;
    if (I < 1) refuse(m, n, "the number of its inputs");
    if (m->nwhy > 0) return 0;
    TRY(take_weights(m, n, l, c));
    w->nlayer++;
    const i32 dirs = l->both ? 2 : 1;
    struct sym y = {.form = batch_first ? FORM_BTDH : FORM_TDBH, .F = dirs * l->units, .dirs = dirs, .at = w->nlayer};
    if (n->nout > 0 && *n->out[0]) new_sym(m, n->out[0], y);
    y.form = batch_first ? FORM_BDH : FORM_DBH;
    y.reads = READS_ENDS;
    if (n->nout > 1 && *n->out[1]) new_sym(m, n->out[1], y);
    return 0;
}

/* ------------------------------------------------------------------ axes ---------------------------------------------------- */

static bool perm_is(const struct onnx_in_node *n, i64 count, const i64 *want) {
    const struct onnx_attribute *a = onnx_attr_of(n, "perm");
    return a && a->n == count && memcmp(a->ints, want, sizeof *want * (size_t)count) == 0;
}

static enum network_form transposed(const struct onnx_in_node *n, enum network_form x) {
    static const i64 swap[] = {1, 0, 2}, inner[] = {0, 2, 1, 3}, front[] = {2, 0, 1, 3};
    if (perm_is(n, 3, swap)) {
        if (x == FORM_TBF) return FORM_BTF;
        if (x == FORM_BTF) return FORM_TBF;
        if (x == FORM_DBH) return FORM_BDH;
    }
    if (perm_is(n, 4, inner) && x == FORM_TDBH) return FORM_TBDH;
    if (perm_is(n, 4, front) && x == FORM_TDBH) return FORM_BTDH;
    return FORM_NONE;
}

/* The directions become one axis of features. */
static enum network_form merged(const struct sym *x) {
    switch (x->form) {
        case FORM_TBDH:
            return FORM_TBF;
        case FORM_BTDH:
            return FORM_BTF;
        case FORM_BDH:
            return FORM_BF;
        case FORM_BF:
            return FORM_BF;
        default:
            return FORM_NONE;
    }
}

static enum network_form squeezed(const struct importer *m, const struct onnx_in_node *n, const struct sym *x) {
    const i64 axis = whole(m, n, 1, "axes", 0, -100);
    if (x->form == FORM_TDBH && x->dirs == 1 && (axis == 1 || axis == -3)) return FORM_TBF;
    if (x->form == FORM_BTDH && x->dirs == 1 && (axis == 2 || axis == -2)) return FORM_BTF;
    if (x->form == FORM_DBH && x->dirs == 1 && (axis == 0 || axis == -3)) return FORM_BF;
    if (x->form == FORM_BDH && x->dirs == 1 && (axis == 1 || axis == -2)) return FORM_BF;
    if (x->reads == READS_LAST && x->form == FORM_TBF && (axis == 0 || axis == -3)) return FORM_BF;
    if (x->reads == READS_LAST && x->form == FORM_BTF && (axis == 1 || axis == -2)) return FORM_BF;
    return FORM_NONE;
}

static i32 time_axis(const struct sym *x) { return x->form == FORM_TBF ? 0 : x->form == FORM_BTF ? 1 : -1; }

/* Gather of the last step, or of the only direction of a final state. */
static bool gathered(const struct importer *m, const struct onnx_in_node *n, const struct sym *x, struct sym *y) {
    const i64 axis = attr_int(n, "axis", 0), at = whole(m, n, 1, "", 0, 0);
    y->form = FORM_BF;
    if (x->form == FORM_DBH && axis == 0 && x->dirs == 1 && (at == 0 || at == -1)) return true;
    if (axis != time_axis(x) || x->reads != READS_STEPS || at != -1) return false;
    y->reads = READS_LAST;
    return true;
}

static bool sliced(const struct importer *m, const struct onnx_in_node *n, const struct sym *x, struct sym *y) {
    const i64 from = whole(m, n, 1, "starts", 0, 0), to = whole(m, n, 2, "ends", 0, 0), axis = whole(m, n, 3, "axes", 0, 0);
    const i64 step = whole(m, n, 4, "steps", 0, 1);
    if (axis != time_axis(x) || x->reads != READS_STEPS || from != -1 || to < NETWORK_STEPS || step != 1) return false;
    y->reads = READS_LAST; /* one step stays as an axis */
    return true;
}

static bool moved(const struct importer *m, const struct onnx_in_node *n, const struct sym *x, struct sym *y) {
    if (one_of(n->op, (const char *const[]){"Identity", "Dropout", NULL})) return true;
    if (strcmp(n->op, "Gather") == 0) return gathered(m, n, x, y);
    if (strcmp(n->op, "Slice") == 0) return sliced(m, n, x, y);
    y->form = FORM_NONE;
    if (strcmp(n->op, "Transpose") == 0) y->form = transposed(n, x->form);
    if (strcmp(n->op, "Reshape") == 0 || strcmp(n->op, "Flatten") == 0) y->form = merged(x);
    if (strcmp(n->op, "Squeeze") == 0) y->form = squeezed(m, n, x);
    return y->form != FORM_NONE;
}

/* ------------------------------------------------------------------ dense --------------------------------------------------- */

static const f32 *zeros(struct importer *m, i64 n) { return arena_array(&m->room, n, sizeof(f32)); }

/* A constant [a][b], turned if it is the right side of a product, as a weight [N][F]. */
static const f32 *weight(struct importer *m, const struct onnx_constant *t, bool as_is, f32 by) {
    const i64 N = t->dim[as_is ? 0 : 1], F = t->dim[as_is ? 1 : 0];
    f32 *w = arena_array(&m->room, N * F, sizeof *w);
    for (i64 i = 0; w && i < N; i++)
        for (i64 k = 0; k < F; k++) w[i * F + k] = by * t->f[as_is ? i * F + k : k * N + i];
    return w;
}

static err dense(struct importer *m, const struct onnx_in_node *n, const struct sym *x) {
    const bool gemm = strcmp(n->op, "Gemm") == 0, turned = gemm && attr_int(n, "transB", 0) == 1;
    const struct onnx_constant *t = onnx_find(m->f, input_of(n, 1));
    const struct onnx_attribute *alpha = onnx_attr_of(n, "alpha"), *beta = onnx_attr_of(n, "beta");
    struct network *w = m->w;
    if (!t || !t->read || !t->f || t->ndim != 2 || t->dim[turned ? 1 : 0] != x->F || t->dim[turned ? 0 : 1] > NETWORK_WIDTH ||
        t->n < 1)
        refuse(m, n, "its weights are no constant [inputs][outputs]");
    if (gemm && (attr_int(n, "transA", 0) == 1 || (beta && beta->f != 1))) refuse(m, n, "transA or beta");
    if (w->nlayer == NETWORK_LAYERS) refuse(m, n, "more than 32 layers");
    if (merged(x) == FORM_NONE && time_axis(x) < 0) refuse(m, n, "an input with an axis of directions");
    if (m->nwhy > 0) return 0;
    const i32 N = (i32)t->dim[turned ? 0 : 1];
    struct network_layer *l = &w->layer[w->nlayer++];
    *l = (struct network_layer){.cell = -1, .I = x->F, .units = N};
    l->w[0] = weight(m, t, turned, alpha ? alpha->f : 1);
    const struct onnx_constant *b = gemm && *input_of(n, 2) ? weights(m, n->in[2], 1, N, 0, 0) : NULL;
    if (gemm && *input_of(n, 2) && !b) refuse(m, n, "its bias is no constant [outputs]");
    if (b) l->w[1] = b->f;
    if (!l->w[0]) return -E601;
    struct sym y = *x;
    y.F = N, y.at = w->nlayer;
    if (n->nout > 0) new_sym(m, n->out[0], y);
    return 0;
}

/* Bias or activation of the dense layer in front. */
static err behind_dense(struct importer *m, const struct onnx_in_node *n, const struct sym *x, i32 data) {
    struct network_layer *l = m->w->nlayer > 0 ? &m->w->layer[m->w->nlayer - 1] : NULL;
    const bool add = strcmp(n->op, "Add") == 0;
    const struct onnx_constant *b = add ? weights(m, input_of(n, 1 - data), 1, x->F, 0, 0) : NULL;
    if (!l || l->cell >= 0 || l->act != ACT_NONE || (add && (!b || l->w[1])))
        refuse(m, n, "not directly behind MatMul or Gemm, or no constant [outputs]");
    if (m->nwhy > 0) return 0;
    if (add)
        l->w[1] = b->f;
    else
        l->act = strcmp(n->op, "Relu") == 0 ? ACT_RELU : ACT_TANH;
    if (n->nout > 0) new_sym(m, n->out[0], *x);
    return 0;
}

/* ------------------------------------------------------------------ the graph ----------------------------------------------- */

/* Marks the nodes that the output is made of, along the data alone. */
static void need(struct importer *m, const char *name, i32 depth) {
    const struct onnx_in_node *n = depth < ONNX_NODES_MOST ? maker(m->f, name) : NULL;
    if (!n || m->needed[n - m->f->node]) return;
    m->needed[n - m->f->node] = true;
    const bool two = one_of(n->op, (const char *const[]){"Add", "MatMul", "Concat", "Mul", "Sub", "Div", NULL});
    for (i32 i = 0; i < (two ? n->nin : imin(1, n->nin)); i++) need(m, n->in[i], depth + 1);
}

static err take(struct importer *m, const struct onnx_in_node *n) {
    const i32 data = strcmp(n->op, "Add") == 0 && find(m, input_of(n, 1)) ? 1 : 0;
    const struct sym *x = find(m, input_of(n, data));
    if (strcmp(n->op, "Constant") == 0) return 0;
    const bool own = !*n->domain;
    if (own && one_of(n->op, (const char *const[]){"Relu", "Tanh", "Add", NULL}) && x) return behind_dense(m, n, x, data);
    if (own && is_recurrent(n) && x) return recurrent(m, n, x);
    if (own && one_of(n->op, (const char *const[]){"MatMul", "Gemm", NULL}) && x) return dense(m, n, x);
    struct sym y = x ? *x : (struct sym){0};
    if (own && x && n->nout > 0 && moved(m, n, x, &y)) {
        new_sym(m, n->out[0], y);
        return 0;
    }
    refuse(m, n, own ? "not supported here" : "an operator of another domain");
    for (i32 k = 0; k < n->nout && k < 1; k++) new_sym(m, n->out[k], (struct sym){.form = FORM_TBF, .at = m->w->nlayer});
    return 0;
}

/* The axes of the input follow from the nodes: a Transpose in front of a recurrent layer turns [B][T][F]. */
static enum network_form input_form(const struct onnx_file *f, const char *name) {
    for (i32 i = 0; i < f->nnode; i++) {
        const struct onnx_in_node *n = &f->node[i];
        if (n->nin < 1 || strcmp(n->in[0], name) != 0) continue;
        if (strcmp(n->op, "Transpose") == 0 || (is_recurrent(n) && attr_int(n, "layout", 0) == 1)) return FORM_BTF;
        if (is_recurrent(n)) return FORM_TBF;
    }
    return FORM_TBF;
}

static const char *first_output(const struct onnx_file *f) { return f->noutput > 0 ? f->output[0].name : ""; }

static err chain(struct importer *m) {
    const struct onnx_file *f = m->f;
    const char *x = NULL;
    ARENA_NEW(&m->room, m->sym, 2 * (i64)f->nnode + f->ninput + 2);
    ARENA_NEW(&m->room, m->needed, f->nnode + 1);
    for (i32 i = 0; i < f->ninput && !x; i++)
        if (!network_is_weight(f, f->input[i].name)) x = f->input[i].name;
    if (!x) refuse(m, NULL, "it has no input");
    if (m->nwhy > 0) return 0;
    m->in = input_form(f, x);
    new_sym(m, x, (struct sym){.form = m->in});
    need(m, first_output(f), 0);
    for (i32 i = 0; i < f->nnode; i++)
        if (m->needed[i]) TRY(take(m, &f->node[i]));
    return 0;
}

/* The output, the width of the last layer, zeros for absent biases. */
static err finish(struct importer *m, struct network_io *io) {
    struct network *w = m->w;
    const struct sym *y = find(m, first_output(m->f));
    if (m->nwhy == 0 && (w->nlayer == 0 || w->layer[0].cell < 0)) refuse(m, NULL, "it begins with no recurrent layer");
    if (m->nwhy == 0 && !y) refuse(m, NULL, "its first output is not made of its input");
    if (m->nwhy == 0 && y->at != w->nlayer) refuse(m, NULL, "its output does not follow from its last layer");
    if (m->nwhy > 0) return 0;
    w->reads = y->reads;
    w->O = y->F;
    *io = (struct network_io){.in = m->in, .out = y->form, .dirs = imax(1, y->dirs)};
    for (i32 k = 0; k < w->nlayer; k++)
        if (w->layer[k].cell < 0 && !w->layer[k].w[1] && !(w->layer[k].w[1] = zeros(m, w->layer[k].units))) return -E601;
    i32 out;
    TRY(network_net(w, 1, &w->net, &out));
    NEW(w->theta, w->net.ntheta);
    network_weights(w);
    return 0;
}

static err told(struct importer *m, const char *path) {
    TRY(str_ok(&m->why));
    if (m->nwhy == 0) return 0;
    return FAIL_AT(E906, path, "a graph of LSTM, GRU or RNN layers, the last step, Gemm (docs/onnx.md)",
                   "a network cannot hold %d part%s of this graph: %s", m->nwhy, m->nwhy > 1 ? "s" : "", str_text(&m->why));
}

err network_import(const struct onnx_file *f, const char *path, struct network **out, struct network_io *io) {
    struct importer m = {.f = f};
    *out = NULL;
    NEW(m.w, 1);
    snprintf(m.w->source, sizeof m.w->source, "%.255s", path);
    err e = chain(&m);
    if (e >= 0) e = finish(&m, io);
    if (e >= 0) e = told(&m, path);
    for (i32 k = 0; k < NETWORK_LAYERS; k++)
        memset(m.w->layer[k].w, 0, sizeof m.w->layer[k].w); /* they lie in the file, or the room */
    if (e < 0)
        network_free(&m.w->model);
    else
        *out = m.w;
    str_free(&m.why);
    arena_free(&m.room);
    return e;
}
