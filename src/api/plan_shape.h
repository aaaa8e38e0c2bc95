/* plan_shape.h - the options that a saved plan was made for. */
#ifndef STRETTO_API_PLAN_SHAPE_H
#define STRETTO_API_PLAN_SHAPE_H

#include "opt/opt.h"

/* Appends the options, which must be resolved, to the plan as a comment line. */
void plan_shape_line(const struct options *o, struct str *out);
/* Called after E402 for the plan of o->plan: returns E401 that names the options that differ, or the same error if none
 * does. */
err plan_shape_explain(const struct options *o, const char *plan_text);

#endif
