/* clock.h - monotonic time in seconds, and the UTC date as text. */
#ifndef STRETTO_BASE_CLOCK_H
#define STRETTO_BASE_CLOCK_H

#include "base/bits.h"

f64 clock_now(void);             /* seconds, monotonic */
void clock_date(char out[32]);   /* "2026-11-21 20:31:07" UTC */

#endif
