/* forest.c - the learner `forest`: random forests for classes and numbers; see forest/forest.h.
 *
 *     resolve   target, split (no test part unless --test names one: the out-of-bag score is honest)
 *     fit       targets -> bins -> trees in waves -> out-of-bag votes */
#include "learn/forest/graph.h"
#include "learn/forest/forest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "data/mend.h"
#include "data/names.h"
#include "data/vocab.h"
#include "learn/forest/stages.h"

extern const struct learner learner_forest;

/* ------------------------------------------------------------------ options ------------------------------------------------- */

struct forest_spec forest_spec_of(const struct options *o) {
    struct forest_spec q = {.trees = (i32)o->trees, .depth = (i32)o->depth, .min_leaf = (i32)o->min_leaf,
                            .reduce = (i32)o->reduce, .seed = (u64)o->seed, .fused = FUSED_ROWS, .piece = TASK_ROWS};
    if (o->mtry != OPT_AUTO_INT) q.mtry = (i32)o->mtry;
    if (strcmp(o->criterion, "entropy") == 0) q.criterion = CRITERION_ENTROPY;
    if (strcmp(o->criterion, "gain-ratio") == 0) q.criterion = CRITERION_GAIN_RATIO;
    q.weighted = strcmp(o->voting, "weighted") == 0;
    q.balanced = strcmp(o->class_weights, "balanced") == 0;
    q.permutation = strcmp(o->importance_by, "permutation") == 0;
    return q;
}

static err need_target(const struct table_set *s) {
    char list[400], fix[MEND_PATH + 40], word[MEND_PATH];
    const char **names;
    if (s->target >= 0) return 0;
    NEW(names, s->ninput);
    for (i32 i = 0; i < s->ninput; i++) names[i] = table_input(s, i)->name;
    name_list(names, s->ninput, list, sizeof list);
    snprintf(fix, sizeof fix, "--target %s", mend_word(names[s->ninput - 1], word));
    mem_free(names);
    return FAIL_AT(E105, s->t->path, fix, "--task forest needs --target, the column to predict\ncolumns: %s", list);
}

/* Numbers that look like classes: few different integers. */
static void tell_few_values(const struct table_set *s, const struct events *to) {
    enum { FEW = 20 };
    const struct column *c = table_target(s);
    f64 seen[FEW];
    i32 n = 0;
    char word[MEND_PATH];
    for (i64 i = 0; i < s->t->nrow; i++) {
        i32 k = 0;
        if (isnan(c->number[i])) continue;
        while (k < n && seen[k] != c->number[i]) k++;
        if (k < n) continue;
        if (n == FEW || c->number[i] != floor(c->number[i])) return;
        seen[n++] = c->number[i];
    }
    if (n < 2) return;
    event_note(to, EVENT_NOTE, "the target holds %d different integers and is predicted as a number (--cat %s makes it a class)",
               n, mend_word(c->name, word));
}

static err check_criterion(const struct options *o, const struct table_set *s) {
    const enum opt_id id = opt_given(o, OPT_criterion) ? OPT_criterion : OPT_class_weights;
    char flag[40], fix[60];
    if (table_target(s)->type == COL_CATEGORY || !opt_given(o, id)) return 0;
    snprintf(flag, sizeof flag, "--%s", opt_info(id)->name);
    snprintf(fix, sizeof fix, "no %s", flag);
    return FAIL_AT(E106, flag, fix, "%s is for classes, and the target \"%s\" holds numbers", flag, table_target(s)->name);
}

static err resolve_split(struct learn_job *job, i64 rows) {
    struct options *o = job->o;
    struct split *p = &job->split;
    if (p->test > 0) return 0;
    TRY(opt_resolve(o, OPT_test, "0", "rows out of bag are the test"));
    TRY(opt_resolve(o, OPT_validation, "0", "nothing is chosen by validation"));
    TRY(split_rows(o, rows, p));
    if (p->validation > p->train)
        event_note(job->use.events, EVENT_NOTE, "the rows of --validation are trained on: a forest chooses nothing by them");
    p->train = p->validation;
    return 0;
}

