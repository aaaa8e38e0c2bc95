/* text.h - pieces of the plan's text that the printer, the parser and the tables share. */
#ifndef STRETTO_PLAN_TEXT_H
#define STRETTO_PLAN_TEXT_H

#include "step/netplan.h"

enum { TEXT_HOWS = CELL_SCAN + 1 };
extern const char *const text_hows[TEXT_HOWS]; /* names of enum cell_how */

void text_uses(const struct plan *p, const struct net *n, u32 task, struct str *out); /* " uses x[0,32):r ..." */
const char *text_member(const struct op *op); /* what members of the op's tasks are called: "unit", "chain" */
void text_bytes(i64 bytes, struct str *out);  /* "1.3MiB" */

#endif
