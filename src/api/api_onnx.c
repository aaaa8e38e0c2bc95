/* api_onnx.c - models as ONNX files: export, and the file beside the model in ONNX Runtime. */
#include <math.h>

#include "api/api.h"
#include "base/file.h"
#include "onnx/ort.h"

enum { ONNX_BYTES_MOST = INT32_MAX };
#define GAP_MOST 1e-4 /* in deviations of the column: rounding stays a hundred times below it */
#define GAP_BF16 1e-1 /* the graph multiplies in fp32 what the model multiplies in bf16 */

stretto_err stretto_model_export_onnx(stretto_model *self, const char *path, int mean_only) {
    const struct model_ops *ops = self->m->learner->ops;
    struct onnx_graph g = {0};
    struct str text = {0};
    if (!ops->graph)
        return FAIL_AT(E904, self->path, "a model of --task forecast", "models of --task %s have no ONNX graph",
                       self->m->learner->name);
    err e = ops->graph(self->m, &g, &(struct graph_wishes){.mean_only = mean_only != 0});
    if (e >= 0) e = onnx_graph_text(&g, self->path, &text);
    if (e >= 0) e = file_write_all(path, str_text(&text), (i64)text.len);
    str_free(&text);
    onnx_graph_free(&g);
    return e;
}

static err compare(stretto_model *m, stretto_data *data, struct ort *run, const struct graph_wishes *wish,
                   struct graph_gap *gap) {
    const struct learner *l = m->m->learner;
    struct run_context ctx;
    struct events events = {0};
    if (!l->ops->graph_check) return FAIL_AT(E904, m->path, NULL, "models of --task %s have no ONNX graph", l->name);
    TRY(l->ops->take ? l->ops->take(m->m, data->set, &events) : 0);
    TRY(run_context_open(&m->config.o, &events, NULL, false, &ctx));
    const err e = l->ops->graph_check(m->m, data->set, &ctx.use, run, wish, gap);
    run_context_close(&ctx);
    return e;
}

static err judge(const stretto_model *m, const char *path, const struct graph_gap *gap) {
    const bool bf16 = m->config.o.precision && m->config.o.precision[0] == 'b';
    if (gap->worst <= (bf16 ? GAP_BF16 : GAP_MOST)) return 0;
    return FAIL_AT(E907, path, "stretto version   (report it with this message)",
                   "the graph differs from the model by up to %.2g deviations over %lld windows", gap->worst,
                   (long long)gap->windows);
}

static void say(const struct ort *run, const struct graph_gap *gap, struct str *out) {
    if (!run)
        str_add(out, "no ONNX Runtime found: not checked");
    else if (gap->cells == 0)
        str_addf(out, "ONNX Runtime %s reads it", ort_version(run));
    else
        str_addf(out, "ONNX Runtime %s: largest difference %.2g deviations in %lld numbers of %lld windows", ort_version(run),
                 gap->worst, (long long)gap->cells, (long long)gap->windows);
}

stretto_err stretto_model_check_onnx(stretto_model *self, stretto_data *data, const char *path, int mean_only, double *worst,
                                     char **out) {
    const struct graph_wishes wish = {.mean_only = mean_only != 0};
    struct graph_gap gap = {0};
    struct ort *run = NULL;
    struct str text = {0};
    char *bytes = NULL;
    i64 size = 0;
    if (out) *out = NULL;
    err e = file_load(path, ONNX_BYTES_MOST, &bytes, &size);
    if (e >= 0) e = ort_open(&run);
    if (e >= 0 && !run && data)
        e = FAIL_AT(E907, path,
                    "pip install onnxruntime   in $VIRTUAL_ENV   or   STRETTO_ONNXRUNTIME=/path/libonnxruntime.so",
                    "it is written, but there is no ONNX Runtime here to check it with");
    if (e >= 0 && run) e = ort_load(run, bytes, size);
    if (e >= 0 && run && data) e = compare(self, data, run, &wish, &gap);
    if (e >= 0) say(run, &gap, &text);
    if (e >= 0) e = judge(self, path, &gap);
    if (worst) *worst = gap.cells > 0 ? gap.worst : (f64)NAN;
    ort_free(run);
    mem_free(bytes);
    if (out) return text_end(e, &text, out);
    str_free(&text);
    return e;
}
