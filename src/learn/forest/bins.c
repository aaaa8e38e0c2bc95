/* bins.c - quantile bins of numbers, ordered bins of words; see bins.h. */
#include "learn/forest/bins.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "learn/forest/words.h"

/* ------------------------------------------------------------------ bins ---------------------------------------------------- */

struct making {
    const struct table_set *s;
    const struct bin_target *target;
    i64 rows;
    f64 *cut;                 /* [inputs][CUTS_MOST] */
    i32 *ncut;                /* [inputs] */
    u8 **word_bin;            /* [inputs] */
    f64 *sorted, *spare;      /* [workers][rows] */
    i32 workers;
    _Atomic i32 next, failed;
};

static i32 number_cuts(struct making *m, const struct column *c, i32 worker, f64 *cut, bool *missing) {
    f64 *v = m->sorted + m->rows * worker, *spare = m->spare + m->rows * worker;
    i64 n = 0;
    for (i64 i = 0; i < m->rows; i++)
        if (!isnan(c->number[i])) v[n++] = c->number[i];
    *missing = n > 0 && n < m->rows;
    cuts_sort(v, spare, n);
    return cuts_of(v, n, cut);
}

/* Bins the inputs.  An input without cuts and without missing cells has a single value. */
static void make_input(void *self, i32 worker) {
    struct making *m = self;
    for (i32 i; (i = atomic_fetch_add(&m->next, 1)) < m->s->ninput;) {
        const struct column *c = table_input(m->s, i);
        bool missing;
        if (c->type == COL_CATEGORY) {
            const err e = words_order(c, m->rows, m->target->value, m->target->nclass, &m->word_bin[i], &m->ncut[i]);
            if (e < 0) atomic_store(&m->failed, 1);
            continue;
        }
        m->ncut[i] = number_cuts(m, c, worker, m->cut + (i64)i * CUTS_MOST, &missing);
        if (m->ncut[i] == 0 && !missing) m->ncut[i] = -1;
    }
}

static err keep_input(const struct making *m, i32 i, struct bins *b) {
    const struct column *c = table_input(m->s, i);
    const i32 at = b->n++;
    TRY(arena_keep(&b->arena, &b->name[at], c->name));
    b->words[at] = c->type == COL_CATEGORY;
    b->cut_at[at + 1] = b->cut_at[at];
    b->word_at[at + 1] = b->word_at[at];
    if (!b->words[at]) {
        memcpy(b->cut + b->cut_at[at], m->cut + (i64)i * CUTS_MOST, sizeof *b->cut * (size_t)m->ncut[i]);
        b->cut_at[at + 1] += m->ncut[i];
        return 0;
    }
    for (i32 w = 0; w < c->nword; w++) {
        const i32 to = b->word_at[at + 1];
        if (m->word_bin[i][w] == 0) continue; /* not among the rows of the training */
        TRY(arena_keep(&b->arena, &b->word[to], c->word[w]));
        b->word_bin[to] = m->word_bin[i][w];
        b->word_at[at + 1]++;
    }
    return 0;
}

static err keep(const struct making *m, struct bins *b, struct str *constant) {
    i64 ncut = 0, nword = 0;
    for (i32 i = 0; i < m->s->ninput; i++) {
        ncut += imax(0, m->ncut[i]);
        nword += table_input(m->s, i)->nword;
    }
    ARENA_NEW(&b->arena, b->name, m->s->ninput + 1);
    ARENA_NEW(&b->arena, b->words, m->s->ninput + 1);
    ARENA_NEW(&b->arena, b->cut_at, m->s->ninput + 1);
    ARENA_NEW(&b->arena, b->word_at, m->s->ninput + 1);
    ARENA_NEW(&b->arena, b->cut, ncut + 1);
    ARENA_NEW(&b->arena, b->word, nword + 1);
    ARENA_NEW(&b->arena, b->word_bin, nword + 1);
    for (i32 i = 0; i < m->s->ninput; i++) {
        if (m->ncut[i] >= 0) TRY(keep_input(m, i, b));
        else if (constant->len < 200) str_addf(constant, "%s%.60s", constant->len ? ", " : "", table_input(m->s, i)->name);
    }
    return str_ok(constant);
}

