/* replan.h - corrects the costs of the plan by the first steps of training, and plans again where that pays.
 *
 *     20 steps --spans--> costs as they are now --auto--> another plan, predicted more than 5 % faster?
 *          ^                                                        |
 *          '----- at the next validation: bind it, measure again ---'      at most three times in a fit
 *
 * A plan that turns out slower than the last one has its measured costs by then, so the search goes back.  All plans of `auto`
 * are exact: the weights have the same bits whatever is chosen. */
#ifndef STRETTO_LEARN_FORECAST_REPLAN_H
#define STRETTO_LEARN_FORECAST_REPLAN_H

#include "learn/forecast/fit.h"

/* Watches the steps of the engine, where --parallel auto chose its plan by measured costs. */
err replan_new(struct fit *t);
void replan_free(struct fit *t);
void replan_stepped(struct fit *t, bool finite); /* after every batch */
/* After a validation: is another plan better?  Collective; an error comes out of replan_bind. */
bool replan_better(struct fit *t);
err replan_bind(struct fit *t, struct step **exec); /* the optimiser state is the same on every rank */

#endif
