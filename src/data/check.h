/* check.h - what is wrong or doubtful about a table: the findings of `stretto check`. */
#ifndef STRETTO_DATA_CHECK_H
#define STRETTO_DATA_CHECK_H

#include "data/series_build.h"

enum { FINDINGS_MAX = 40, NO_COLUMN = -1 };

struct finding {
    bool warning;        /* code is of warnings.def, else of errors.def */
    i32 column;          /* of the table, whose cells it is about; NO_COLUMN: of none, or of several */
    struct err_record r; /* code, where, text, fix */
};

struct findings {
    i32 n;
    i64 more;            /* found and not kept */
    char roles[ROLES_TEXT]; /* which columns are what; "" = not known */
    struct finding item[FINDINGS_MAX];
};

void findings_add(struct findings *f, bool warning, i32 column, const struct err_record *r);
/* Errors first, then warnings.  *s, when asked for, is the series, or NULL when there are errors. */
err check_table(const struct table *t, const struct series_options *o, struct findings *out, struct series **s);

#endif
