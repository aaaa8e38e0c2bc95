/* api_gpuload.c - one call of gpuload: sample the load, smooth it, store it, and update the weight in Slurm where the load moved.
 *
 *     state --> sample (NVML, or the next time of a record) --> smoothed --> weight --> scontrol update --> state
 *                                                                       `--> --yarn: a line for the NodeManager
 *
 * Slurm calls this every few seconds on each node.  --dry-run on a record plays the whole record, and changes nothing. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/shares.h"
#include "base/clock.h"
#include "base/json.h"
#include "launch/slurm.h"
#include "launch/supervise.h"

enum { LOOKS = 5, NAP_NS = 200000000 }; /* NVML averages over a short interval: a sample is the mean of one second */
#define POINTS 100.0

struct call {
    const struct options *o;
    struct gpuload_rule rule;
    char node[GPULOAD_NODE];
    struct str path;                /* path of the state file */
    struct gpuload_record record;
    bool recorded, over;
    struct gpuload_sample sample;
    struct gpuload_state state, before;
    enum gpuload_why why;
    struct slurm_weight command;
    struct str note, text;
    struct js *all;
};

static void line(struct call *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void line(struct call *c, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    str_addf(&c->text, "%s%s\n", c->recorded ? "recorded: " : "", text);
}

/* ------------------------------------------------------------------ samples ------------------------------------------------- */

static void add_load(struct gpu_load *sum, const struct gpu_load *one) {
    sum->busy = one->busy < 0 || sum->busy < 0 ? -1 : sum->busy + one->busy / LOOKS;
    sum->memory += one->memory / LOOKS;
}

static err look(struct gpuload_sample *out) {
    struct gpu_load load[GPU_MOST];
    struct gpus *g;
    *out = (struct gpuload_sample){0};
    TRY(gpus_open(&g));
    out->n = gpus_count(g);
    err e = 0;
    for (i32 k = 0; k < LOOKS && e >= 0; k++) {
        if (k) nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        e = gpus_look(g, load);
        for (i32 i = 0; i < out->n && e >= 0; i++) add_load(&out->gpu[i], &load[i]);
    }
    gpus_close(g);
    out->time = clock_wall();
    return e;
}

static err take(struct call *c) {
    if (!c->recorded) return look(&c->sample);
    c->sample = *gpuload_record_next(&c->record, &c->state, &c->over);
    return 0;
}

/* ------------------------------------------------------------------ what is printed ----------------------------------------- */

static void print_gpus(struct call *c) {
    for (i32 i = 0; i < c->sample.n; i++) {
        const struct gpu_load *g = &c->sample.gpu[i];
        char busy[24] = "unknown";
        if (g->busy >= 0) snprintf(busy, sizeof busy, "%.0f%%", g->busy * POINTS);
        line(c, "gpu %d: utilisation %s, memory %.0f%%, smoothed %.0f%%", i, busy, g->memory * POINTS,
             c->state.level[i] * POINTS);
    }
}

static void print_node(struct call *c, i32 weight) {
    const f64 level = gpuload_level(&c->state), moved = fabs(level - c->before.sent_level) * POINTS;
    char change[40] = "", why[64];
    if (c->why == GPULOAD_MOVED || c->why == GPULOAD_RULE) snprintf(change, sizeof change, "%d -> ", c->before.weight);
    switch (c->why) {
    case GPULOAD_FIRST: snprintf(why, sizeof why, "for the first time"); break;
    case GPULOAD_RULE: snprintf(why, sizeof why, "--weight or --span changed"); break;
    case GPULOAD_AGAIN: snprintf(why, sizeof why, "again, after %.0f s", c->state.time - c->before.sent_time); break;
    default: snprintf(why, sizeof why, "%s by %.1f points", c->why == GPULOAD_STAYS ? "stays: moved" : "moved", moved);
    }
    if (c->recorded) line(c, "time %g%s", c->sample.time, c->over ? ", the last one" : "");
    line(c, "%s: occupancy %.0f%%, weight %s%d (%s)", c->node, level * POINTS, change, weight, why);
}

static void print_command(struct call *c) {
    struct str words = {0};
    for (i32 i = 0; c->command.argv[i]; i++) str_addf(&words, "%s%s", i ? " " : "", c->command.argv[i]);
    line(c, "%s%s", c->o->dry_run ? "dry run: " : "", str_text(&words));
    str_free(&words);
}

static void put_json(struct call *c, i32 weight) {
    struct js *o = js_object(), *list = js_array();
    js_put_bool(o, "recorded", c->recorded);
    js_put_text(o, "source", c->state.source);
    js_put_text(o, "node", c->node);
    js_put_f64(o, "time", c->sample.time);
    for (i32 i = 0; i < c->sample.n; i++) {
        struct js *g = js_object();
        if (c->sample.gpu[i].busy >= 0) js_put_f64(g, "utilisation", c->sample.gpu[i].busy);
        js_put_f64(g, "memory", c->sample.gpu[i].memory);
        js_put_f64(g, "smoothed", c->state.level[i]);
        js_push(list, g);
    }
    js_put(o, "gpus", list);
    js_put_f64(o, "occupancy", gpuload_level(&c->state));
    js_put_i64(o, "weight", weight);
    js_put_text(o, "why", gpuload_word(c->why));
    if (*str_text(&c->note)) js_put_text(o, "note", str_text(&c->note));
    js_put_bool(o, "set", c->why != GPULOAD_STAYS && !c->o->dry_run);
    js_push(c->all, o);
}

static err give(struct call *c, bool json, bool list, char **out) {
    struct str text = {0};
    if (!json) return text_give(&c->text, out);
    err e = js_text(list ? c->all : js_at(c->all, 0), &text, 2);
    return text_end(e, &text, out);
}

/* ------------------------------------------------------------------ one sample ---------------------------------------------- */

static err save(struct call *c) {
    err e = gpuload_save(str_text(&c->path), &c->state);
    if (e >= 0 || *err_last()->fix) return e;
    const struct err_record why = *err_last();
    return FAIL_AT((enum err_code)why.code, why.where, "--state FILE   (in a folder that the user of slurmd may write)", "%s",
                   why.text);
}

/* The state is also written before Slurm is called: with an unwritable state every call would be a first one and update Slurm. */
static err update_slurm(struct call *c, i32 weight) {
    if (!c->o->dry_run) TRY(save(c));
    if (c->why == GPULOAD_STAYS) return 0;
    TRY(slurm_weight_command(c->node, weight, &c->command));
    if (!c->o->dry_run) TRY(slurm_set_weight(&c->command, SLURM_PATIENCE));
    gpuload_sent(&c->state, weight);
    return c->o->dry_run ? 0 : save(c);
}

/* The script provider of a NodeManager reads nothing but attributes.  The same dead band as for weights: an attribute that
 * changes back and forth would move jobs. */
static err print_attribute(struct call *c, i32 weight) {
    if (c->why != GPULOAD_STAYS) gpuload_sent(&c->state, weight);
    str_addf(&c->text, "NODE_ATTRIBUTE:gpuload,STRING,%s\n", gpuload_class(c->state.sent_level));
    TRY(str_ok(&c->text));
    return c->o->dry_run ? 0 : save(c);
}

static err step(struct call *c, bool gpus) {
    TRY(take(c));
    c->before = c->state;
    gpuload_smooth(&c->state, &c->rule, &c->sample, c->recorded ? c->record.source : GPULOAD_NVML, &c->note);
    c->why = gpuload_decide(&c->state, &c->rule);
    const i32 weight = c->why == GPULOAD_STAYS ? c->state.weight : gpuload_weight(&c->rule, gpuload_level(&c->state));
    if (c->o->yarn) return print_attribute(c, weight);
    TRY(update_slurm(c, weight));
    if (*str_text(&c->note) && !c->o->quiet) line(c, "note: %s", str_text(&c->note));
    if (gpus) print_gpus(c);
    print_node(c, weight);
    if (c->why != GPULOAD_STAYS) print_command(c);
    put_json(c, weight);
    return str_ok(&c->text);
}

static err run(struct call *c, bool json, char **out) {
    const bool rehearsal = c->recorded && c->o->dry_run;
    if (c->recorded) TRY(gpuload_record_load(c->o->recorded, &c->record));
    if (!rehearsal) TRY(gpuload_load(str_text(&c->path), c->node, &c->state, &c->note));
    snprintf(c->state.node, sizeof c->state.node, "%s", c->node);
    for (i32 i = 0; i < (rehearsal ? c->record.n : 1); i++) TRY(step(c, !rehearsal));
    return give(c, json, rehearsal, out);
}

/* ------------------------------------------------------------------ shares -------------------------------------------------- */

/* 'host*2(gpu*2) shares=..': a machine text has as many GPUs on each host. */
static err machine_text(const struct gpuload_state *s, i32 ranks, struct str *out) {
    bool recorded = false;
    str_add(out, "host");
    if (ranks > 1) str_addf(out, "*%d", ranks);
    str_addf(out, "(gpu*%d) shares=", s[0].n);
    for (i32 k = 0; k < ranks; k++) {
        if (s[k].n != s[0].n)
            return FAIL_AT(E804, NULL, "stretto gpuload --shares   on hosts of one kind", "node %s has %d GPUs, and node %s %d",
                           s[k].node, s[k].n, s[0].node, s[0].n);
        recorded = recorded || strcmp(s[k].source, GPULOAD_NVML) != 0;
        for (i32 i = 0; i < s[k].n; i++) str_addf(out, "%s%.3g", k + i ? "," : "", gpuload_share(s[k].level[i]));
    }
    str_addf(out, "   # free on");
    for (i32 k = 0; k < ranks; k++) str_addf(out, "%s %s", k ? "," : "", s[k].node);
    str_add(out, recorded ? "; recorded\n" : "\n");
    return str_ok(out);
}

static err put_shares(const struct gpuload_state *s, i32 ranks, struct str *out) {
    struct js *all = js_array();
    for (i32 k = 0; k < ranks; k++) {
        struct js *o = js_object(), *list = js_array();
        js_put_text(o, "node", s[k].node);
        js_put_text(o, "source", s[k].source);
        js_put_bool(o, "recorded", strcmp(s[k].source, GPULOAD_NVML) != 0);
        for (i32 i = 0; i < s[k].n; i++) js_push(list, js_new_f64(gpuload_share(s[k].level[i])));
        js_put(o, "shares", list);
        js_push(all, o);
    }
    err e = js_text(all, out, 2);
    js_free(all);
    return e;
}

/* Samples the load of this node, or of every rank's node under a launcher; rank 0 prints. */
static err shares(const struct options *o, struct comm *comm, bool json, char **out) {
    const i32 ranks = comm_size(comm);
    struct gpuload_state *all;
    struct str text = {0};
    NEW(all, ranks);
    err e = shares_gather(comm, o->state, o->node, all);
    if (e >= 0 && comm_rank(comm) == 0) e = json ? put_shares(all, ranks, &text) : machine_text(all, ranks, &text);
    mem_free(all);
    return text_end(e, &text, out);
}

static err shares_of_all(const struct options *o, bool json, char **out) {
    i32 promised = 1;
    struct comm *comm = NULL;
    err e = comm_launched(&promised) && promised > 1 ? comm_mpi(&comm) : 0;
    if (e >= 0 && comm) e = comm_connect(comm);
    if (e >= 0) e = shares(o, comm, json, out);
    if (e >= 0) comm_succeed(comm);
    comm_free(comm);
    return e;
}

stretto_err stretto_gpuload(stretto_config *config, int json, char **out) {
    const struct options *o = &config->o;
    struct call *c;
    *out = NULL;
    if (o->shares && (o->recorded || o->dry_run))
        return FAIL_AT(E106, "--shares", "stretto gpuload --shares   after a call without it",
                       "it prints what earlier calls smoothed, and does not go with %s",
                       o->recorded ? "--recorded" : "--dry-run");
    if (o->yarn && (o->shares || json))
        return FAIL_AT(E106, "--yarn", "stretto gpuload --yarn", "it prints what a NodeManager reads, and does not go with %s",
                       o->shares ? "--shares" : "--json");
    if (o->shares) return shares_of_all(o, json != 0, out);
    NEW(c, 1);
    c->o = o;
    c->rule = (struct gpuload_rule){.smooth = o->smooth, .band = o->band / POINTS, .refresh = o->refresh};
    c->rule.weight = (i32)o->weight;
    c->rule.span = (i32)o->span;
    c->recorded = o->recorded != NULL;
    c->all = js_array();
    if (strcmp(o->node, "auto") != 0) snprintf(c->node, sizeof c->node, "%s", o->node);
    else gpuload_node(c->node);
    err e = slurm_weight_command(c->node, 0, &c->command); /* reject a bad node name before anything else */
    if (e >= 0) e = gpuload_path(o->state, c->node, &c->path);
    if (e >= 0) e = run(c, json != 0, out);
    gpuload_record_free(&c->record);
    js_free(c->all);
    str_free(&c->path);
    str_free(&c->note);
    str_free(&c->text);
    mem_free(c);
    return e;
}
