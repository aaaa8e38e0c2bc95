/* crf.h - the model of the learner `crf`, and its parts.
 *
 *     templates, words --> attributes --> scores u_t of labels --> best path (Viterbi) --> tags */
#ifndef STRETTO_LEARN_CRF_CRF_H
#define STRETTO_LEARN_CRF_CRF_H

#include "learn/crf/train.h"
#include "learn/tag_results.h"

struct crf {
    struct model model; /* first */
    struct templates t;
    i32 ncolumn, tag;   /* of the training file */
    bool items;         /* it was in CRFsuite's format: attributes are items, and there are no templates */
    i32 L, Lp;
    i64 nattr;
    struct vocab attribute, label;
    f32 *w;             /* [nattr + L][Lp] the last L rows: transitions, row = label before */
    i64 seen;           /* attributes before the cut */
    i64 tokens;         /* of the training */
    f64 objective;
    i32 iterations, evaluations;
    f64 collect_seconds;
    struct tag_rule rule; /* the naive row */
};

static inline struct crf *crf_of(const struct model *m) { return (struct crf *)(uintptr_t)m; }

/* The weights of the model and the attributes of some tokens; gold: their labels, or NULL. */
static inline struct crf_pass crf_pass_of(const struct crf *f, const struct features *x, const i32 *gold) {
    return (struct crf_pass){.L = f->L, .Lp = f->Lp, .w = f->w, .scale = 1, .A = f->w + f->nattr * f->Lp,
                             .at = x->at, .attribute = x->attribute, .gold = gold};
}

err crf_new(struct crf **out);
err crf_fit(const struct learn_job *job, struct model **out);
void crf_free(struct model *m);

/* file.c */
err crf_save(const struct model *m, struct tens_list *list, struct str *json);
err crf_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json, struct model **out);
err crf_describe(const struct model *m, struct description *out);

/* marginals.c: P(label of a token | sentence), *out [ntoken][Lp] on the heap, of tokens whose attributes are known; best: any
 * labels, as those of Viterbi. E601. */
err crf_marginals(const struct crf *f, const struct token_set *s, const struct features *x, const i32 *best,
                  const struct resources *use, f32 **out);

/* results.c */
err crf_open(const struct model *m, const struct options *o, const char *path, const struct events *to, struct dataset **out);
err crf_predict(const struct model *m, const struct dataset *d, const struct resources *use, const struct prediction_sink *to);
err crf_score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
              struct scores *out);
err crf_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r);

#endif
