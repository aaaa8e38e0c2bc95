/* check.h - findings of `stretto check`: errors and warnings about a table. */
#ifndef STRETTO_DATA_CHECK_H
#define STRETTO_DATA_CHECK_H

#include "data/series_build.h"

enum { FINDINGS_MAX = 40, NO_COLUMN = -1 };

struct finding {
    bool warning;        /* code is of warnings.def, else of errors.def */
    i32 column;          /* table column of the cells; NO_COLUMN: none or several */
    struct err_record r; /* code, where, text, fix */
};

struct findings {
    i32 n;
    i64 more;            /* found but not stored */
    char roles[ROLES_TEXT]; /* roles of the columns; "" = unknown */
    struct finding item[FINDINGS_MAX];
};

enum { W38 = 38 }; /* a column of times left out, of warnings.def */

void findings_add(struct findings *f, bool warning, i32 column, const struct err_record *r);
void findings_warn(struct findings *f, i32 code, i32 column, const char *fix, const char *text);
/* Errors first, then warnings. *s (s may be NULL): the series, or NULL if there are errors. */
err check_table(const struct table *t, const struct series_options *o, struct findings *out, struct series **s);

#endif
