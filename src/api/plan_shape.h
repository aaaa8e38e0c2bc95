/* plan_shape.h - which options a saved plan is for. */
#ifndef STRETTO_API_PLAN_SHAPE_H
#define STRETTO_API_PLAN_SHAPE_H

#include "opt/opt.h"

/* A line of comment behind the plan; the options are resolved. */
void plan_shape_line(const struct options *o, struct str *out);
/* A plan of o->plan did not fit (E402, just set): E401 when it is for other options, which are named; else the same error. */
err plan_shape_explain(const struct options *o, const char *plan_text);

#endif
