/* read.c - see read.h. */
#include "onnx/read.h"

#include <string.h>

#include "onnx/wire.h"

/* Field numbers of onnx.proto. */
enum { MODEL_GRAPH = 7, MODEL_OPSET = 8, GRAPH_NODE = 1, GRAPH_INIT = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTR = 5, NODE_DOMAIN = 7 };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_T = 5,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS = 9
};
enum {
    TENSOR_DIM = 1,
    TENSOR_TYPE = 2,
    TENSOR_FLOATS = 4,
    TENSOR_INTS = 5,
    TENSOR_LONGS = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_DOUBLES = 10,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14
};

struct reading {
    const char *path;
    struct onnx_file *f;
    struct arena *a;
    i64 cells; /* of all constants so far */
};

static err bad(const struct reading *r, const char *what) {
    return FAIL_AT(E905, r->path, "an ONNX model (.onnx), complete", "not an ONNX model that can be read: %s", what);
}

static err wrong(const struct reading *r, const struct wire *w) { return w->bad ? bad(r, "its bytes are no messages") : 0; }

static err text(const struct reading *r, const struct wire_field *f, const char **out) {
    *out = f->kind == WIRE_BYTES ? arena_strndup(r->a, (const char *)f->p, (size_t)f->n) : "";
    return *out ? 0 : -E601;
}

/* How often a field occurs. */
static i32 count(struct wire w, i32 number) {
    struct wire_field f;
    i32 n = 0;
    while (wire_next(&w, &f)) n += f.number == number && n < INT32_MAX;
    return n;
}

/* ------------------------------------------------------------------ tensors ------------------------------------------------- */

/* Where the numbers of a tensor stand: raw bytes, or a field of its type, packed or not. */
struct numbers {
    const u8 *raw;
    i64 nraw, at; /* at: numbers taken */
};

static bool is_real(i32 type) { return type == ONNX_FLOAT || type == ONNX_DOUBLE; }
static bool is_whole(i32 type) { return type == ONNX_INT32 || type == ONNX_INT64 || type == ONNX_BOOL; }
static i64 width_of(i32 type) { return type == ONNX_DOUBLE || type == ONNX_INT64 ? 8 : type == ONNX_BOOL ? 1 : 4; }

static void put(struct onnx_constant *t, i64 k, const u8 *p) {
    f64 d;
    f32 s;
    i64 l;
    i32 i;
    if (t->type == ONNX_DOUBLE) memcpy(&d, p, 8), t->f[k] = (f32)d;
    if (t->type == ONNX_FLOAT) memcpy(&s, p, 4), t->f[k] = s;
    if (t->type == ONNX_INT64) memcpy(&l, p, 8), t->i[k] = l;
    if (t->type == ONNX_INT32) memcpy(&i, p, 4), t->i[k] = i;
    if (t->type == ONNX_BOOL) t->i[k] = *p != 0;
}

/* The numbers of one field that is not raw: false where there are more than the shape says. */
static bool take(struct onnx_constant *t, const struct wire_field *f, i64 *at) {
    const bool fixed = is_real(t->type);
    const i64 width = fixed ? width_of(t->type) : 1;
    if (f->kind != WIRE_BYTES) {
        if (*at >= t->n) return false;
        u64 v = f->v;
        if (fixed)
            put(t, (*at)++, (const u8 *)&v);
        else
            t->i[(*at)++] = (i64)v;
        return true;
    }
    struct wire w = wire_of(f->p, f->n);
    i64 v;
    for (i64 k = 0; fixed && k + width <= f->n; k += width) {
        if (*at >= t->n) return false;
        put(t, (*at)++, f->p + k);
    }
    while (!fixed && wire_packed(&w, &v)) {
        if (*at >= t->n) return false;
        t->i[(*at)++] = v;
    }
    return !w.bad && (!fixed || f->n % width == 0);
}

static err add_dim(const struct reading *r, struct onnx_constant *t, i64 dim) {
    if (t->ndim == ONNX_DIMS) return bad(r, "a tensor has more than 6 dimensions");
    if (dim < 0 || (dim > 0 && t->n > ONNX_CELLS_MOST / dim)) return bad(r, "a tensor is too large");
    t->dim[t->ndim++] = dim;
    t->n *= dim;
    return 0;
}

static err dims(const struct reading *r, struct onnx_constant *t, const struct wire_field *f) {
    if (f->kind == WIRE_VARINT) return add_dim(r, t, (i64)f->v);
    struct wire w = wire_of(f->p, f->n);
    i64 v;
    while (f->kind == WIRE_BYTES && wire_packed(&w, &v)) TRY(add_dim(r, t, v));
    return wrong(r, &w);
}

