/* table_share.c - the fields of a table on their way to other processes of the host (share.h). */
#include "data/share.h"
#include "data/table.h"

static void share_column(struct share *x, struct table *t, struct column *c) {
    struct arena *a = &t->names;
    share_text(x, a, &c->name);
    share_text(x, a, &c->missing_text);
    share_array(x, (void **)&c->number, t->nrow, sizeof *c->number);
    share_array(x, (void **)&c->time, t->nrow, sizeof *c->time);
    share_array(x, (void **)&c->offset, t->nrow, sizeof *c->offset);
    share_array(x, (void **)&c->code, t->nrow, sizeof *c->code);
    share_texts(x, a, &c->word, c->nword);
}

static void share_columns(struct share *x, struct table *t) {
    if (!x->gives) {
        t->col = NULL;
        if (x->e >= 0) x->e = mem_new((void **)&t->col, t->ncol, sizeof *t->col);
    }
    for (i32 i = 0; i < t->ncol && x->e >= 0; i++) {
        struct column *c = &t->col[i];
        share_bytes(x, c, sizeof *c);
        share_column(x, t, c);
    }
}

void table_share(struct share *x, struct table *t) {
    share_bytes(x, t, sizeof *t);
    if (!x->gives) {
        t->names = (struct arena){0};
        t->index = (struct vocab){0};
    }
    share_text(x, &t->names, &t->path);
    share_text(x, &t->names, &t->doubt);
    share_text(x, &t->names, &t->doubt_fix);
    share_text(x, &t->names, &t->id);
    share_text(x, &t->names, &t->target);
    share_list(x, &t->names, (void **)&t->part, t->npart, sizeof *t->part);
    for (i32 k = 0; k < t->npart && x->e >= 0; k++) share_text(x, &t->names, &t->part[k].path);
    share_array(x, (void **)&t->line, t->nrow, sizeof *t->line);
    share_columns(x, t);
    if (!x->gives && x->e >= 0) x->e = table_index(t);
}
