/* score_file.h - --scores: the scores of each series or group as a CSV file. */
#ifndef STRETTO_API_SCORE_FILE_H
#define STRETTO_API_SCORE_FILE_H

#include "opt/opt.h"
#include "report/lines.h"

/* Writes the file that --scores names; no effect without it, or without lines. E601, E702, E703. */
err score_file(const struct options *o, const struct score_lines *l);

#endif
