/* graph.c - the graph of an LSTM for placement.
 *
 *     F(l,c)  <- F(l-1,c), F(l,c-1)            c = chunk of time; micro-batches have no edge from c-1
 *     S(c)    <- F(L-1,c)                      head and loss
 *     B(l,c)  <- S(c) or B(l+1,c), B(l,c+1)    in the group of F(l,c), whose saved gates it reads */
#include "base/mem.h"
#include "place/place.h"

struct builder {
    const struct place_lstm *spec;
    struct place_graph *g;
    bool backward;
    i32 L, C;
};

/* Forward nodes come first, then heads, then backward nodes. */
static i32 forward_at(const struct builder *b, i32 l, i32 c) { return l * b->C + c; }
static i32 head_at(const struct builder *b, i32 c) { return b->L * b->C + c; }
static i32 backward_at(const struct builder *b, i32 l, i32 c) { return b->L * b->C + (b->spec->head ? b->C : 0) + l * b->C + c; }

static void put_node(struct builder *b, i32 at, struct place_node node) { b->g->node[at] = node; }

static void put_edge(struct builder *b, i32 from, i32 to, i64 bytes) {
    b->g->edge[b->g->nedge++] = (struct place_edge){from, to, bytes};
}

static void put_forward(struct builder *b, i32 l, i32 c) {
    const struct place_layer *layer = &b->spec->layer[l];
    put_node(b, forward_at(b, l, c), (struct place_node){layer->forward, l, l * b->C + c, c, PLACE_FORWARD, layer->saved});
    if (l > 0) put_edge(b, forward_at(b, l - 1, c), forward_at(b, l, c), b->spec->layer[l - 1].activation);
    if (c > 0 && b->spec->time) put_edge(b, forward_at(b, l, c - 1), forward_at(b, l, c), layer->state);
}

static void put_head(struct builder *b, i32 c) {
    const struct place_layer *head = b->spec->head;
    put_node(b, head_at(b, c), (struct place_node){head->forward, b->L, b->L * b->C + c, c, PLACE_HEAD, head->saved});
    put_edge(b, forward_at(b, b->L - 1, c), head_at(b, c), b->spec->layer[b->L - 1].activation);
}

static void put_backward(struct builder *b, i32 l, i32 c) {
    const struct place_layer *layer = &b->spec->layer[l];
    const i32 at = backward_at(b, l, c);
    put_node(b, at, (struct place_node){layer->backward, l, l * b->C + c, c, PLACE_BACKWARD, 0});
    put_edge(b, forward_at(b, l, c), at, layer->saved);
    if (l + 1 < b->L) put_edge(b, backward_at(b, l + 1, c), at, layer->activation);
    if (l + 1 == b->L && b->spec->head) put_edge(b, head_at(b, c), at, layer->activation);
    if (c + 1 < b->C && b->spec->time) put_edge(b, backward_at(b, l, c + 1), at, layer->state);
}

err place_lstm(const struct place_lstm *spec, struct place_graph *out) {
    *out = (struct place_graph){0};
    struct builder b = {.spec = spec, .g = out, .L = spec->layers, .C = spec->columns};
    if (b.L < 1 || b.C < 1) return FAIL(E401, "a graph of %d layers and %d columns has no tasks", b.L, b.C);
    const i64 cells = (i64)b.L * b.C;
    if (cells > INT32_MAX / 8) return FAIL(E401, "%d layers x %d columns are too many tasks", b.L, b.C);
    for (i32 l = 0; l < b.L; l++) b.backward |= spec->layer[l].backward > 0;
    out->ring = spec->ring;
    const i32 heads = spec->head ? b.C : 0;
    out->nunit = b.L + (spec->head ? 1 : 0);
    out->ngroup = (i32)cells + heads;
    out->nnode = (i32)cells * (b.backward ? 2 : 1) + heads;
    out->node = arena_array(&out->arena, out->nnode, sizeof *out->node);
    out->edge = arena_array(&out->arena, 6 * cells + heads, sizeof *out->edge);
    out->unit = arena_array(&out->arena, out->nunit, sizeof *out->unit);
    if (!out->node || !out->edge || !out->unit) {
        place_graph_free(out);
        return -E601;
    }
    for (i32 l = 0; l < b.L; l++) {
        out->unit[l] = spec->layer[l].unit;
        for (i32 c = 0; c < b.C; c++) {
            put_forward(&b, l, c);
            if (b.backward) put_backward(&b, l, c);
        }
    }
    if (spec->head) out->unit[b.L] = spec->head->unit;
    for (i32 c = 0; c < heads; c++) put_head(&b, c);
    return 0;
}

void place_graph_free(struct place_graph *g) {
    struct arena a = g->arena;
    *g = (struct place_graph){0};
    arena_free(&a);
}