static err resolve(struct learn_job *job) {
    const struct table_set *s = table_set_of(job->data);
    TRY(need_target(s));
    const struct column *c = table_target(s);
    if (c->type == COL_TIME)
        return FAIL_AT(E214, s->t->path, "--target of a column of words or numbers", "the target \"%s\" holds times", c->name);
    TRY(check_criterion(job->o, s));
    if (c->type == COL_NUMBER) tell_few_values(s, job->use.events);
    TRY(resolve_split(job, s->t->nrow));
    *(struct forest_spec *)job->spec = forest_spec_of(job->o);
    return 0;
}

/* ------------------------------------------------------------------ targets ------------------------------------------------- */

static err look_up(const struct forest *f, const struct column *c, struct vocab *v, u32 *class) {
    i32 code;
    for (i32 k = 0; k < f->nclass; k++) TRY(vocab_code(v, f->class[k], (i64)strlen(f->class[k]), &code));
    for (i32 w = 0; w < c->nword; w++) {
        code = vocab_find(v, c->word[w], (i64)strlen(c->word[w]));
        class[w] = code < 0 ? (u32)f->nclass : (u32)code;
    }
    return 0;
}

err forest_classes(const struct forest *f, const struct column *c, u32 **class) {
    struct vocab v = {0};
    NEW(*class, c->nword + 1);
    const err e = look_up(f, c, &v, *class);
    vocab_free(&v);
    if (e >= 0) return 0;
    mem_free(*class);
    *class = NULL;
    return e;
}

static err one_value(const struct table_set *s, i64 rows, const char *value) {
    const struct column *c = table_target(s);
    char fix[MEND_PATH + 40], word[MEND_PATH], where[256];
    i64 row = 0;
    while (row < rows && (c->type == COL_CATEGORY ? c->code[row] < 0 : isnan(c->number[row]))) row++;
    table_where(s->t, row < rows ? row : 0, c, where);
    snprintf(fix, sizeof fix, "a file whose column %s has at least two values", mend_word(c->name, word));
    return FAIL_AT(E212, where, fix, "the target \"%s\" is %s here and in all %lld rows of the training", c->name, value,
                   (long long)rows);
}

/* The classes are the words of the training's rows in order of appearance. */
static err class_targets(const struct table_set *s, i64 rows, struct forest *f, struct bin_target *t, i64 *count) {
    const struct column *c = table_target(s);
    i32 *class;
    ARENA_NEW(&f->arena, class, c->nword + 1);
    ARENA_NEW(&f->arena, f->class, c->nword + 1);
    for (i64 i = 0; i < rows; i++) {
        const i32 w = c->code[i];
        if (w >= 0 && class[w] == 0) {
            TRY(arena_keep(&f->arena, &f->class[f->nclass], c->word[w]));
            class[w] = ++f->nclass;
        }
        t->value[i] = w < 0 ? NO_TARGET : (u32)class[w] - 1;
        if (w >= 0) count[class[w] - 1]++;
    }
    if (f->nclass < 2) return one_value(s, rows, f->nclass == 0 ? "missing" : f->class[0]);
    for (i32 k = 1; k < f->nclass; k++)
        if (count[k] > count[(i32)f->common]) f->common = k;
    t->nclass = f->nclass;
    return 0;
}

static err number_targets(const struct table_set *s, i64 rows, struct forest *f, struct bin_target *t) {
    const f64 *y = table_target(s)->number;
    f64 low = INFINITY, high = -INFINITY, sum = 0, n = 0;
    char text[40];
    for (i64 i = 0; i < rows; i++) {
        if (isnan(y[i])) continue;
        low = dmin(low, y[i]);
        high = dmax(high, y[i]);
        sum += y[i];
        n++;
    }
    if (n == 0) return one_value(s, rows, "missing");
    str_print(text, sizeof text, "%.6g", low);
    if (!(high > low)) return one_value(s, rows, text);
    f->common = sum / n;
    t->low = low;
    t->unit = (high - low) / 0xffffff;
    for (i64 i = 0; i < rows; i++) t->value[i] = isnan(y[i]) ? NO_TARGET : (u32)((y[i] - low) / t->unit + 0.5);
    return 0;
}

