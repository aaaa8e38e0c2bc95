/* ort.c - calls ONNX Runtime without its header: OrtApi is a struct of function pointers in an order that never changes
 * (onnxruntime_c_api.h); the places of those that are used stand below. */
#include "onnx/ort.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"

enum { API_VERSION = 1, WARNINGS_OFF = 4, ARENA = 1, MOST = 16 };

typedef void *status; /* NULL = done */

struct api_base {
    void *const *(*api)(u32 version);
    const char *(*version)(void);
};

/* X(member, place in OrtApi, result, arguments) */
#define ORT_CALLS(X)                                                                                                  \
    X(message, 2, const char *, (const void *))                                                                       \
    X(env, 3, status, (int, const char *, void **))                                                                   \
    X(session, 8, status, (const void *, const void *, size_t, const void *, void **))                                \
    X(run, 9, status,                                                                                                 \
      (void *, const void *, const char *const *, const void *const *, size_t, const char *const *, size_t, void **)) \
    X(options, 10, status, (void **))                                                                                 \
    X(threads, 24, status, (void *, int))                                                                             \
    X(tensor, 49, status, (const void *, void *, size_t, const i64 *, size_t, int, void **))                          \
    X(data, 51, status, (void *, void **))                                                                            \
    X(type, 60, status, (const void *, int *))                                                                        \
    X(count, 64, status, (const void *, size_t *))                                                                    \
    X(shape, 65, status, (const void *, void **))                                                                     \
    X(memory, 69, status, (int, int, void **))                                                                        \
    X(free_env, 92, void, (void *))                                                                                   \
    X(free_status, 93, void, (void *))                                                                                \
    X(free_memory, 94, void, (void *))                                                                                \
    X(free_session, 95, void, (void *))                                                                               \
    X(free_value, 96, void, (void *))                                                                                 \
    X(free_shape, 99, void, (void *))                                                                                 \
    X(free_options, 100, void, (void *))

struct ort {
    void *library;
    char path[512];
    const char *version;
    void *the_env, *the_options, *the_session, *the_memory;
    void *value[MOST]; /* outputs of the last run */
#define X(member, place, result, arguments) result(*member) arguments;
    ORT_CALLS(X)
#undef X
};

/* ------------------------------------------------------------------ the library --------------------------------------------- */

static bool open_at(struct ort *o, const char *path) {
    o->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    snprintf(o->path, sizeof o->path, "%.*s", (int)sizeof o->path - 1, path);
    return o->library != NULL;
}

/* Of several versions the last one. */
static bool open_glob(struct ort *o, const char *root, const char *rest) {
    char pattern[768];
    glob_t found = {0};
    bool done = false;
    if (!root || !*root) return false;
    snprintf(pattern, sizeof pattern, "%.500s%s", root, rest);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = found.gl_pathc; i > 0 && !done; i--) done = open_at(o, found.gl_pathv[i - 1]);
    globfree(&found);
    return done;
}

static bool open_library(struct ort *o) {
    static const char package[] = "/python3*/site-packages/onnxruntime/capi/libonnxruntime.so*";
    static const char debian[] = "/python3*/dist-packages/onnxruntime/capi/libonnxruntime.so*";
    const char *own = getenv("STRETTO_ONNXRUNTIME");
    char lib[600];
    if (own && *own) return strcmp(own, "off") != 0 && open_at(o, own);
    if (open_at(o, "libonnxruntime.so.1") || open_at(o, "libonnxruntime.so")) return true;
    snprintf(lib, sizeof lib, "%.500s/lib", getenv("VIRTUAL_ENV") ? getenv("VIRTUAL_ENV") : "");
    if (open_glob(o, lib[0] == '/' && lib[1] != 'l' ? lib : NULL, package)) return true;
    snprintf(lib, sizeof lib, "%.500s/.local/lib", getenv("HOME") ? getenv("HOME") : "");
    return open_glob(o, lib, package) || open_glob(o, "/usr/local/lib", package) || open_glob(o, "/usr/local/lib", debian) ||
           open_glob(o, "/usr/lib", debian);
}

static bool take_calls(struct ort *o) {
    const struct api_base *(*base)(void);
    if (!library_find(o->library, "OrtGetApiBase", &base, sizeof base)) return false;
    void *const *api = base()->api(API_VERSION);
    o->version = base()->version();
    if (!api) return false;
#define X(member, place, result, arguments) memcpy(&o->member, &api[place], sizeof o->member);
    ORT_CALLS(X)
#undef X
    return true;
}

/* ------------------------------------------------------------------ sessions ------------------------------------------------ */

