/* devices.c - reads --device, and lists the devices of this host. */
#include "api/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/gpu.h"
#include "topo/gpu.h"

static const char fix[] = "--device cpu   or   --device opencl:0   or   --device cpu,opencl:0,cuda:1";

static err bad(const char *word, int len, const char *why) {
    return FAIL_AT(E103, "--device", fix, "\"%.*s\": %s", len < 60 ? len : 60, word, why);
}

/* ------------------------------------------------------------------ what there is ------------------------------------------- */

static err cards_of(const struct gpu_driver *d, struct gpu_card **card, i32 *n, char why[GPU_WHY]) {
    NEW(*card, GPU_CARDS);
    *n = d->cards(*card, GPU_CARDS, why);
    return 0;
}

/* PoCL runs on the cores of the host: its rate is a part of theirs. */
#define HOST_SHARE 0.2

static err add(struct device_wishes *w, const char *kind, struct device_wish wish) {
    if (w->n == DEVICE_WISHES) return FAIL_AT(E103, "--device", fix, "more than %d devices", DEVICE_WISHES);
    snprintf(wish.kind, sizeof wish.kind, "%s", kind);
    wish.share = 1;
    w->at[w->n++] = wish;
    return 0;
}

static err add_card(struct device_wishes *w, const struct gpu_driver *d, const struct gpu_card *c, i32 index, i32 lanes,
                    const struct machine *host) {
    const f64 gflops = c->is_host ? HOST_SHARE * host->device[0].gflops * host->ncore : 0;
    return add(w, d->name, (struct device_wish){.card = index, .lanes = lanes, .memory = c->memory, .gflops = gflops});
}

static err add_all(struct device_wishes *w, const struct machine *host) {
    for (i32 i = 0; i < gpu_drivers(); i++) {
        const struct gpu_driver *d = gpu_driver_at(i);
        struct gpu_card *card;
        char why[GPU_WHY];
        i32 n;
        err e = cards_of(d, &card, &n, why);
        for (i32 k = 0; k < n && e >= 0; k++)
            if (!card[k].lacks) e = add_card(w, d, &card[k], k, 1, host);
        mem_free(card);
        TRY(e);
    }
    if (w->n > 0) return 0;
    char all[600];
    devices_summary(all, sizeof all);
    return FAIL_AT(E830, "--device all", "--device cpu", "there is no device to use but the cores: %s", all);
}

/* ------------------------------------------------------------------ the text ------------------------------------------------ */

/* A number of at most four digits at *at; -1 = none. */
static i32 number(const char **at, const char *end) {
    i32 v = -1;
    for (i32 digits = 0; *at < end && **at >= '0' && **at <= '9' && digits < 4; digits++, (*at)++)
        v = imax(v, 0) * 10 + (**at - '0');
    return v;
}

static err add_named(struct device_wishes *w, const struct gpu_driver *d, i32 index, i32 lanes, const struct machine *host) {
    struct gpu_card *card;
    char why[GPU_WHY];
    i32 n;
    err e = cards_of(d, &card, &n, why);
    if (e >= 0 && index < n)
        e = add_card(w, d, &card[index], index, lanes, host);
    else if (e >= 0)
        e = gpu_no_such(d, index, card, n, why);
    mem_free(card);
    return e;
}

static err add_entry(struct device_wishes *w, const char *at, const char *end, const struct machine *host) {
    const char *word = at;
    char name[16] = "";
    i32 index = 0, lanes = 1;
    while (at < end && *at != ':' && *at != '*') at++;
    const int len = (int)(at - word);
    snprintf(name, sizeof name, "%.*s", len < 15 ? len : 15, word);
    if (strcmp(name, "all") == 0 && at == end) return add_all(w, host);
    if (at < end && *at == ':') {
        at++;
        index = number(&at, end);
    }
    if (at < end && *at == '*') {
        at++;
        lanes = number(&at, end);
    }
    if (at != end || index < 0 || lanes < 1 || lanes > GPU_LANES - 1)
        return bad(word, (int)(end - word), "a device is a name and a number, with 1 to 15 lanes: opencl:0, cuda:1*2");
    if (strcmp(name, "cpu") == 0) {
        if (len != (int)(end - word)) return bad(word, (int)(end - word), "cpu has neither a number nor lanes: use --threads");
        return add(w, name, (struct device_wish){.lanes = host->ndevice});
    }
    const struct gpu_driver *d = gpu_driver_find(name);
    if (!d) return bad(word, (int)(end - word), "known are cpu, all, opencl:N and cuda:N; auto stands alone");
    return add_named(w, d, index, lanes, host);
}

/* Occupied GPUs get less work.  NVML and CUDA count alike unless the user hides devices from CUDA. */
#define SHARE_LEAST 0.05
static void look_at_load(struct device_wishes *w) {
    struct gpu_load load[GPU_MOST];
    struct gpus *g = NULL;
    bool any = false;
    for (i32 i = 0; i < w->n; i++) any = any || strcmp(w->at[i].kind, "cuda") == 0;
    if (!any || w->n < 2 || getenv("CUDA_VISIBLE_DEVICES")) return;
    if (gpus_open(&g) < 0 || gpus_look(g, load) < 0) {
        err_clear(); /* no NVML: all are taken for free */
        gpus_close(g);
        return;
    }
    for (i32 i = 0; i < w->n; i++) {
        struct device_wish *at = &w->at[i];
        if (strcmp(at->kind, "cuda") != 0 || at->card >= gpus_count(g) || load[at->card].busy < 0) continue;
        at->share = dmax(SHARE_LEAST, 1 - load[at->card].busy);
    }
    gpus_close(g);
}

