/* mirror.h - the run folder of a model in HDFS: a folder of this host, copied to HDFS while training goes on.
 *
 *     -o hdfs://NN:9870/d/m.model               RUN = $STRETTO_RUNS/m.model.run, without STRETTO_RUNS in the working folder
 *
 *     RUN/checkpoints/N.ckpt      --files-->    hdfs://NN:9870/d/m.model.run/checkpoints/N.part  --RENAME-->  N.ckpt
 *     RUN/run.json, config.json,  --files-->    the same names
 *         data.json, metrics.jsonl
 *
 * A thread copies; a failure is a warning, and the next checkpoint is copied again. `stretto resume hdfs://NN:9870/d/m.model.run`
 * fetches the newest checkpoint that is whole, on any host (mirror_fetch). docs/adr/031-run-folders-of-models-in-hdfs.md */
#ifndef STRETTO_API_MIRROR_H
#define STRETTO_API_MIRROR_H

#include <stddef.h>

#include "base/err.h"

struct stretto_trainer;
struct mirror;

/* The run folder on this host of a model or run in HDFS. */
void mirror_folder(const char *remote, const char *ending, char *out, size_t size);

/* Starts the copies of a trainer whose model goes to HDFS; no effect for other models. */
err mirror_open(struct stretto_trainer *t);
void mirror_end(struct stretto_trainer *t);   /* the run is finished: its files are copied, its checkpoints removed */
void mirror_close(struct stretto_trainer *t); /* waits for the copy under way; a warning if it failed */

/* Fetches what is newer in HDFS than in the run folder of this host. *local: that folder, freed with mem_free. E704 if it belongs
 * to another run, E705 if there is no run in HDFS, E901 if no checkpoint is whole. */
err mirror_fetch(const char *run, char **local);

#endif