static err make(struct making *m, struct pool *pool, struct bins *out, struct str *constant) {
    const i32 n = m->s->ninput;
    NEW(m->cut, (i64)n * CUTS_MOST);
    NEW(m->ncut, n);
    NEW(m->word_bin, n);
    NEW(m->sorted, m->rows * m->workers);
    NEW(m->spare, m->rows * m->workers);
    pool_run(pool, make_input, m);
    if (atomic_load(&m->failed)) return FAIL(E601, "no memory for the words of an input");
    return keep(m, out, constant);
}

err bins_make(const struct table_set *s, i64 rows, const struct bin_target *target, struct pool *pool, struct bins *out,
              struct str *constant) {
    struct making m = {.s = s, .target = target, .rows = rows, .workers = pool_size(pool)};
    *out = (struct bins){0};
    const err e = make(&m, pool, out, constant);
    for (i32 i = 0; m.word_bin && i < s->ninput; i++) mem_free(m.word_bin[i]);
    mem_free(m.word_bin);
    mem_free(m.cut);
    mem_free(m.ncut);
    mem_free(m.sorted);
    mem_free(m.spare);
    return e;
}

void bins_free(struct bins *b) {
    arena_free(&b->arena);
    *b = (struct bins){0};
}

i32 bins_count(const struct bins *b, i32 input) {
    i32 most = 0;
    if (!b->words[input]) return b->cut_at[input + 1] - b->cut_at[input] + 2;
    for (i32 w = b->word_at[input]; w < b->word_at[input + 1]; w++) most = imax(most, b->word_bin[w]);
    return most + 1;
}

/* ------------------------------------------------------------------ cells --------------------------------------------------- */

err bins_find(const struct bins *b, const struct table_set *s, const struct column **column) {
    for (i32 i = 0; i < b->n; i++) {
        const i32 at = table_find(s->t, b->name[i]);
        if (at < 0)
            return FAIL_AT(E903, s->t->path, "a file with the columns of the training",
                           "there is no column \"%s\", which the model needs", b->name[i]);
        column[i] = &s->t->col[at];
    }
    return 0;
}

struct filling {
    const struct bins *b;
    const struct column *const *column;
    i64 from, to;
    u8 *out;
    _Atomic i32 next, failed;
};

static void fill_numbers(const struct filling *f, const struct column *c, i32 i, u8 *out) {
    const f64 *cut = f->b->cut + f->b->cut_at[i];
    const i32 n = f->b->cut_at[i + 1] - f->b->cut_at[i];
    for (i64 r = f->from; r < f->to; r++) out[r - f->from] = isnan(c->number[r]) ? 0 : cuts_bin(cut, n, c->number[r]);
}

static err fill_words(const struct filling *f, const struct column *c, i32 i, u8 *out) {
    const i32 at = f->b->word_at[i];
    u8 *bin;
    TRY(words_bins(c, f->b->word + at, f->b->word_bin + at, f->b->word_at[i + 1] - at, &bin));
    for (i64 r = f->from; r < f->to; r++) out[r - f->from] = c->code[r] < 0 ? 0 : bin[c->code[r]];
    mem_free(bin);
    return 0;
}

static void fill_input(void *self, i32 worker) {
    struct filling *f = self;
    (void)worker;
    for (i32 i; (i = atomic_fetch_add(&f->next, 1)) < f->b->n;) {
        const struct column *c = f->column[i];
        u8 *out = f->out + (f->to - f->from) * i;
        if (c->type == COL_TIME || (c->type == COL_CATEGORY) != f->b->words[i]) continue; /* all missing: bin 0 */
        if (c->type == COL_NUMBER) fill_numbers(f, c, i, out);
        else if (fill_words(f, c, i, out) < 0) atomic_store(&f->failed, 1);
    }
}

err bins_fill(const struct bins *b, const struct column *const *column, i64 from, i64 to, struct pool *pool, u8 *out) {
    struct filling f = {.b = b, .column = column, .from = from, .to = to, .out = out};
    memset(out, 0, (size_t)((to - from) * b->n));
    pool_run(pool, fill_input, &f);
    return atomic_load(&f.failed) ? FAIL(E601, "no memory for the words of an input") : 0;
}
