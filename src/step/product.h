/* product.h - what --parallel says: a product of cuts, outermost first, each with its number of parts.
 *
 *     "data:2*unit:2"    { data 2, unit 2 }        "data*unit:2"   data takes as many parts as are useful
 *     "data:2*time:8"    { data 2, time 8 }        "serial"        no cut        "auto"   open: the planner looks for one */
#ifndef STRETTO_STEP_PRODUCT_H
#define STRETTO_STEP_PRODUCT_H

#include "base/bits.h"
#include "base/err.h"

struct strategy;

enum { CUTS_MOST = 6, PRODUCT_TEXT = 64 };

struct plan_cut {
    const struct strategy *s;
    i32 wanted; /* the number behind the colon, 0 = as many as are useful */
    i32 n;      /* parts, once it is applied */
};

struct product {
    i32 n; /* cuts; 0 = auto */
    struct plan_cut cut[CUTS_MOST];
};

/* E401 at --parallel, with the part of the expression that is wrong. */
err product_parse(const char *text, struct product *out);
/* The text of a cut, with its number of parts, or the requested one before it is applied; slices > 0: the time slices of
 * the net. */
void cut_name(const struct plan_cut *c, i32 slices, char out[PRODUCT_TEXT]);
void product_name(const struct product *p, i32 slices, char out[PRODUCT_TEXT]);
/* The cut that creates time slices; -1 = none. */
i32 product_slices(const struct product *p);
bool product_has(const struct product *p, const struct strategy *s);
void product_drop(struct product *p, i32 cut);
bool product_exact(const struct product *p);

#endif
