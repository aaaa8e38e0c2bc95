/* host_data.h - data that one rank reads for all ranks of its host, which map its arrays (data/share.h).
 *
 *     rank 0, host a    reads the file --> arrays in its files | head          changes the arrays (scale, words) when all
 *     rank 1, host a    -------- opens ----------------------> the same        others have computed what follows from them
 *     rank 2, host b    reads the file --> ..
 *
 * A rank that cannot open the memory of another one reads the file itself.  An error of any rank is that of all. */
#ifndef STRETTO_API_HOST_DATA_H
#define STRETTO_API_HOST_DATA_H

#include "api/api.h"

/* kind->read, together with the other ranks of comm; NULL = alone. */
err host_data_read(const struct options *o, struct comm *comm, const struct data_kind *kind, const char *path,
                   struct dataset **out);
/* learner->prepare, which changes the arrays of job->data; all ranks of comm call it. */
err host_data_prepare(struct comm *comm, const struct learner *learner, struct learn_job *job);

#endif
