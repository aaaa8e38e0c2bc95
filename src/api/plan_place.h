/* plan_place.h - a table of where layers and micro-batches of a net would run, by methods of placement. */
#ifndef STRETTO_API_PLAN_PLACE_H
#define STRETTO_API_PLAN_PLACE_H

#include "base/str.h"
#include "step/netplan.h"

/* Places the layers of q->net, for each micro-batch of a step, on the devices of q->machine.  method: of place/methods.def
 * ("heft", "random:7"), or "all".  Appends a row per method: predicted time of a step, saving against the first row, gap to the
 * lower bound.  E103: unknown method; E401: the model does not fit. */
err plan_place(const struct plan_request *q, const char *method, struct str *out);

#endif