/* Shape, type, name; where the data are. */
static err tensor_head(struct reading *r, struct wire w, struct onnx_constant *t, struct numbers *from) {
    struct wire_field f;
    bool outside = false;
    *t = (struct onnx_constant){.name = "", .n = 1};
    while (wire_next(&w, &f)) {
        if (f.number == TENSOR_DIM) TRY(dims(r, t, &f));
        if (f.number == TENSOR_TYPE && f.kind == WIRE_VARINT) t->type = (i32)(f.v & 0xFFFF);
        if (f.number == TENSOR_NAME) TRY(text(r, &f, &t->name));
        if (f.number == TENSOR_RAW && f.kind == WIRE_BYTES) from->raw = f.p, from->nraw = f.n;
        outside |= f.number == TENSOR_EXTERNAL || (f.number == TENSOR_LOCATION && f.v != 0);
    }
    TRY(wrong(r, &w));
    t->read = !outside && (is_real(t->type) || is_whole(t->type));
    return 0;
}

static err tensor(struct reading *r, const struct wire_field *field, struct onnx_constant *t) {
    struct wire w = wire_of(field->p, field->kind == WIRE_BYTES ? field->n : 0);
    struct numbers from = {0};
    struct wire_field f;
    TRY(tensor_head(r, w, t, &from));
    if (!t->read) return 0;
    if ((r->cells += t->n) > ONNX_CELLS_MOST) return bad(r, "its tensors are too large");
    if (from.raw && from.nraw != t->n * width_of(t->type)) return bad(r, "a tensor has not the size that its shape says");
    if (!from.raw && t->n > field->n) return bad(r, "a tensor has not the size that its shape says"); /* before the memory */
    if (is_real(t->type))
        ARENA_NEW(r->a, t->f, t->n);
    else
        ARENA_NEW(r->a, t->i, t->n);
    for (i64 k = 0; from.raw && k < t->n; k++) put(t, k, from.raw + k * width_of(t->type));
    if (from.raw) return 0;
    const i32 number = t->type == ONNX_FLOAT    ? TENSOR_FLOATS
                       : t->type == ONNX_DOUBLE ? TENSOR_DOUBLES
                       : t->type == ONNX_INT64  ? TENSOR_LONGS
                                                : TENSOR_INTS;
    while (wire_next(&w, &f))
        if (f.number == number && !take(t, &f, &from.at)) return bad(r, "a tensor has not the size that its shape says");
    return from.at == t->n ? 0 : bad(r, "a tensor has not the size that its shape says");
}

err onnx_read_tensor(const void *bytes, i64 n, const char *path, struct arena *a, struct onnx_constant *out) {
    struct reading r = {.path = path, .a = a};
    const struct wire_field all = {.kind = WIRE_BYTES, .p = bytes, .n = n};
    TRY(tensor(&r, &all, out));
    return out->read ? 0 : bad(&r, "the tensor is of a type that is not read");
}

/* ------------------------------------------------------------------ nodes --------------------------------------------------- */

static err add_int(const struct reading *r, struct onnx_attribute *a, i64 v, i64 room) {
    if (a->n >= room) return bad(r, "an attribute has too many numbers");
    a->ints[a->n++] = v;
    return 0;
}

static err attribute(struct reading *r, const struct wire_field *field, struct onnx_attribute *a) {
    struct wire w = wire_of(field->p, field->n);
    struct wire_field f;
    const i64 room = field->n; /* a number takes a byte at the least */
    *a = (struct onnx_attribute){.name = "", .s = ""};
    while (wire_next(&w, &f)) {
        if (f.number == ATTRIBUTE_NAME) TRY(text(r, &f, &a->name));
        if (f.number == ATTRIBUTE_I && f.kind == WIRE_VARINT) a->i = (i64)f.v;
        if (f.number == ATTRIBUTE_F && f.kind == WIRE_FIXED32) memcpy(&a->f, &(u32){(u32)f.v}, sizeof a->f);
        if (f.number == ATTRIBUTE_S) TRY(text(r, &f, &a->s));
        if (f.number == ATTRIBUTE_STRINGS && f.kind == WIRE_BYTES) {
            a->s = arena_printf(r->a, "%s%s%.*s", a->s, *a->s ? " " : "", (int)lmin(f.n, 64), (const char *)f.p);
        }
        if (f.number == ATTRIBUTE_T && f.kind == WIRE_BYTES) {
            ARENA_NEW(r->a, a->t, 1);
            TRY(tensor(r, &f, a->t));
        }
        if (f.number != ATTRIBUTE_INTS) continue;
        if (!a->ints) ARENA_NEW(r->a, a->ints, room);
        struct wire packed = wire_of(f.p, f.kind == WIRE_BYTES ? f.n : 0);
        i64 v;
        if (f.kind == WIRE_VARINT) TRY(add_int(r, a, (i64)f.v, room));
        while (wire_packed(&packed, &v)) TRY(add_int(r, a, v, room));
        TRY(wrong(r, &packed));
    }
    return wrong(r, &w);
}

