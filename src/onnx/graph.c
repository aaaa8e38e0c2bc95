/* graph.c - see graph.h: messages ModelProto, GraphProto, NodeProto, TensorProto and ValueInfoProto of onnx.proto. */
#include "onnx/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "onnx/wire.h"

/* Field numbers of onnx.proto. */
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_META = 14 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INIT = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTR = 5, NODE_DOMAIN = 7 };
enum {
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_G = 6,
    ATTR_FLOATS_ = 7,
    ATTR_INTS_ = 8,
    ATTR_STRINGS_ = 9,
    ATTR_TYPE = 20
};
enum { TENSOR_DIM = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };

void onnx_graph_free(struct onnx_graph *g) {
    str_free(&g->node);
    str_free(&g->init);
    str_free(&g->input);
    str_free(&g->output);
    str_free(&g->meta);
    str_free(&g->reasons);
    mem_free(g->name);
    arena_free(&g->arena);
    *g = (struct onnx_graph){0};
}

/* --- values --- */

static err grow(struct onnx_graph *g) {
    GROW(g->name, g->nval, g->room);
    return 0;
}

static val new_value(struct onnx_graph *g, const char *name) {
    const char *own =
        name ? arena_strdup(&g->arena, name) : arena_printf(&g->arena, "%sv%lld", g->prefix ? g->prefix : "", (long long)g->nval);
    if (!own || grow(g) < 0) {
        g->failed = true;
        return 0;
    }
    g->name[g->nval] = own;
    return (val)g->nval++;
}

static const char *name_of(const struct onnx_graph *g, val v) { return v >= 0 && v < g->nval ? g->name[v] : ""; }

static void value_info(struct str *to, i32 field, const char *name, enum onnx_type type, i32 ndim, const struct onnx_dim *dim) {
    struct str shape = {0}, tensor = {0}, kind = {0}, info = {0};
    for (i32 i = 0; i < ndim; i++) {
        struct str d = {0};
        if (dim[i].name)
            wire_text(&d, 2, dim[i].name);
        else
            wire_int(&d, 1, dim[i].n);
        wire_message(&shape, 1, &d);
    }
    wire_int(&tensor, 1, type);
    wire_message(&tensor, 2, &shape);
    wire_message(&kind, 1, &tensor);
    wire_text(&info, 1, name);
    wire_message(&info, 2, &kind);
    wire_message(to, field, &info);
}

val onnx_input(struct onnx_graph *g, const char *name, enum onnx_type type, i32 ndim, const struct onnx_dim *dim) {
    const val v = new_value(g, name);
    value_info(&g->input, GRAPH_INPUT, name_of(g, v), type, ndim, dim);
    return v;
}

void onnx_output(struct onnx_graph *g, val v, const char *name, enum onnx_type type, i32 ndim, const struct onnx_dim *dim) {
    val out = new_value(g, name);
    struct str node = {0};
    wire_text(&node, NODE_INPUT, name_of(g, v));
    wire_text(&node, NODE_OUTPUT, name_of(g, out));
    wire_text(&node, NODE_OP, "Identity");
    wire_message(&g->node, GRAPH_NODE, &node);
    value_info(&g->output, GRAPH_OUTPUT, name_of(g, out), type, ndim, dim);
}

static size_t size_of(enum onnx_type type) { return type == ONNX_BOOL ? 1 : type == ONNX_DOUBLE || type == ONNX_INT64 ? 8 : 4; }

val onnx_tensor(struct onnx_graph *g, const char *name, enum onnx_type type, i32 ndim, const i64 *dim, const void *data) {
    const val v = new_value(g, name);
    struct str t = {0};
    size_t n = size_of(type);
    for (i32 i = 0; i < ndim; i++) {
        wire_int(&t, TENSOR_DIM, dim[i]);
        n *= (size_t)dim[i];
    }
    wire_int(&t, TENSOR_TYPE, type);
    wire_text(&t, TENSOR_NAME, name_of(g, v));
    wire_bytes(&t, TENSOR_RAW, data, n);
    wire_message(&g->init, GRAPH_INIT, &t);
    return v;
}

void onnx_meta(struct onnx_graph *g, const char *key, const char *value) {
    struct str entry = {0};
    wire_text(&entry, 1, key);
    wire_text(&entry, 2, value);
    wire_message(&g->meta, MODEL_META, &entry);
}

void onnx_refuse(struct onnx_graph *g, const char *fmt, ...) {
    char text[256];
    va_list ap;
    while (g->outer) g = g->outer;
    va_start(ap, fmt);
    str_print_args(text, sizeof text, fmt, ap);
    va_end(ap);
    if (g->reasons.len && strstr(str_text(&g->reasons), text)) return; /* every member of an ensemble has the same layers */
    str_addf(&g->reasons, "%s%s", g->nreason++ ? "; " : "", text);
}