/* ------------------------------------------------------------------ fit ----------------------------------------------------- */

/* What lives as long as the fit. */
struct fitting {
    const struct learn_job *job;
    const struct table_set *s;
    struct forest *f;
    struct tree_data d;
    struct bin_target target;
    struct arena arena;
};

err forest_room(struct forest *f) {
    NEW(f->tree, f->spec.trees);
    ARENA_NEW(&f->arena, f->vote, f->spec.trees);
    ARENA_NEW(&f->arena, f->importance, f->bins.n);
    ARENA_NEW(&f->arena, f->confusion, (i64)f->nclass * f->nclass + 1);
    if (!f->class) ARENA_NEW(&f->arena, f->class, f->nclass + 1);
    return 0;
}

static err targets(struct fitting *t) {
    struct forest *f = t->f;
    const struct column *c = table_target(t->s);
    const i64 rows = t->job->split.train;
    i64 *count, missing = 0;
    f64 *weight;
    ARENA_NEW(&t->arena, t->target.value, rows);
    ARENA_NEW(&t->arena, count, c->nword + 1);
    if (c->type == COL_CATEGORY) TRY(class_targets(t->s, rows, f, &t->target, count));
    else TRY(number_targets(t->s, rows, f, &t->target));
    for (i64 i = 0; i < rows; i++) missing += t->target.value[i] == NO_TARGET;
    if (missing > 0) event_note(t->job->use.events, EVENT_NOTE, "%lld rows without a target are not used", (long long)missing);
    if (!f->spec.balanced) return 0;
    ARENA_NEW(&t->arena, weight, f->nclass);
    for (i32 k = 0; k < f->nclass; k++) weight[k] = (f64)(rows - missing) / ((f64)f->nclass * (f64)count[k]);
    t->d.class_weight = weight;
    return 0;
}

static err inputs(struct fitting *t) {
    struct forest *f = t->f;
    const i64 rows = t->job->split.train;
    struct str constant = {0};
    const struct column **column;
    i32 *nbin;
    u8 *bin;
    err e = bins_make(t->s, rows, &t->target, t->job->use.pool, &f->bins, &constant);
    if (e >= 0 && constant.len > 0)
        event_note(t->job->use.events, EVENT_NOTE, "inputs with one value are not used: %s", str_text(&constant));
    str_free(&constant);
    TRY(e);
    if (f->bins.n == 0) return FAIL_AT(E214, t->s->t->path, "a file with columns that vary", "no input has two different values");
    if (f->bins.n >= TREE_INPUTS) return FAIL_AT(E214, t->s->t->path, "--ignore COL,..", "%d inputs are too many", f->bins.n);
    ARENA_NEW(&t->arena, bin, rows * f->bins.n);
    ARENA_NEW(&t->arena, nbin, f->bins.n);
    ARENA_NEW(&t->arena, column, f->bins.n);
    TRY(bins_find(&f->bins, t->s, column));
    TRY(bins_fill(&f->bins, column, 0, rows, t->job->use.pool, bin));
    for (i32 i = 0; i < f->bins.n; i++) nbin[i] = bins_count(&f->bins, i);
    t->d.bin = bin;
    t->d.nbin = nbin;
    return 0;
}

/* x log2 x of all sums of weights: integers, so that sums of them have no order. */
static err logs(struct fitting *t) {
    i64 *x;
    const i64 n = 2 * t->d.rows + 1000; /* a sample's weights: its mean is `rows`, its deviation the root */
    if (t->f->spec.criterion == CRITERION_GINI || t->d.nclass == 0) return 0;
    ARENA_NEW(&t->arena, x, n);
    for (i64 i = 2; i < n; i++) x[i] = llround((f64)i * log2((f64)i) * (1 << XLOG_BITS));
    t->d.xlogx = x;
    return 0;
}

