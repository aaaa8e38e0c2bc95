/* zone.h - time zones by name (Europe/Berlin), from the files of the system ($TZDIR, /usr/share/zoneinfo; RFC 8536).
 *
 *     transitions (UTC)     2024-03-31 01:00 -> +02:00 | 2024-10-27 01:00 -> +01:00 | ..
 *     rule behind the last  CET-1CEST,M3.5.0,M10.5.0/3 */
#ifndef STRETTO_DATA_ZONE_H
#define STRETTO_DATA_ZONE_H

#include "base/err.h"

struct zone;

/* *out is NULL if the system has no zone of this name.  E601.  The caller frees with zone_free (NULL is allowed). */
err zone_load(const char *name, struct zone **out);
err zone_read(const char *bytes, i64 n, struct zone **out); /* the same from the bytes of a file */
void zone_free(struct zone *z);
i32 zone_offset(const struct zone *z, i64 utc); /* seconds east of UTC at this time, in seconds since 1970 */

#endif