err devices_read(const struct options *o, const struct machine *host, struct device_wishes *out) {
    *out = (struct device_wishes){0};
    if (strcmp(o->device, "auto") == 0 || strcmp(o->device, "cpu") == 0) return 0;
    for (const char *at = o->device; *at;) {
        const char *end = at + strcspn(at, ",");
        TRY(add_entry(out, at, end, host));
        if (*end == ',' && !end[1]) return bad(o->device, (int)strlen(o->device), "a device is missing after the last comma");
        at = *end ? end + 1 : end;
    }
    look_at_load(out);
    return 0;
}

bool devices_differ(const struct device_wishes *w) {
    for (i32 i = 1; i < w->n; i++)
        if (strcmp(w->at[i].kind, w->at[0].kind) != 0) return true;
    return false;
}

/* ------------------------------------------------------------------ machines ------------------------------------------------ */

void devices_add(const struct device_wishes *w, i32 rank, const struct machine *host, struct machine *m) {
    const struct device_wish *at = &w->at[rank % w->n];
    const struct device *core = &host->device[0];
    struct device d = *core;
    if (strcmp(at->kind, "cpu") != 0) {
        machine_kind(at->kind, &d);
        d.card = at->card;
        if (at->gflops > 0) d.gflops = at->gflops;
        d.memory = at->memory;
    }
    d.rank = rank;
    d.share = at->share;
    for (i32 i = 0; i < at->lanes && m->ndevice < MACHINE_DEVICES; i++) m->device[m->ndevice++] = d;
    m->nrank = imax(m->nrank, rank + 1);
    machine_set_rate(m, at->kind, 0);
}

err devices_machine(const struct device_wishes *w, i32 which, const struct machine *host, struct machine **out) {
    NEW(*out, 1);
    machine_copy(*out, host);
    (*out)->ndevice = 0;
    devices_add(w, which, host, *out);
    for (i32 d = 0; d < (*out)->ndevice; d++) (*out)->device[d].rank = 0;
    (*out)->nrank = 1;
    return machine_trim(out);
}

err devices_of_rank(const struct machine *all, i32 rank, const struct machine *host, struct machine **out) {
    NEW(*out, 1);
    machine_copy(*out, host);
    (*out)->ndevice = 0;
    for (i32 d = 0; d < all->ndevice; d++) {
        if (all->device[d].rank != rank) continue;
        (*out)->device[(*out)->ndevice] = all->device[d];
        (*out)->device[(*out)->ndevice++].rank = 0;
    }
    (*out)->nrank = 1;
    return machine_trim(out);
}

/* ------------------------------------------------------------------ listing ------------------------------------------------- */

static void list_card(const struct gpu_driver *d, i32 index, const struct gpu_card *c, struct str *text, struct js *list) {
    char word[32];
    snprintf(word, sizeof word, "%s:%d", d->name, index);
    if (text)
        str_addf(text, "# --device %s: %s (%s), %d units, %.1f GiB, %.1f GiB in one piece%s%s%s\n", word, c->name, c->platform,
                 c->units, (f64)c->memory / 0x1p30, (f64)c->largest / 0x1p30, c->is_host ? ", the cores of this host" : "",
                 c->lacks ? "; not usable, it lacks " : "", c->lacks ? c->lacks : "");
    if (!list) return;
    struct js *o = js_object();
    js_put_text(o, "device", word);
    js_put_text(o, "name", c->name);
    js_put_text(o, "platform", c->platform);
    js_put_i64(o, "units", c->units);
    js_put_i64(o, "memory", c->memory);
    js_put_i64(o, "largest", c->largest);
    js_push(list, o);
}

void devices_list(struct str *text, struct js *list) {
    for (i32 i = 0; i < gpu_drivers(); i++) {
        struct gpu_card *card = NULL;
        char why[GPU_WHY] = "";
        i32 n = 0;
        if (cards_of(gpu_driver_at(i), &card, &n, why) < 0) err_clear();
        for (i32 k = 0; k < n; k++) list_card(gpu_driver_at(i), k, &card[k], text, list);
        if (n == 0 && text) str_addf(text, "# --device %s: none here: %s\n", gpu_driver_at(i)->name, why);
        mem_free(card);
    }
}

void devices_summary(char *out, size_t size) {
    size_t at = 0;
    out[0] = 0;
    for (i32 i = 0; i < gpu_drivers() && at < size; i++) {
        struct gpu_card *card = NULL;
        char why[GPU_WHY] = "";
        i32 n = 0;
        if (cards_of(gpu_driver_at(i), &card, &n, why) < 0) err_clear();
        for (i32 k = 0; k < n && at < size; k++)
            at +=
                (size_t)snprintf(out + at, size - at, "%s%s:%d (%.60s%s%s)", at ? ", " : "", gpu_driver_at(i)->name, k,
                                 card[k].name, card[k].lacks ? ", it lacks " : "", card[k].lacks ? card[k].lacks : "");
        if (n == 0 && at < size)
            at += (size_t)snprintf(out + at, size - at, "%sno %s (%.120s)", at ? ", " : "", gpu_driver_at(i)->name, why);
        mem_free(card);
    }
}