static err node(struct reading *r, const struct wire_field *field, struct onnx_in_node *n) {
    struct wire w = wire_of(field->p, field->n);
    struct wire_field f;
    const i32 nin = count(w, NODE_INPUT), nout = count(w, NODE_OUTPUT), nattr = count(w, NODE_ATTR);
    *n = (struct onnx_in_node){.op = "", .domain = "", .name = ""};
    if (nin > ONNX_NODE_VALUES || nout > ONNX_NODE_VALUES || nattr > ONNX_NODE_VALUES)
        return bad(r, "a node has too many values");
    ARENA_NEW(r->a, n->in, nin);
    ARENA_NEW(r->a, n->out, nout);
    ARENA_NEW(r->a, n->attr, nattr);
    while (wire_next(&w, &f)) {
        if (f.number == NODE_INPUT) TRY(text(r, &f, &n->in[n->nin++]));
        if (f.number == NODE_OUTPUT) TRY(text(r, &f, &n->out[n->nout++]));
        if (f.number == NODE_NAME) TRY(text(r, &f, &n->name));
        if (f.number == NODE_OP) TRY(text(r, &f, &n->op));
        if (f.number == NODE_DOMAIN) TRY(text(r, &f, &n->domain));
        if (f.number == NODE_ATTR && f.kind == WIRE_BYTES) TRY(attribute(r, &f, &n->attr[n->nattr++]));
    }
    if (strcmp(n->domain, "ai.onnx") == 0) n->domain = "";
    return wrong(r, &w);
}

/* ------------------------------------------------------------------ the graph ----------------------------------------------- */

/* dim { dim_value 1 } of shape 2 of tensor_type 1 of type 2 of a ValueInfo. */
static bool inside(struct wire w, i32 number, struct wire *out) {
    struct wire_field f;
    while (wire_next(&w, &f))
        if (f.number == number && f.kind == WIRE_BYTES) {
            *out = wire_of(f.p, f.n);
            return true;
        }
    return false;
}

static err value(const struct reading *r, const struct wire_field *field, struct onnx_in_value *v) {
    struct wire w = wire_of(field->p, field->n), type, shape;
    struct wire_field f, d;
    *v = (struct onnx_in_value){.name = ""};
    if (inside(w, 2, &type) && inside(type, 1, &type) && inside(type, 2, &shape))
        while (wire_next(&shape, &f) && v->ndim < ONNX_DIMS) {
            struct wire one = wire_of(f.p, f.kind == WIRE_BYTES ? f.n : 0);
            v->dim[v->ndim] = -1;
            while (wire_next(&one, &d))
                if (d.number == 1 && d.kind == WIRE_VARINT) v->dim[v->ndim] = (i64)d.v;
            v->ndim++;
        }
    while (wire_next(&w, &f))
        if (f.number == 1) TRY(text(r, &f, &v->name));
    return wrong(r, &w);
}

/* A node Constant is a constant of the graph. */
static err take_constant(struct reading *r, struct onnx_in_node *n) {
    const struct onnx_attribute *a = onnx_attr_of(n, "value");
    struct onnx_file *f = r->f;
    if (strcmp(n->op, "Constant") != 0 || n->nout != 1) return 0;
    struct onnx_constant *t = &f->constant[f->nconstant++];
    *t = (struct onnx_constant){.name = n->out[0], .n = 1};
    if (a && a->t) {
        *t = *a->t;
        t->name = n->out[0];
    }
    const struct onnx_attribute *real = onnx_attr_of(n, "value_float"), *ints = onnx_attr_of(n, "value_ints");
    const struct onnx_attribute *whole = onnx_attr_of(n, "value_int");
    if (real) {
        ARENA_NEW(r->a, t->f, 1);
        t->f[0] = real->f, t->type = ONNX_FLOAT, t->read = true;
    }
    if (whole || ints) {
        ARENA_NEW(r->a, t->i, ints ? ints->n : 1);
        if (ints)
            memcpy(t->i, ints->ints, sizeof *t->i * (size_t)ints->n);
        else
            t->i[0] = whole->i;
        t->type = ONNX_INT64, t->read = true, t->n = ints ? ints->n : 1;
        t->ndim = ints ? 1 : 0, t->dim[0] = t->n;
    }
    return 0;
}

