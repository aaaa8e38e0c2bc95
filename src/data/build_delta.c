/* build_delta.c - --time-delta: records at irregular times become the steps of a series, and the time since the record before an
 * input of the network.
 *
 *     10:00 5 | 10:07 6 | 13:00 4        ->      step 0: 5 | 1: 6, time_delta log(420) | 2: 4, time_delta log(10380)
 *
 * The logarithm, because intervals of irregular data span orders of magnitude. The column is known in the past only, unless
 * --known names it: then the file has the times of the records that are to be forecast. (Che et al., Recurrent neural networks
 * for multivariate time series with missing values, 2018, feed the interval to a GRU in the same way.) */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "data/build.h"

static const char flag[] = "--time-delta";

err delta_table(const struct build *b, struct table *out) {
    const struct table *t = b->t;
    *out = *t;
    out->col = NULL;
    if (table_find(t, DELTA_NAME) >= 0)
        return FAIL_AT(E106, flag, "another name of that column", "the file has a column \"%s\" of its own", DELTA_NAME);
    NEW(out->col, t->ncol + 1);
    memcpy(out->col, t->col, (size_t)t->ncol * sizeof *t->col);
    struct column *c = &out->col[out->ncol++];
    *c = (struct column){.name = DELTA_NAME, .field = t->ncol + 1, .type = COL_NUMBER};
    NEW(c->number, t->nrow);
    for (i64 i = 0; i < t->nrow; i++) c->number[i] = (f64)NAN;
    return 0;
}

void delta_free(struct table *t) {
    if (t->col) mem_free(t->col[t->ncol - 1].number);
    mem_free(t->col);
}

/* Options that say what a step of time is have no meaning here. */
static err refuse_others(const struct build *b) {
    const bool freq = strcmp(text_or(b->o->freq, "auto"), "auto") != 0 && !b->o->of_model;
    if (b->nid > 0)
        return FAIL_AT(E106, flag, "--resample 1h   (or another step)", "it is for one series, not for those of a panel");
    if (!b->time) return FAIL_AT(E106, flag, "--time COLUMN", "the records have no times");
    if (b->resampled || freq)
        return FAIL_AT(E106, flag, b->resampled ? "no --resample" : "no --freq", "its steps are records, not steps of time");
    return 0;
}

err build_delta(struct build *b) {
    f64 *number = b->t->col[b->t->ncol - 1].number;
    TRY(refuse_others(b));
    for (i64 i = b->n - 1; i >= 0; i--) { /* times increase by a second or more: collapse() has merged equal ones */
        const i64 k = lmin(lmax(i, 1), b->n - 1); /* the interval before the first record is not known: that of the second */
        const f64 delta = k > 0 ? log((f64)(b->time[k] - b->time[k - 1])) : 0;
        for (i64 row = b->row[i]; row < b->row[i] + (b->same ? b->same[i] : 1); row++) number[row] = delta;
    }
    mem_free(b->time);
    b->time = NULL;
    return 0;
}