static err check(const struct ort *o, status s, const char *what) {
    if (!s) return 0;
    const err e = FAIL_AT(E907, o->path, "stretto version   (report it with this message)", "ONNX Runtime %s %s: %s", o->version,
                          what, o->message(s));
    o->free_status(s);
    return e;
}

err ort_open(struct ort **out) {
    struct ort *o;
    const char *own = getenv("STRETTO_ONNXRUNTIME");
    *out = NULL;
    NEW(o, 1);
    bool good = open_library(o) && take_calls(o);
    good = good && check(o, o->env(WARNINGS_OFF, "stretto", &o->the_env), "did not start") >= 0;
    good = good && check(o, o->options(&o->the_options), "did not start") >= 0;
    good = good && check(o, o->memory(ARENA, 0, &o->the_memory), "did not start") >= 0;
    if (good) good = check(o, o->threads(o->the_options, 1), "did not start") >= 0;
    if (!good) {
        err_clear();
        if (o->library) dlclose(o->library);
        mem_free(o);
        if (!own || !*own || strcmp(own, "off") == 0) return 0;
        return FAIL_AT(E701, own, "STRETTO_ONNXRUNTIME=/path/libonnxruntime.so   or   STRETTO_ONNXRUNTIME=off",
                       "this is no ONNX Runtime that can be opened");
    }
    *out = o;
    return 0;
}

static void free_values(struct ort *o) {
    for (i32 i = 0; i < MOST; i++)
        if (o->value[i]) {
            o->free_value(o->value[i]);
            o->value[i] = NULL;
        }
}

void ort_free(struct ort *o) {
    if (!o) return;
    free_values(o);
    if (o->the_session) o->free_session(o->the_session);
    o->free_memory(o->the_memory);
    o->free_options(o->the_options);
    o->free_env(o->the_env);
    mem_free(o); /* the library stays: its threads may outlive dlclose */
}

const char *ort_version(const struct ort *o) { return o->version; }

err ort_load(struct ort *o, const void *model, i64 n) {
    if (o->the_session) o->free_session(o->the_session);
    o->the_session = NULL;
    return check(o, o->session(o->the_env, model, (size_t)n, o->the_options, &o->the_session), "cannot read the graph");
}

static size_t bytes_of(const struct ort_tensor *t) {
    size_t n = t->type == ONNX_DOUBLE || t->type == ONNX_INT64 ? 8 : t->type == ONNX_BOOL ? 1 : 4;
    for (i32 i = 0; i < t->ndim; i++) n *= (size_t)t->dim[i];
    return n;
}

/* Where the values of an output are, if they are of the type that the caller expects. */
static err take_output(struct ort *o, i32 i, struct ort_tensor *t) {
    void *shape = NULL;
    size_t count = 0;
    int type = 0;
    TRY(check(o, o->shape(o->value[i], &shape), "has an output without a shape"));
    err e = check(o, o->count(shape, &count), "has an output without a shape");
    if (e >= 0) e = check(o, o->type(shape, &type), "has an output without a type");
    o->free_shape(shape);
    if (e >= 0 && type != (int)t->type) e = FAIL_AT(E907, t->name, NULL, "the output has type %d, not %d", type, (int)t->type);
    if (e >= 0) e = check(o, o->data(o->value[i], &t->data), "has an output without values");
    t->count = (i64)count;
    return e;
}

err ort_run(struct ort *o, i32 nin, const struct ort_tensor *in, i32 nout, struct ort_tensor *out) {
    const char *in_name[MOST], *out_name[MOST];
    void *value[MOST] = {0};
    err e = nin > MOST || nout > MOST ? FAIL(E1, "%d inputs and %d outputs of a graph", nin, nout) : 0;
    free_values(o);
    for (i32 i = 0; i < nin && e >= 0; i++) {
        in_name[i] = in[i].name;
        e = check(
            o, o->tensor(o->the_memory, in[i].data, bytes_of(&in[i]), in[i].dim, (size_t)in[i].ndim, (int)in[i].type, &value[i]),
            "refused an input");
    }
    for (i32 i = 0; i < nout && e >= 0; i++) out_name[i] = out[i].name;
    if (e >= 0)
        e = check(
            o, o->run(o->the_session, NULL, in_name, (const void *const *)value, (size_t)nin, out_name, (size_t)nout, o->value),
            "cannot run the graph");
    for (i32 i = 0; i < nin && i < MOST; i++)
        if (value[i]) o->free_value(value[i]);
    for (i32 i = 0; i < nout && e >= 0; i++) e = take_output(o, i, &out[i]);
    return e;
}

err ort_need(const struct ort_tensor *out, i64 count) {
    if (out->count == count) return 0;
    return FAIL_AT(E907, out->name, NULL, "the graph gives %lld numbers for %lld", (long long)out->count, (long long)count);
}