/* --- nodes --- */

static void graph_message(struct onnx_graph *g, const char *name, struct str *to) {
    str_addn(to, str_text(&g->node), g->node.len);
    wire_text(to, GRAPH_NAME, name);
    str_addn(to, str_text(&g->init), g->init.len);
    str_addn(to, str_text(&g->input), g->input.len);
    str_addn(to, str_text(&g->output), g->output.len);
    to->failed |= g->failed || g->node.failed || g->init.failed || g->input.failed || g->output.failed;
}

static void add_words(struct str *to, const char *s) {
    for (size_t n; *s; s += n + (s[n] == ' ')) {
        n = strcspn(s, " ");
        wire_bytes(to, ATTR_STRINGS_, s, n);
    }
}

static void add_attr(struct str *node, const struct onnx_attr *a) {
    struct str t = {0}, body = {0};
    wire_text(&t, ATTR_NAME, a->name);
    if (a->type == ATTR_FLOAT) wire_f32(&t, ATTR_F, a->f);
    if (a->type == ATTR_INT) wire_int(&t, ATTR_I, a->i);
    if (a->type == ATTR_STRING) wire_text(&t, ATTR_S, a->s);
    if (a->type == ATTR_STRINGS) add_words(&t, a->s);
    for (i64 i = 0; a->type == ATTR_INTS && i < a->n; i++) wire_int(&t, ATTR_INTS_, a->ints[i]);
    for (i64 i = 0; a->type == ATTR_FLOATS && i < a->n; i++) wire_f32(&t, ATTR_FLOATS_, a->floats[i]);
    if (a->type == ATTR_GRAPH) {
        graph_message(a->graph, "body", &body);
        wire_message(&t, ATTR_G, &body);
        onnx_graph_free(a->graph);
    }
    wire_int(&t, ATTR_TYPE, a->type);
    wire_message(node, NODE_ATTR, &t);
}

void onnx_node(struct onnx_graph *g, const char *op, i32 nin, const val *in, i32 nout, val *out, const struct onnx_attr *attr) {
    struct str node = {0};
    const bool ml = strncmp(op, "Tree", 4) == 0;
    while (nin > 0 && in[nin - 1] < 0) nin--;
    for (i32 i = 0; i < nin; i++) wire_text(&node, NODE_INPUT, name_of(g, in[i]));
    for (i32 i = 0; i < nout; i++) {
        if (out[i] >= 0) out[i] = new_value(g, NULL);
        wire_text(&node, NODE_OUTPUT, name_of(g, out[i]));
    }
    wire_text(&node, NODE_OP, op);
    for (; attr && attr->name; attr++) add_attr(&node, attr);
    if (ml) wire_text(&node, NODE_DOMAIN, "ai.onnx.ml");
    for (struct onnx_graph *o = g; o; o = o->outer) o->ml |= ml;
    wire_message(&g->node, GRAPH_NODE, &node);
}

void onnx_body(struct onnx_graph *g, struct onnx_graph *body) {
    *body = (struct onnx_graph){.outer = g};
    body->prefix = arena_printf(&g->arena, "%sb%d.", g->prefix ? g->prefix : "", g->serial++);
}

val onnx_outer(struct onnx_graph *body, val v) { return new_value(body, name_of(body->outer, v)); }

/* --- the model --- */

static void opset(struct str *to, const char *domain, i64 version) {
    struct str t = {0};
    wire_text(&t, 1, domain);
    wire_int(&t, 2, version);
    wire_message(to, MODEL_OPSET, &t);
}

err onnx_graph_text(struct onnx_graph *g, const char *what, struct str *out) {
    struct str graph = {0};
    TRY(str_ok(&g->reasons));
    if (g->nreason > 0)
        return FAIL_AT(
            E904, what,
            g->nreason == 1 && g->fix ? g->fix : "a model trained without these parts (docs/onnx.md lists what ONNX can express)",
            "ONNX cannot express %d part%s of this model: %s", g->nreason, g->nreason > 1 ? "s" : "", str_text(&g->reasons));
    wire_int(out, MODEL_IR, ONNX_IR);
    wire_text(out, MODEL_PRODUCER, "stretto");
    graph_message(g, "stretto", &graph);
    wire_message(out, MODEL_GRAPH, &graph);
    opset(out, "", ONNX_OPSET);
    if (g->ml) opset(out, "ai.onnx.ml", ONNX_ML_OPSET);
    str_addn(out, str_text(&g->meta), g->meta.len);
    out->failed |= g->meta.failed;
    return str_ok(out);
}
