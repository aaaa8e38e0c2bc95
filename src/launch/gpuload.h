/* gpuload.h - how busy the GPUs of a node are: a weight for its scheduler, and shares for ranks, from the same numbers.
 *
 *     NVML (topo/gpu.h) ---.
 *                           >-- sample --> gpuload_smooth --> gpuload_decide --> slurm_set_weight (slurm.h)
 *     gpuload_recorded.c --'         state: what was smoothed and sent, a small file from call to call (gpuload_state.c)
 *
 * Slurm starts the program anew every few seconds; so all that one call knows of those before it is in the state. */
#ifndef STRETTO_LAUNCH_GPULOAD_H
#define STRETTO_LAUNCH_GPULOAD_H

#include "base/str.h"
#include "topo/gpu.h"

enum { GPULOAD_NODE = 64, GPULOAD_SOURCE = 300 };
#define GPULOAD_STATE "/run/stretto/gpuload-%n.state" /* default path */
#define GPULOAD_NVML "NVML"

/* Loads at one moment, in seconds: of a clock, or of a record. */
struct gpuload_sample {
    f64 time;
    i32 n;
    struct gpu_load gpu[GPU_MOST];
};

struct gpuload_rule {
    f64 smooth;      /* seconds over which occupancy is smoothed; 0 = not */
    f64 band;        /* a level must change by this much (0..1) before the weight is sent to the scheduler */
    f64 refresh;     /* seconds after which an unchanged weight is sent again, since the scheduler may forget it; 0 = never */
    i32 weight, span; /* weight of an idle node; difference between a fully busy and an idle node */
};

struct gpuload_state {
    char node[GPULOAD_NODE], source[GPULOAD_SOURCE]; /* GPULOAD_NVML, or the path of a record */
    f64 time;                 /* of the newest sample */
    i32 n;
    f64 level[GPU_MOST];      /* smoothed occupancy of each GPU, 0..1 */
    bool sent;                /* a weight was sent to the scheduler: */
    i32 weight;
    f64 sent_level, sent_time;
};

/* --- gpuload.c: pure functions --- */
f64 gpuload_occupancy(const struct gpu_load *g); /* the larger of the two: kernel time, memory in use */
f64 gpuload_level(const struct gpuload_state *s); /* mean occupancy of the node's GPUs */
i32 gpuload_weight(const struct gpuload_rule *r, f64 level);
/* "idle" below 0.2, "light" below 0.6, else "busy": YARN compares attributes for equality only. */
const char *gpuload_class(f64 level);
/* Share of the work for a rank on this GPU or node: the free fraction, at least 0.05. */
f64 gpuload_share(f64 level);
/* Adds a sample to the state. If it does not continue the state (other GPUs, another source, an earlier time), the state
 * starts again and `note` gives the reason; otherwise note is empty. */
void gpuload_smooth(struct gpuload_state *s, const struct gpuload_rule *r, const struct gpuload_sample *sample,
                    const char *source, struct str *note);
enum gpuload_why { GPULOAD_STAYS, GPULOAD_FIRST, GPULOAD_MOVED, GPULOAD_RULE, GPULOAD_AGAIN };
/* Whether and why the weight must be sent to the scheduler; GPULOAD_STAYS = it need not. */
enum gpuload_why gpuload_decide(const struct gpuload_state *s, const struct gpuload_rule *r);
const char *gpuload_word(enum gpuload_why why); /* "stays", "first", "moved", "rule", "again" */
void gpuload_sent(struct gpuload_state *s, i32 weight); /* records that the weight was sent */

/* --- gpuload_state.c --- */
/* The name of this node: from Slurm, otherwise the host name. "%n" in a path stands for it. */
void gpuload_node(char out[GPULOAD_NODE]);
err gpuload_path(const char *pattern, const char *node, struct str *out);
/* Reads the state; empty if there is no file or it is incomplete (note). E821 if the file has another format or belongs to
 * another node. */
err gpuload_load(const char *path, const char *node, struct gpuload_state *out, struct str *note);
err gpuload_parse(const char *path, const char *node, const char *text, i64 n, struct gpuload_state *out, struct str *note);
err gpuload_save(const char *path, const struct gpuload_state *s); /* writes the state, and its folder if needed, atomically */
/* As gpuload_load, but the file must exist: E701 says how to create it. */
err gpuload_need(const char *path, const char *node, struct gpuload_state *out);

/* --- gpuload_recorded.c --- */
struct gpuload_record {
    char source[GPULOAD_SOURCE];  /* its path */
    i32 n;                        /* samples in order of time, all of the same GPUs */
    struct gpuload_sample *sample;
};
/* CSV: time (s),gpu,utilisation (%),memory (%).  E822 with file, line and column. */
err gpuload_record_load(const char *path, struct gpuload_record *out);
err gpuload_record_parse(const char *path, const char *text, i64 n, struct gpuload_record *out);
void gpuload_record_free(struct gpuload_record *r);
/* The sample after the last one in the state; the last one again if there is no other: *over. */
const struct gpuload_sample *gpuload_record_next(const struct gpuload_record *r, const struct gpuload_state *s, bool *over);

#endif
