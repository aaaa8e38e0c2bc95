/* series_quality.h - facts about the quality of a series for the report: missing cells, gaps, constant runs, merged rows. */
#ifndef STRETTO_LEARN_SERIES_QUALITY_H
#define STRETTO_LEARN_SERIES_QUALITY_H

#include "base/arena.h"
#include "data/series.h"

struct report_fact;

enum { QUALITY_FACTS = 7 };

/* Fills at most QUALITY_FACTS facts, whose texts are in the arena; returns their number.  Reads every cell once. */
i32 series_quality(const struct series *s, struct arena *a, struct report_fact *fact);

#endif
