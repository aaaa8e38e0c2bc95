/* gpuload_state.c - the state that a call of gpuload leaves for the next one: a small JSON file, replaced atomically.
 *
 *     {"stretto_gpuload": 1, "node": "node1", "source": "NVML", "time": .., "level": [..], "weight": 62, ..}
 *
 * A file that starts differently belongs to another program and is not changed (E821).  One that starts like this but cannot be
 * parsed was truncated, for example by a power loss: the state then starts empty. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "launch/gpuload.h"

enum { VERSION = 1, MOST_BYTES = 64 << 10 };
static const char opening[] = "{\"stretto_gpuload\":";

void gpuload_node(char out[GPULOAD_NODE]) {
    const char *node = getenv("SLURMD_NODENAME");
    if (node && *node) {
        snprintf(out, GPULOAD_NODE, "%s", node);
        return;
    }
    if (gethostname(out, GPULOAD_NODE - 1) != 0) snprintf(out, GPULOAD_NODE, "localhost");
    out[GPULOAD_NODE - 1] = 0;
    out[strcspn(out, ".")] = 0; /* Slurm uses short node names */
}

err gpuload_path(const char *pattern, const char *node, struct str *out) {
    for (const char *p = pattern; *p; p++) {
        if (p[0] == '%' && p[1] == 'n') str_add(out, node), p++;
        else str_addn(out, p, 1);
    }
    return str_ok(out);
}

/* True if the text, without spaces, starts as our files do, or is a truncated start of one. */
static bool ours(const char *text) {
    const char *want = opening;
    for (; *want; want++, text++) {
        while (*text == ' ' || *text == '\n') text++;
        if (!*text) return true;
        if (*text != *want) return false;
    }
    return true;
}

static bool share(f64 v) { return v >= 0 && v <= 1; } /* no NaN */

static bool fill(const struct js *o, struct gpuload_state *out) {
    const struct js *level = js_get(o, "level");
    *out = (struct gpuload_state){.time = js_f64(js_get(o, "time"), -1), .n = (i32)lmin(js_len(level), GPU_MOST + 1)};
    snprintf(out->node, sizeof out->node, "%s", js_str(js_get(o, "node"), ""));
    snprintf(out->source, sizeof out->source, "%s", js_str(js_get(o, "source"), ""));
    if (out->n < 1 || out->n > GPU_MOST || !*out->node || !*out->source || !(out->time >= 0)) return false;
    for (i32 i = 0; i < out->n; i++) {
        out->level[i] = js_f64(js_at(level, i), -1);
        if (!share(out->level[i])) return false;
    }
    out->sent = js_get(o, "weight") != NULL;
    if (!out->sent) return true;
    out->weight = (i32)js_i64(js_get(o, "weight"), -1);
    out->sent_level = js_f64(js_get(o, "weight_level"), -1);
    out->sent_time = js_f64(js_get(o, "weight_time"), -1);
    return out->weight >= 0 && share(out->sent_level) && out->sent_time >= 0;
}

err gpuload_parse(const char *path, const char *node, const char *text, i64 n, struct gpuload_state *out, struct str *note) {
    struct js *o = NULL;
    *out = (struct gpuload_state){0};
    if (!ours(text) || (i64)strlen(text) != n)
        return FAIL_AT(E821, path, "--state with another file", "this is not a file of gpuload; it was not changed");
    bool good = js_parse(text, (size_t)n, path, &o) >= 0;
    const i64 version = js_i64(js_get(o, "stretto_gpuload"), 0);
    err e = 0;
    good = good && version == VERSION && fill(o, out);
    js_free(o);
    if (!good) {
        if (version != 0 && version != VERSION) str_addf(note, "%s is of another version of stretto: smoothing restarted", path);
        else str_addf(note, "%s is damaged: smoothing restarted", path);
    } else if (strcmp(out->node, node) != 0) {
        e = FAIL_AT(E821, path, "--state with %n in it, which stands for the name of the node",
                    "this file is of node %s, and this is node %s", out->node, node);
    }
    if (good && e >= 0) return 0;
    *out = (struct gpuload_state){0};
    return e;
}

err gpuload_load(const char *path, const char *node, struct gpuload_state *out, struct str *note) {
    char *text = NULL;
    i64 n = 0;
    *out = (struct gpuload_state){0};
    err e = 0;
    if (file_exists(path)) {
        TRY(file_load(path, MOST_BYTES, &text, &n));
        e = gpuload_parse(path, node, text, n, out, note);
        mem_free(text);
    }
    snprintf(out->node, sizeof out->node, "%s", node);
    return e;
}

err gpuload_need(const char *path, const char *node, struct gpuload_state *out) {
    static const char fix[] = "let Slurm run `stretto gpuload` here (docs/gpu-occupancy.md)   or   --state FILE";
    struct str note = {0};
    if (!file_exists(path))
        return FAIL_AT(E701, path, fix, "node %s has no smoothed GPU load: gpuload has not run here, or its --state is elsewhere",
                       node);
    err e = gpuload_load(path, node, out, &note);
    if (e >= 0 && out->n == 0) e = FAIL_AT(E701, path, fix, "%s", str_text(&note));
    str_free(&note);
    return e;
}

err gpuload_save(const char *path, const struct gpuload_state *s) {
    struct str text = {0};
    struct js *o = js_object(), *level = js_array();
    js_put_i64(o, "stretto_gpuload", VERSION);
    js_put_text(o, "node", s->node);
    js_put_text(o, "source", s->source);
    js_put_f64(o, "time", s->time);
    for (i32 i = 0; i < s->n; i++) js_push(level, js_new_f64(s->level[i]));
    js_put(o, "level", level);
    if (s->sent) {
        js_put_i64(o, "weight", s->weight);
        js_put_f64(o, "weight_level", s->sent_level);
        js_put_f64(o, "weight_time", s->sent_time);
    }
    err e = js_text(o, &text, 0);
    js_free(o);
    if (e >= 0) str_add(&text, "\n");
    if (e >= 0) e = file_make_parent(path);
    if (e >= 0) return file_option(file_write_text(path, &text), "--state");
    str_free(&text);
    return e;
}
