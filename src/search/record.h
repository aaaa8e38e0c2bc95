/* record.h - RUN/trials.jsonl: the fits of a search, so that the same command goes on where another ended.
 *
 *     {"search":1,"about":{"data":"9f..","seed":1,"options":{..}}}            what a search must have in common to go on
 *     {"trial":3,"fit":0,"set":{"lr":"0.0012"},"error":[0.31],"seconds":1.8,"elapsed":14.2}
 *     {"trial":4,"fit":0,"set":{"base":"trees"},"failed":"..","seconds":0.1,"elapsed":14.3}
 *
 * A line is one write to a file opened for appending: a killed search loses the fits that ran, and at most an incomplete line,
 * which the next one drops.  The schedule is a function of the results, so it asks for the same fits again and finds them
 * here. */
#ifndef STRETTO_SEARCH_RECORD_H
#define STRETTO_SEARCH_RECORD_H

#include "search/search.h"

struct record_line {
    i32 trial, fit;
    struct point at;
    bool failed;
    char why[SEARCH_WHY];
    f64 error[LADDER_PARTS];
    f64 seconds, elapsed;     /* of the fit; of the search at its end */
};

struct record {
    int fd;                   /* -1 = in memory only */
    char *path;               /* of the file, for messages; NULL = in memory only */
    struct record_line *line; /* [n] */
    i32 n;
    i64 cap;
    f64 elapsed;              /* seconds of all commands up to the last line */
};

/* path NULL: in memory only.  about: JSON text of one line.  E104 for a damaged line before the last; E705 if the file is of
 * another search. */
err record_open(const char *path, const char *about, const struct search *s, struct record *out);
/* Reads lines as record_open does: for it, and for tests. */
err record_read(const char *text, size_t n, const char *name, const char *about, const struct search *s, struct record *out);
const struct record_line *record_find(const struct record *r, i32 trial, i32 fit); /* NULL = not yet */
err record_add(struct record *r, const struct search *s, struct record_line *l, f64 elapsed); /* E601, E702, E703 */
void record_close(struct record *r);

#endif
