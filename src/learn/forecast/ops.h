/* ops.h - the forecaster as a learner and a model: what src/learn/forecast.c puts into its structs, by file. */
#ifndef STRETTO_LEARN_FORECAST_OPS_H
#define STRETTO_LEARN_FORECAST_OPS_H

#include "learn/forecast/forecast.h"
#include "learn/learner.h"

/* job.c: options and data to a fit. */
err forecast_job_resolve(struct learn_job *job);
err forecast_job_prepare(struct learn_job *job);
err forecast_job_ranks(const struct learn_job *job, i32 n);
err forecast_job_folds(struct learn_job *job, i32 n, bool refit_each, i64 *border);

/* predict.c: data as the model needs them, forecasts after the last row. */
err forecast_open(const struct model *m, const struct options *o, const char *path, const struct events *to,
                  struct dataset **out);
err forecast_take(const struct model *m, struct dataset *data, const struct events *to);
err forecast_predict(const struct model *m, const struct dataset *d, const struct resources *use,
                     const struct prediction_sink *to);
/* Forecasts of all targets after the last row: [ntarget].  E301, E302 where the series does not suffice. */
err forecast_ahead(const struct forecaster *f, const struct series *s, const struct resources *use, struct arena *room,
                   struct forecast_sample **out);

/* results.c: scores as a table.  The sums behind it are the detail of struct scores. */
err forecast_results(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
                     struct scores *out);
static inline const struct forecast_scores *forecast_detail(const struct scores *s) { return s ? s->detail : NULL; }

/* describe.c: facts for `info` and the training record. */
err forecast_describe(const struct model *m, struct description *out);

/* page.c: its part of the report, and a forecast as an SVG file. */
err forecast_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a,
                    struct report *r);
err forecast_plot(const struct model *m, const struct dataset *d, const struct resources *use, const struct scores *s,
                  const char *path);

/* onnx/graph.c: the model as a graph; onnx/check.c: its results beside the model's own. */
err forecast_graph(const struct model *m, struct onnx_graph *g, const struct graph_wishes *wish);
err forecast_graph_check(const struct model *m, const struct dataset *d, const struct resources *use, struct ort *run,
                         const struct graph_wishes *wish, struct graph_gap *out);
i32 forecast_graph_rows(const struct forecaster *f);  /* rows of the history that the graph reads, at the most */
i32 forecast_graph_ahead(const struct forecaster *f); /* rows from the origin on that it reads of known inputs and times */

/* file.c */
err forecast_save(const struct model *m, struct tens_list *list, struct str *json);
err forecast_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json,
                  struct model **out);

#endif
