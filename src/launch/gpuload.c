/* gpuload.c - smooths the load and decides when to send a weight to the scheduler; no clock, file or GPU is used.
 *
 *     level   |        .--.           o = sent.  Nothing is sent while the level stays between the dashed lines around the value
 *             |- - - o - - - - -      sent last: the scheduler reschedules after every change
 *             |    .'
 *             |- -o- - - - - - -
 *             '---------------- time */
#include "launch/gpuload.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_SHARE 0.05 /* minimum share, so that every rank gets rows */
#define LIGHT 0.2        /* a node is idle below */
#define BUSY 0.6         /* .. and busy from here on */
#define ROUNDING 1e-9    /* a change of 4.9999999 points counts as 5 */

f64 gpuload_occupancy(const struct gpu_load *g) { return dmin(1, dmax(0, dmax(g->busy, g->memory))); }

f64 gpuload_level(const struct gpuload_state *s) {
    f64 sum = 0;
    for (i32 i = 0; i < s->n; i++) sum += s->level[i];
    return s->n > 0 ? sum / s->n : 0;
}

i32 gpuload_weight(const struct gpuload_rule *r, f64 level) { return r->weight + (i32)(r->span * level + 0.5); }

const char *gpuload_class(f64 level) { return level < LIGHT ? "idle" : level < BUSY ? "light" : "busy"; }

f64 gpuload_share(f64 level) { return dmax(LEAST_SHARE, 1 - level); }

static bool follows(const struct gpuload_state *s, const struct gpuload_sample *sample, const char *source, struct str *note) {
    if (s->n == 0) return false;
    if (strcmp(s->source, source) != 0)
        str_addf(note, "loads came from %s before, and come from %s now: smoothing restarted", s->source, source);
    else if (s->n != sample->n) str_addf(note, "%d GPUs where %d were: smoothing restarted", sample->n, s->n);
    else if (sample->time < s->time) str_addf(note, "the clock went back by %.0f s: smoothing restarted", s->time - sample->time);
    else return true;
    return false;
}

void gpuload_smooth(struct gpuload_state *s, const struct gpuload_rule *r, const struct gpuload_sample *sample,
                    const char *source, struct str *note) {
    f64 part = 1;
    if (follows(s, sample, source, note)) {
        if (r->smooth > 0) part = 1 - exp(-(sample->time - s->time) / r->smooth); /* samples may be unevenly spaced in time */
    } else {
        s->sent = false;
        memset(s->level, 0, sizeof s->level);
    }
    s->time = sample->time;
    s->n = sample->n;
    snprintf(s->source, sizeof s->source, "%s", source);
    for (i32 i = 0; i < s->n; i++) s->level[i] += part * (gpuload_occupancy(&sample->gpu[i]) - s->level[i]);
}

enum gpuload_why gpuload_decide(const struct gpuload_state *s, const struct gpuload_rule *r) {
    if (!s->sent) return GPULOAD_FIRST;
    if (gpuload_weight(r, s->sent_level) != s->weight) return GPULOAD_RULE;
    if (fabs(gpuload_level(s) - s->sent_level) >= r->band - ROUNDING) {
        if (gpuload_weight(r, gpuload_level(s)) != s->weight) return GPULOAD_MOVED;
    }
    return r->refresh > 0 && s->time - s->sent_time >= r->refresh ? GPULOAD_AGAIN : GPULOAD_STAYS;
}

const char *gpuload_word(enum gpuload_why why) {
    static const char *const words[] = {"stays", "first", "moved", "rule", "again"};
    return words[why];
}

void gpuload_sent(struct gpuload_state *s, i32 weight) {
    s->sent = true;
    s->weight = weight;
    s->sent_level = gpuload_level(s);
    s->sent_time = s->time;
}
