/* plan_handle.h - what a stretto_plan is made of; shared by api_plan.c and api_draw.c. */
#ifndef STRETTO_API_PLAN_HANDLE_H
#define STRETTO_API_PLAN_HANDLE_H

#include "api/api.h"
#include "learn/forecast/resolve.h"

struct stretto_plan {
    struct options o;
    struct machine *machine;
    struct net net;
    struct plan *plan;
    struct plan_request q;
    const struct series *data; /* borrowed; NULL = shape */
    struct series shape;
    struct forecast_spec spec;
    i64 windows; /* of an epoch */
    i64 seen;    /* rows of the data before the test part */
};

#endif
