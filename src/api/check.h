/* check.h - the parts of `stretto check`: api_check.c for series, check_records.c for the data of other learners. */
#ifndef STRETTO_API_CHECK_H
#define STRETTO_API_CHECK_H

#include "api/api.h"
#include "data/check.h"

/* finding.c: a finding for people, and as JSON. */
void finding_text(const struct finding *f, struct str *out);
struct js *finding_json(const struct finding *f);

/* Records of a set in memory that are worth a look: repeated ones, constant columns, classes of a single record.  E601. */
err check_record_set(const struct options *o, struct dataset *set, struct findings *out);
/* Reads the file as the learner does, and looks for what its training would refuse, and for records that are worth a look.
 * Returns the code of the first error, with the text in *out. */
err check_records(const struct options *o, const struct learner *l, const char *path, bool json, char **out);

#endif
