/* clock.h - monotonic and wall-clock time in seconds, and the Gregorian calendar. */
#ifndef STRETTO_BASE_CLOCK_H
#define STRETTO_BASE_CLOCK_H

#include "base/bits.h"

f64 clock_now(void);             /* seconds, monotonic */
f64 clock_wall(void);            /* seconds since 1970 */
f64 clock_cpu(void);             /* seconds of processor time that all threads of this process have used */
#define CLOCK_DEADLINE 60.0
void clock_sleep(f64 seconds);    /* this thread; a signal ends it early */
f64 clock_deadline(void);        /* seconds to wait for a rank or a device: STRETTO_DEADLINE, or CLOCK_DEADLINE */
void clock_date(char out[32]);   /* "2026-11-21 20:31:07" UTC */

struct civil {
    i64 year;
    i32 month, day, hour, minute, second; /* counted from 1, 1, 0, 0, 0 */
};

/* Days since 1970-01-01, proleptic Gregorian (Hinnant, chrono-compatible date algorithms: years begin in March). */
static inline i64 time_days(i64 y, i32 m, i32 d) {
    y -= m <= 2;
    i64 era = (y >= 0 ? y : y - 399) / 400, in_era = y - era * 400;
    i64 in_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}
i64 time_make(const struct civil *c); /* seconds since 1970 */
void time_split(i64 t, struct civil *c);

#endif
