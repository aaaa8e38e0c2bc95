/* series_share.c - the fields of a series on their way to other processes of the host (share.h). */
#include "data/series_build.h"
#include "data/share.h"

static void share_names(struct share *x, struct series *s) {
    struct arena *a = &s->names;
    share_texts(x, a, &s->column, 1 + s->npast + s->nknown);
    share_texts(x, a, &s->name, s->ncol);
    share_text(x, a, &s->roles);
    share_text(x, a, &s->doubt);
    share_text(x, a, &s->doubt_fix);
    share_text(x, a, &s->time_columns);
    share_text(x, a, &s->id_columns);
}

static void share_rows(struct share *x, struct series *s) {
    s->v_borrowed = share_array(x, (void **)&s->v, s->ncol * s->nrow, sizeof *s->v);
    share_array(x, (void **)&s->filled, s->ncol * s->nrow, sizeof *s->filled);
    share_array(x, (void **)&s->time, s->nrow, sizeof *s->time);
    share_array(x, (void **)&s->line, s->nrow, sizeof *s->line);
}

static void share_categories(struct share *x, struct series *s) {
    struct arena *a = &s->names;
    share_texts(x, a, &s->cat_name, s->ncat);
    share_list(x, a, (void **)&s->nword, s->ncat + 1, sizeof *s->nword);
    share_list(x, a, (void **)&s->code, s->ncat + 1, sizeof *s->code); /* these pointers are set below */
    share_list(x, a, (void **)&s->word, s->ncat + 1, sizeof *s->word);
    for (i32 k = 0; s->code && k < s->ncat; k++) {
        if (x->e < 0) s->code[k] = NULL;
        else s->code_borrowed = share_array(x, (void **)&s->code[k], (s->panel ? s->ntarget : 1) * s->nrow + 1, sizeof **s->code);
        if (x->e >= 0) share_texts(x, a, &s->word[k], s->nword[k]);
    }
}

static void share_parts(struct share *x, struct series *s) {
    share_list(x, &s->names, (void **)&s->part, s->npart, sizeof *s->part);
    for (i32 k = 0; k < s->npart && x->e >= 0; k++) share_text(x, &s->names, &s->part[k].path);
}

void series_share(struct share *x, struct series *s) {
    share_bytes(x, s, sizeof *s);
    if (!x->gives) s->names = (struct arena){0};
    share_names(x, s);
    share_list(x, &s->names, (void **)&s->from, s->ntarget, sizeof *s->from);
    share_list(x, &s->names, (void **)&s->to, s->ntarget, sizeof *s->to);
    share_list(x, &s->names, (void **)&s->of_model, s->ntarget, sizeof *s->of_model);
    share_list(x, &s->names, (void **)&s->mean, s->ncol, sizeof *s->mean);
    share_list(x, &s->names, (void **)&s->dev, s->ncol, sizeof *s->dev);
    share_rows(x, s);
    share_parts(x, s);
    share_categories(x, s);
}
