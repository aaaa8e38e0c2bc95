/* api_import.c - ONNX files as models of the kind `network`, and such a network on arrays. */
#include "api/api.h"
#include "api/lists.h"
#include "base/clock.h"
#include "base/file.h"
#include "learn/kernels.h"
#include "learn/network/graph.h"

enum { ONNX_BYTES_MOST = INT32_MAX };

static err write_record(const struct network *w, struct str *out) {
    struct js *o = js_object();
    char date[32];
    clock_date(date);
    js_put_text(o, "created", date);
    js_put_text(o, "version", STRETTO_VERSION);
    js_put_text(o, "source", w->source);
    const err e = js_text(o, out, 0);
    js_free(o);
    return e;
}

/* A handle with the options of a network. */
static err handle(struct network *w, const char *path, stretto_model **out) {
    static const struct opt_from from = {.rank = OPT_RANK_FILE, .origin = "imported"};
    stretto_model *m;
    NEW(m, 1);
    err e = opt_defaults(&m->config.o, api_lists());
    if (e >= 0) e = opt_set_id(&m->config.o, OPT_task, "network", &from);
    if (e >= 0) e = write_record(w, &m->record);
    if (e >= 0 && !(m->path = mem_strdup(path))) e = -E601;
    if (e < 0) {
        stretto_model_free(m);
        return e;
    }
    w->model.learner = learner_find("network");
    m->m = &w->model;
    *out = m;
    return 0;
}

static err test(const struct network *w, const struct network_io *io, const char *folder, struct str *said) {
    const struct kern *k;
    u32 how;
    f64 worst;
    struct options o;
    TRY(opt_defaults(&o, api_lists()));
    err e = pick_kernel(&o, &k, &how);
    opt_free(&o);
    if (e >= 0) e = network_test_run(w, io, folder, k, &worst);
    TRY(e);
    if (!(worst <= 1))
        return FAIL_AT(E907, folder, "stretto version   (report it with this message)",
                       "the network differs from the test data by %.2g times the tolerance (relative 1e-3, absolute 1e-7)",
                       worst);
    str_addf(said, "test data: largest difference %.2g of the tolerance (relative 1e-3, absolute 1e-7)", worst);
    return 0;
}

static err import(const char *path, const char *folder, struct onnx_file *f, struct str *said, stretto_model **out) {
    struct arena room = {0};
    struct network *w = NULL;
    struct network_io io;
    err e = folder ? network_test_bind(f, folder, &room) : 0;
    if (e >= 0) e = network_import(f, path, &w, &io);
    if (e >= 0 && folder) e = test(w, &io, folder, said);
    if (e >= 0) e = handle(w, path, out);
    if (e < 0 && w) network_free(&w->model);
    arena_free(&room);
    return e;
}

stretto_err stretto_import_onnx(const char *path, const char *test_folder, stretto_model **out, char **report) {
    struct onnx_file *f = NULL;
    struct str said = {0};
    char *bytes = NULL;
    i64 size = 0;
    *out = NULL;
    if (report) *report = NULL;
    err e = file_load(path, ONNX_BYTES_MOST, &bytes, &size);
    if (e >= 0) e = onnx_read(bytes, size, path, &f);
    if (e >= 0) e = import(path, test_folder, f, &said, out);
    onnx_file_free(f);
    mem_free(bytes);
    if (e >= 0 && report) return text_end(e, &said, report);
    str_free(&said);
    return e;
}

static err need_network(const stretto_model *m, const struct network **out) {
    *out = network_of(m->m);
    return m->m->learner == learner_find("network")
               ? 0
               : FAIL_AT(E106, m->path, "stretto_predict", "a model of --task %s is no network", m->m->learner->name);
}

stretto_err stretto_network_shape(const stretto_model *self, int *inputs, int *outputs, int *every_step) {
    const struct network *w;
    TRY(need_network(self, &w));
    if (inputs) *inputs = w->I;
    if (outputs) *outputs = w->O;
    if (every_step) *every_step = w->reads == READS_STEPS;
    return 0;
}

stretto_err stretto_network_run(const stretto_model *self, const float *x, int steps, int batch, float *y) {
    const struct network *w;
    const struct kern *k;
    u32 how;
    TRY(need_network(self, &w));
    TRY(pick_kernel(&self->config.o, &k, &how));
    if (steps < 1 || batch < 1 || steps > NETWORK_STEPS || batch > NETWORK_STEPS)
        return FAIL_AT(E103, "steps", "1 to 1048576", "%d steps of %d sequences", steps, batch);
    return network_run(w, k, steps, batch, x, y);
}
