/* layout.c - the flat vector of a net as the store sees it: matrices for codecs, and the pieces of --granularity. */
#include <string.h>

#include "learn/store/inside.h"
#include "model/cell/cell.h"
#include "model/layer.h"

/* The matrix that an op's block of theta begins with (kern/kern.h), or none. */
static bool matrix_of(const struct op *op, struct wire_matrix *m) {
    const i32 Hp = round_up(op->F, LANES);
    const bool recurrent = strcmp(op->layer->name, "recurrent") == 0;
    const struct cell *c = recurrent ? cell_of(op->spec.cell) : NULL;
    *m = (struct wire_matrix){.at = op->theta0};
    if (c) {
        m->rows = op->I + cell_state_rows(c, op->F);
        m->panels = Hp / LANES;
        m->width = c->gates * LANES;
    } else if (strcmp(op->layer->name, "dense") == 0) {
        m->rows = op->I;
        m->panels = 1;
        m->width = Hp;
    } else if (strcmp(op->layer->name, "embed") == 0) {
        m->rows = op->spec.vocab;
        m->panels = 1;
        m->width = Hp;
    }
    return m->rows > 0 && (i64)m->rows * m->panels * m->width <= op->ntheta;
}

static err matrices(struct fit *t, struct store_run *r) {
    const struct net *n = t->step.net;
    ARENA_NEW(&r->arena, r->matrix, n->nop);
    for (i32 l = 0; l < n->nop; l++)
        if (n->op[l].ntheta > 0 && n->op[l].spec.share < 0 && matrix_of(&n->op[l], &r->matrix[r->nmatrix])) r->nmatrix++;
    return 0;
}

/* Starts of pieces: the parameters of each layer, or so many rows of each panel of its matrix. */
static i32 cut(const struct store_run *r, const struct net *n, i64 *border) {
    i32 count = 0;
    for (i32 l = 0; l < n->nop && r->spec.piece == PIECE_TENSOR; l++) {
        if (n->op[l].ntheta == 0) continue;
        if (border) border[count] = n->op[l].theta0;
        count++;
    }
    for (i32 i = 0; i < r->nmatrix && r->spec.piece == PIECE_ROWS; i++) {
        const struct wire_matrix *m = &r->matrix[i];
        for (i32 p = 0; p < m->panels; p++)
            for (i32 row = 0; row < m->rows; row += r->spec.rows, count++)
                if (border) border[count] = m->at + ((i64)p * m->rows + row) * m->width;
    }
    return count;
}

err store_layout(struct fit *t, struct store_run *r) {
    TRY(matrices(t, r));
    r->nborder = cut(r, t->step.net, NULL);
    ARENA_NEW(&r->arena, r->border, r->nborder);
    cut(r, t->step.net, r->border);
    return 0;
}