/* Inputs that are initializers, too, are constants with a default (files before IR 4). */
static void drop_inputs(struct onnx_file *f) {
    i32 n = 0;
    for (i32 i = 0; i < f->ninput; i++)
        if (!onnx_find(f, f->input[i].name)) f->input[n++] = f->input[i];
    f->ninput = n;
}

void onnx_bind(struct onnx_file *f, const char *input, const struct onnx_constant *t) {
    for (i32 i = 0; i < f->ninput; i++) {
        if (strcmp(f->input[i].name, input) != 0) continue;
        f->constant[f->nconstant] = *t;
        f->constant[f->nconstant++].name = f->input[i].name;
        drop_inputs(f);
        return;
    }
}

static err graph(struct reading *r, const struct wire_field *field) {
    struct onnx_file *o = r->f;
    struct wire w = wire_of(field->p, field->n);
    struct wire_field f;
    const i32 nnode = count(w, GRAPH_NODE), ninit = count(w, GRAPH_INIT);
    if (o->node) return bad(r, "it has two graphs");
    if (nnode > ONNX_NODES_MOST || ninit > ONNX_TENSORS_MOST) return bad(r, "it has too many nodes");
    ARENA_NEW(r->a, o->node, nnode + 1);
    ARENA_NEW(r->a, o->constant, ninit + nnode + count(w, GRAPH_INPUT)); /* and those of onnx_bind */
    ARENA_NEW(r->a, o->input, count(w, GRAPH_INPUT));
    ARENA_NEW(r->a, o->output, count(w, GRAPH_OUTPUT));
    while (wire_next(&w, &f)) {
        if (f.kind != WIRE_BYTES) continue;
        if (f.number == GRAPH_INIT) TRY(tensor(r, &f, &o->constant[o->nconstant++]));
        if (f.number == GRAPH_INPUT) TRY(value(r, &f, &o->input[o->ninput++]));
        if (f.number == GRAPH_OUTPUT) TRY(value(r, &f, &o->output[o->noutput++]));
        if (f.number != GRAPH_NODE) continue;
        TRY(node(r, &f, &o->node[o->nnode]));
        TRY(take_constant(r, &o->node[o->nnode++]));
    }
    TRY(wrong(r, &w));
    drop_inputs(o);
    return 0;
}

static void opset(struct onnx_file *o, const struct wire_field *field) {
    struct wire w = wire_of(field->p, field->n);
    struct wire_field f;
    i64 version = 0;
    bool own = true;
    while (wire_next(&w, &f)) {
        if (f.number == 1 && f.kind == WIRE_BYTES) own = f.n == 0 || (f.n == 7 && memcmp(f.p, "ai.onnx", 7) == 0);
        if (f.number == 2 && f.kind == WIRE_VARINT) version = (i64)f.v;
    }
    if (own) o->opset = version;
}

static err model(struct reading *r, const void *bytes, i64 n) {
    struct wire w = wire_of(bytes, n);
    struct wire_field f;
    while (wire_next(&w, &f)) {
        if (f.number == MODEL_GRAPH && f.kind == WIRE_BYTES) TRY(graph(r, &f));
        if (f.number == MODEL_OPSET && f.kind == WIRE_BYTES) opset(r->f, &f);
    }
    TRY(wrong(r, &w));
    return r->f->node ? 0 : bad(r, "it has no graph");
}

err onnx_read(const void *bytes, i64 n, const char *path, struct onnx_file **out) {
    struct onnx_file *f;
    *out = NULL;
    NEW(f, 1);
    struct reading r = {.path = path, .f = f, .a = &f->arena};
    const err e = model(&r, bytes, n);
    if (e < 0)
        onnx_file_free(f);
    else
        *out = f;
    return e;
}

void onnx_file_free(struct onnx_file *f) {
    if (!f) return;
    arena_free(&f->arena);
    mem_free(f);
}

const struct onnx_constant *onnx_find(const struct onnx_file *f, const char *name) {
    for (i32 i = 0; i < f->nconstant && *name; i++)
        if (strcmp(f->constant[i].name, name) == 0) return &f->constant[i];
    return NULL;
}

const struct onnx_attribute *onnx_attr_of(const struct onnx_in_node *n, const char *name) {
    for (i32 i = 0; i < n->nattr; i++)
        if (strcmp(n->attr[i].name, name) == 0) return &n->attr[i];
    return NULL;
}
