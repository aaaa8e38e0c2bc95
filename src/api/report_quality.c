/* report_quality.c - see report_quality.h. */
#include "api/report_quality.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/check.h"
#include "base/file.h"
#include "base/input.h"
#include "learn/series_set.h"

enum { FINDINGS_SHOWN = 12 };
#define READ_LEAST 8e6  /* bytes of a file that is always read again */
#define READ_RATE 0.5e6 /* and for each second of training: 1 % of it at 50 MB/s; the table takes several times the bytes */
#define CELLS_MOST 2e7  /* cells of a table that are examined */

/* Why the file is not read again; NULL = it is. */
static const char *reason(const struct stretto_trainer *t, const struct dataset *d) {
    struct stat st;
    if (d->piped || input_is(d->path) || file_is_remote(d->path) || stat(d->path, &st) != 0 || !S_ISREG(st.st_mode))
        return "the data are no file that could be read again";
    const bool alone = t->job.measure > 0; /* not after a training: somebody waits for the report alone */
    if ((f64)st.st_size > READ_LEAST + READ_RATE * t->model->m->seconds && !alone)
        return "the file is large beside the training: stretto check examines it";
    return NULL;
}

static err of_series(const struct options *o, const char *path, struct findings *out) {
    const struct read_options r = read_options_of(o);
    const struct series_options so = series_options_of(o);
    struct table *table = NULL;
    err e = table_read(path, &r, &table);
    if (e >= 0) e = check_table(table, &so, out, NULL);
    table_free(table);
    return e;
}

static err copy(const struct findings *f, struct arena *a, struct report_quality *out) {
    struct report_finding *of;
    ARENA_NEW(a, of, f->n + 1);
    for (i32 i = 0; i < imin(f->n, FINDINGS_SHOWN); i++) {
        const struct finding *one = &f->item[i];
        of[i] = (struct report_finding){.warning = one->warning,
                                        .code = arena_printf(a, "%c%03d", one->warning ? 'W' : 'E', one->r.code)};
        TRY(arena_keep(a, &of[i].where, one->r.where));
        TRY(arena_keep(a, &of[i].text, one->r.text));
        TRY(arena_keep(a, &of[i].fix, one->r.fix));
    }
    out->finding = of;
    out->nfinding = imin(f->n, FINDINGS_SHOWN);
    return 0;
}

/* "stretto check has 3 findings" */
static void say(const struct findings *f, const char *why, struct arena *a, struct report_quality *out) {
    const i64 more = f->n - out->nfinding + f->more;
    const char *left = more > 0 ? arena_printf(a, "; %lld more are listed by stretto check", (long long)more) : "";
    if (why)
        out->how = arena_printf(a, "stretto check did not look at the data: %s", why);
    else if (f->n == 0)
        out->how = "stretto check found no problem";
    else
        out->how = arena_printf(a, "stretto check has %lld finding%s%s", (long long)(f->n + f->more),
                                f->n + f->more == 1 ? "" : "s", left);
}

err report_quality(const struct stretto_trainer *t, struct arena *a, struct report_quality *out) {
    struct dataset *d = t->data->set;
    struct findings *found;
    const char *why = NULL;
    err e = 0;
    NEW(found, 1);
    if (d->kind == &data_series) {
        why = reason(t, d);
        if (!why) e = of_series(&t->o, d->path, found);
    } else if ((f64)d->nrow * imax(1, d->ncol) <= CELLS_MOST) {
        e = check_record_set(&t->o, d, found);
    } else {
        why = "the data are large: stretto check examines them";
    }
    if (e < 0) { /* the training has read the data: a report without findings is better than none */
        err_clear();
        *found = (struct findings){0};
        why = "the file could not be read again as it was";
    }
    e = copy(found, a, out);
    say(found, why, a, out);
    mem_free(found);
    return e;
}
