/* serve.c - commands on stdin, answers on stdout, one line each, so that a harness can interleave samples of this program and
 * PyTorch (bench/kern/run.py; peer.py has the same protocol).
 *
 *     case dir=DIR cell=lstm T=100 ...   ->  ok FLOP | absent REASON | error TEXT     weights and inputs: raw files in DIR
 *     check                              ->  ok         one step; y and gradients as ours.*.f32 in DIR
 *     sample N WARM                      ->  ok ms,fma0,fma1,tile0,tile1,waited ... allocations=0
 *         N steps after WARM uncounted ones, each with the calibration rates before and after it (GF/s of the slowest thread)
 *         and the ms that its threads waited for a processor
 *     use K                              ->  ok         selects case 0..3 for the commands above; initially 0
 *     info                               ->  ok TEXT
 *     drop                               ->  ok         deletes all cases
 *     quit */
#include "serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "calib.h"

enum { LINE = 1024, CASES = 4 };

static bool flag_word(const char *key, i32 v, struct spec *s) {
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {{"ragged", &s->ragged}, {"stepped", &s->stepped}, {"team", &s->team},
                 {"step", &s->step},     {"dx", &s->dx},           {"layer", &s->layer}};
    for (size_t i = 0; i < COUNT(flags); i++)
        if (!strcmp(key, flags[i].key)) {
            *flags[i].flag = v != 0;
            return true;
        }
    return false;
}

static bool number_word(const char *key, i32 v, struct spec *s) {
    const struct {
        const char *key;
        i32 *number, min, max;
    } numbers[] = {{"T", &s->T, 1, 1 << 20},
                   {"B", &s->B, 1, 1 << 20},
                   {"I", &s->I, 1, 1 << 16},
                   {"H", &s->H, 1, 1 << 16},
                   {"layers", &s->layers, 1, RIG_LAYERS},
                   {"dirs", &s->dirs, 1, 2},
                   {"proj", &s->proj, 0, 1 << 16},
                   {"slice", &s->slice, 1, 1 << 20}};
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (!strcmp(key, numbers[i].key)) {
            *numbers[i].number = v;
            return v >= numbers[i].min && v <= numbers[i].max;
        }
    if (!strcmp(key, "how")) s->how = (u32)v;
    return !strcmp(key, "how") || flag_word(key, v, s);
}

static bool word(const char *key, const char *value, struct spec *s) {
    static const char *const cells[CELL_NKIND] = {"lstm", "gru", "rnn"}, *const precs[PREC_N] = {"fp32", "bf16"};
    for (enum cell_kind k = 0; k < CELL_NKIND; k++)
        if (!strcmp(key, "cell") && !strcmp(value, cells[k])) return s->cell = k, true;
    for (enum precision p = 0; p < PREC_N; p++)
        if (!strcmp(key, "prec") && !strcmp(value, precs[p])) return s->prec = p, true;
    for (enum kern_arch a = 0; a < KERN_NARCH; a++)
        if (!strcmp(key, "isa") && !strcmp(value, kern_arch_name(a)) && kern_get(a)) return s->kern = kern_get(a), true;
    char *end;
    const long v = strtol(value, &end, 10);
    return end != value && !*end && number_word(key, (i32)v, s);
}