static void settle_mtry(struct fitting *t) {
    struct forest_spec *q = &t->f->spec;
    const i32 n = q->reduce > 0 ? imin(q->reduce, t->d.ninput) : t->d.ninput;
    if (q->mtry == 0) q->mtry = t->d.nclass > 0 ? (i32)sqrt((f64)n) : n / 3;
    q->mtry = imax(1, imin(q->mtry, n));
    event_note(t->job->use.events, EVENT_DETAIL, "mtry %d of %d inputs", q->mtry, n);
}

static err train(struct fitting *t) {
    struct forest *f = t->f;
    const f64 begin = clock_now();
    if (t->job->split.train > INT32_MAX / 2)
        return FAIL_AT(E601, t->s->t->path, "fewer rows", "%lld rows are too many for a forest", (long long)t->job->split.train);
    TRY(arena_keep(&f->arena, &f->target, table_target(t->s)->name));
    TRY(targets(t));
    TRY(inputs(t));
    t->d.rows = t->job->split.train;
    t->d.step = t->d.rows;
    t->d.ninput = f->bins.n;
    t->d.nclass = f->nclass;
    t->d.target = &t->target;
    TRY(logs(t));
    settle_mtry(t);
    TRY(forest_room(f));
    if (f->spec.permutation) ARENA_NEW(&f->arena, f->permuted, f->bins.n);
    const err e = forest_grow(t->job, &t->d, f);
    if (e != 0) return e;
    TRY(forest_out_of_bag(t->job, &t->d, f));
    f->model.seconds = clock_now() - begin;
    f->model.train_records = t->d.rows;
    forest_tell(f, t->job->use.events);
    return 0;
}

static err fit(const struct learn_job *job, struct model **out) {
    struct fitting t = {.job = job, .s = table_set_of(job->data)};
    NEW(t.f, 1);
    t.f->model.learner = &learner_forest;
    t.f->spec = *(const struct forest_spec *)job->spec;
    const err e = train(&t);
    arena_free(&t.arena);
    if (e != 0) model_free(&t.f->model);
    else *out = &t.f->model;
    return e;
}

/* ------------------------------------------------------------------ the learner --------------------------------------------- */

static err take(const struct model *m, struct dataset *d, const struct events *to) {
    const struct forest *f = forest_of(m);
    (void)to;
    return table_set_inputs(table_set_of(d), f->bins.n, f->bins.name, f->bins.words);
}

static err open_file(const struct model *m, const struct options *o, const char *path, const struct events *to,
                     struct dataset **out) {
    TRY(table_set_read(o, path, forest_of(m)->target, true, out));
    const err e = take(m, *out, to);
    if (e >= 0) return 0;
    dataset_free(*out);
    *out = NULL;
    return e;
}

void forest_free(struct model *m) {
    struct forest *f = forest_of(m);
    for (i32 k = 0; f->tree && k < f->spec.trees; k++) tree_free(&f->tree[k]);
    mem_free(f->tree);
    bins_free(&f->bins);
    arena_free(&f->arena);
    mem_free(f);
}

static const struct model_ops ops = {.open = open_file, .take = take, .predict = forest_predict_rows, .score = forest_score,
                                     .describe = forest_describe, .report = forest_report, .save = forest_save,
                                     .load = forest_load, .graph = forest_graph,
                                     .graph_check = forest_graph_check, .free = forest_free};

static const enum opt_id takes[] = {OPT_trees, OPT_depth, OPT_min_leaf, OPT_mtry, OPT_reduce, OPT_criterion, OPT_class_weights,
                                    OPT_voting, OPT_importance_by, OPT_seed, OPT_time_limit, OPT_checkpoint_every,
                                    OPT_device, OPT_COUNT};

const struct learner learner_forest = {.name = "forest", .help = "random forest: classes or numbers from a table",
                                       .data = &data_table, .ops = &ops, .spec_bytes = sizeof(struct forest_spec),
                                       .takes = takes, .offloads = OFFLOADS_FIT, .resolve = resolve, .fit = fit};