const char *spec_parse(const char *words, struct spec *s) {
    static char bad[64];
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, " \n");
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)n, at);
        char *eq = strchr(key, '=');
        at += n;
        at += strspn(at, " \n");
        if (!n || !strncmp(key, "dir=", 4)) continue;
        if (eq) *eq = 0;
        if (!eq || !word(key, eq + 1, s)) {
            snprintf(bad, sizeof bad, "%.40s", key);
            return bad;
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ orders -------------------------------------------------- */

struct server {
    struct pool *pool;
    struct spec fallback;
    struct rig *rigs[CASES], **rig; /* rig: the one in use */
    char dir[512];
    bool tiles[CASES];
    struct calib calib;
    const struct kern *yardstick;
};

static void burst(void *calib, i32 id) {
    (void)id;
    calib_burst(calib);
}

static f64 rates(struct server *v, f64 *tile) {
    pool_run(v->pool, burst, &v->calib);
    return calib_take(&v->calib, tile);
}

static void say_error(void) {
    const struct err_record *r = err_last();
    printf("error E%d %s: %s\n", (int)r->code, r->where, r->text);
}

static void begin(struct server *v, const char *words) {
    struct spec s = v->fallback;
    rig_free(*v->rig);
    *v->rig = NULL;
    v->dir[0] = 0;
    for (const char *at = strstr(words, "dir="); at; at = NULL)
        snprintf(v->dir, sizeof v->dir, "%.*s", (int)strcspn(at + 4, " \n"), at + 4);
    const char *bad = spec_parse(words, &s);
    if (bad) {
        printf("error \"%s\" is not a word of a case, or this machine lacks it\n", bad);
        return;
    }
    if (rig_new(&s, v->pool, v->rig) < 0) {
        *v->rig = NULL;
        say_error();
        return;
    }
    struct rig *r = *v->rig;
    if (*r->why)
        printf("absent %s\n", r->why);
    else if (r->load(r, v->dir[0] ? v->dir : NULL) < 0)
        say_error();
    else
        printf("ok %.0f\n", r->flop);
    if (s.kern != v->yardstick) calib_init(v->yardstick = s.kern);
    v->tiles[v->rig - v->rigs] = s.prec == PREC_BF16;
}

static void check(struct server *v) {
    struct rig *r = *v->rig;
    r->step(r);
    if (r->dump(r, v->dir) < 0)
        say_error();
    else
        printf("ok\n");
}

static void sample(struct server *v, const char *words) {
    char *end;
    const long n = strtol(words, &end, 10), warm = strtol(end, NULL, 10);
    struct rig *r = *v->rig;
    v->calib.tiles = v->tiles[v->rig - v->rigs];
    for (long i = 0; i < warm; i++) r->step(r);
    f64 tile0, tile1, fma0 = rates(v, &tile0);
    const i64 calls = mem_stats().calls;
    printf("ok");
    for (long i = 0; i < n; i++) {
        const f64 waited = calib_waited(), t = clock_now();
        r->step(r);
        const f64 ms = (clock_now() - t) * 1e3, wait = (calib_waited() - waited) * 1e3, fma1 = rates(v, &tile1);
        printf(" %.6f,%.1f,%.1f,%.0f,%.0f,%.4f", ms, fma0, fma1, tile0, tile1, wait);
        fma0 = fma1, tile0 = tile1;
    }
    printf(" allocations=%lld\n", (long long)(mem_stats().calls - calls));
}

static void drop(struct server *v) {
    for (i32 k = 0; k < CASES; k++) {
        rig_free(v->rigs[k]);
        v->rigs[k] = NULL;
    }
    v->rig = v->rigs;
}

static bool order(struct server *v, const char *line) {
    if (!strncmp(line, "quit", 4)) return false;
    if (!strncmp(line, "case ", 5)) {
        begin(v, line + 5);
    } else if (!strncmp(line, "info", 4)) {
        printf("ok stretto kernels %s, %d threads\n", v->fallback.kern->name, (int)v->fallback.threads);
    } else if (!strncmp(line, "use ", 4) && line[4] >= '0' && line[4] < '0' + CASES) {
        v->rig = &v->rigs[line[4] - '0'];
        printf("ok\n");
    } else if (!strncmp(line, "drop", 4)) {
        drop(v);
        printf("ok\n");
    } else if (!*v->rig || *(*v->rig)->why) {
        printf("error no case\n");
    } else if (!strncmp(line, "check", 5)) {
        check(v);
    } else if (!strncmp(line, "sample ", 7)) {
        sample(v, line + 7);
    } else {
        printf("error not an order: %.40s\n", line);
    }
    fflush(stdout);
    return true;
}

err serve(struct pool *pool, const struct spec *fallback) {
    static struct server v;
    char line[LINE];
    v = (struct server){.pool = pool, .fallback = *fallback, .yardstick = fallback->kern};
    v.rig = v.rigs;
    TRY(calib_init(v.yardstick));
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!order(&v, line)) break;
    }
    drop(&v);
    return 0;
}
