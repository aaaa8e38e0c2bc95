/* stretto.h - the public face of Stretto: forecasters of time series, trained in parallel, honestly evaluated.
 *
 *     stretto_config *c = stretto_config_new();                       every option of `stretto help`, as text
 *     stretto_config_set(c, "horizon", "12");
 *     stretto_data *d;       stretto_data_open(c, "air.csv", &d);
 *     stretto_trainer *t;    stretto_trainer_new(c, d, &t);
 *     stretto_trainer_run(t);                                         > 0: why it stopped; < 0: stretto_errmsg()
 *     stretto_trainer_save(t, "air.model");
 *
 * Conventions.  Functions return stretto_err: 0 = done, < 0 = failed (stretto_errmsg, stretto_errfix, stretto_errwhere tell
 * this thread what, how to mend it, and where), > 0 = why it stopped.  Handles come from _new or _open and go with _free;
 * _free(NULL) is fine; a handle that could not be made is NULL.  Texts that a function returns belong to the handle and stay
 * until the next call on it; texts through `char **out` are yours: free them with stretto_text_free.  One caller at a time per
 * handle, unless said otherwise; different handles on different threads are fine.  The library never prints and never exits.
 * Every knob is an option by name, so new knobs never change this ABI. */
#ifndef STRETTO_H
#define STRETTO_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define STRETTO_API __attribute__((visibility("default")))
#else
#define STRETTO_API
#endif

#define STRETTO_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

typedef int stretto_err;

/* Why a run stopped (> 0). */
enum { STRETTO_STOP_STEPS = 1, STRETTO_STOP_PLATEAU = 2, STRETTO_STOP_SIGNAL = 3, STRETTO_STOP_TIME = 4 };

typedef struct stretto_config stretto_config;
typedef struct stretto_data stretto_data;
typedef struct stretto_trainer stretto_trainer;
typedef struct stretto_model stretto_model;
typedef struct stretto_plan stretto_plan;

/* --- 1 version --- */
STRETTO_API const char *stretto_version(void);                 /* "0.1.0" */
STRETTO_API int stretto_abi(void);                             /* rises when a function changes; 1 now */
STRETTO_API stretto_err stretto_build_info(char **json_out);   /* version, compiler, instruction sets, libraries */

/* --- 2 errors (of the calling thread) --- */
STRETTO_API int stretto_errcode(void);                         /* 204 for E204; 0 = none */
STRETTO_API const char *stretto_errmsg(void);                  /* what was found */
STRETTO_API const char *stretto_errwhere(void);                /* "file:line:field" or "" */
STRETTO_API const char *stretto_errfix(void);                  /* one remedy a line, or "" */
/* Number of this process among those that a launcher (mpirun, srun) started; 0 when it is alone.  All of them run the same
 * program; trainers of others than 0 take part in the training, emit no events and write no files but
 * the record of their status in the run folder. */
STRETTO_API int stretto_rank(void);
STRETTO_API int stretto_ranks(void);                           /* how many a launcher started; 1 = this one is alone */
STRETTO_API int stretto_exit_status(stretto_err e);            /* exit code of the command line for this result */
STRETTO_API const char *stretto_stop_text(stretto_err reason); /* "all steps done" */
STRETTO_API void stretto_text_free(char *text);                /* texts that were given through char ** */

/* --- 3 options --- */
STRETTO_API stretto_config *stretto_config_new(void);          /* all defaults; NULL = no memory */
STRETTO_API void stretto_config_free(stretto_config *self);
/* Set by name ("horizon", "target", ...); value as on the command line.  E101 unknown, E103 wrong value. */
STRETTO_API stretto_err stretto_config_set(stretto_config *self, const char *name, const char *value);
/* The same, with the rank and origin of a command-line flag (a call outranks a flag, a flag a file). */
STRETTO_API stretto_err stretto_config_flag(stretto_config *self, const char *name, const char *value);
STRETTO_API stretto_err stretto_config_load(stretto_config *self, const char *path);   /* YAML or JSON; E104, E701 */
STRETTO_API const char *stretto_config_get(stretto_config *self, const char *name);    /* value as text; NULL = no such option */
STRETTO_API stretto_err stretto_config_print(stretto_config *self, char **yaml_out);   /* loads again; origins as comments */
/* What a training refuses whatever the data are: options that do not go together, kernels this processor lacks, a plan file that
 * is none.  For those who would rather hear it before a large file is read. */
STRETTO_API stretto_err stretto_config_check(stretto_config *self);
STRETTO_API int stretto_option_count(void); /* of option numbers below */
/* Name and one-line help of option i; 0 or E103 when i is out of range. */
STRETTO_API stretto_err stretto_option(int i, const char **name, const char **default_value, const char **help);

/* --- 4 data --- */
/* Read a table (CSV, TSV, .gz, .zst or a cache file) and take the columns the config names.  E1xx, E2xx, E7xx. */
STRETTO_API stretto_err stretto_data_open(stretto_config *config, const char *path, stretto_data **out);
/* Wrap columns from memory: values [ncol][nrow] f64, one column after the other, copied; NaN = missing; names [ncol].  All
 * columns are targets. step_seconds: time between rows, 0 = rows have no time. */
STRETTO_API stretto_err stretto_data_wrap(stretto_config *config, const double *values, int64_t nrow, int ncol,
                                          const char *const *names, int64_t first_time, int64_t step_seconds,
                                          stretto_data **out);
STRETTO_API void stretto_data_free(stretto_data *self); /* after the trainers that use it */
STRETTO_API int64_t stretto_data_rows(const stretto_data *self); /* rows that --gaps put in count too */
STRETTO_API int stretto_data_columns(const stretto_data *self);                        /* targets first */
STRETTO_API int stretto_data_targets(const stretto_data *self); /* columns to forecast */
STRETTO_API const char *stretto_data_column(const stretto_data *self, int i);          /* NULL = out of range */
STRETTO_API double stretto_data_value(const stretto_data *self, int column, int64_t row); /* original units; NaN = missing */
STRETTO_API const char *stretto_data_summary(stretto_data *self);                      /* one line for people */
/* List what is wrong or odd with a file: errors, leaks, constant runs; text for people or JSON.  Returns the first error's
 * code. */
STRETTO_API stretto_err stretto_check(stretto_config *config, const char *path, int json, char **out, char **proposed_config);
/* The same of a file that is only looked at: a target that is not named is no problem. */
STRETTO_API stretto_err stretto_data_info(stretto_config *config, const char *path, int json, char **out);
STRETTO_API stretto_err stretto_cache(stretto_config *config, const char *path,
                                      const char *out_path); /* parsed copy, memory-mapped when read */
STRETTO_API stretto_err stretto_sample(const char *name, int64_t rows, uint64_t seed, char **csv_out); /* data from formulas */
STRETTO_API const char *stretto_samples(void);                                         /* names and one-line texts */

/* --- 5 training --- */
typedef struct stretto_event {
    int kind;                    /* 0 note, 1 warning, 2 begin, 3 step, 4 validation, 5 saved, 6 end, 7 other work */
    const char *text;            /* notes and warnings, what work; may be NULL */
    int64_t step, steps;
    int member, members;
    double epoch, seconds, left; /* left: estimated seconds, < 0 = unknown */
    double train, valid;         /* losses; NaN = not measured now */
    double lr, grad_norm, windows_per_s;
    int best;
    int64_t best_step;           /* of begin: where `valid` was measured, in the run that is resumed */
    int slices;                  /* windows are cut into so many slices of time; 0 = they are not, the rest says nothing */
    double rounds, forgets, useful; /* mean rounds forward, steps after which the model forgets, share that was no repetition */
} stretto_event;
typedef void stretto_event_fn(void *user, const stretto_event *event);

/* Data is borrowed until the trainer is freed, and scaled by the rows that this trainer learns from.  Resolves every `auto` of
 * the config. */
STRETTO_API stretto_err stretto_trainer_new(stretto_config *config, stretto_data *data, stretto_trainer **out);
/* Every option with every `auto` answered for this data, and where each value came from: YAML that loads again.  Trains
 * nothing. */
STRETTO_API stretto_err stretto_trainer_config(stretto_trainer *self, char **yaml_out);
STRETTO_API void stretto_trainer_on_event(stretto_trainer *self, stretto_event_fn *fn, void *user); /* told as it happens */
/* Keep checkpoints, config.json, metrics.jsonl and report.html in this folder (created; E704 when another run writes there). */
STRETTO_API stretto_err stretto_trainer_run_dir(stretto_trainer *self, const char *path, int resume);
/* The data and model paths of a run folder, to resume it; its options are in config.json (stretto_config_load).  E701, E705. */
STRETTO_API stretto_err stretto_run_paths(const char *run_dir, char **data_path, char **model_path);
/* Where the model will be written: remembered in the run folder and the report.  Call before run_dir. */
STRETTO_API stretto_err stretto_trainer_target(stretto_trainer *self, const char *model_path);
/* Fit and score.  Returns 0 or a stop reason; STRETTO_STOP_SIGNAL: a checkpoint is in the run folder, there is no model yet. */
STRETTO_API stretto_err stretto_trainer_run(stretto_trainer *self);
STRETTO_API void stretto_trainer_stop(stretto_trainer *self);      /* from any thread or a signal handler: stop after this step */
STRETTO_API const char *stretto_trainer_scores(stretto_trainer *self, int json); /* table of test scores beside the naive rows */
STRETTO_API double stretto_trainer_skill(const stretto_trainer *self); /* against the best naive row; NaN = no test part */
STRETTO_API stretto_err stretto_trainer_save(stretto_trainer *self, const char *path); /* the model; ends its run folder */
STRETTO_API stretto_err stretto_trainer_report(stretto_trainer *self, const char *html_path); /* the page of a run */
STRETTO_API stretto_err stretto_trainer_plot(stretto_trainer *self, const char *svg_path); /* a forecast beside what came */
STRETTO_API stretto_err stretto_trainer_trace(stretto_trainer *self, const char *json_path); /* threads, for chrome://tracing */
STRETTO_API stretto_model *stretto_trainer_model(stretto_trainer *self); /* borrowed; NULL before run */
STRETTO_API void stretto_trainer_free(stretto_trainer *self); /* and its model */

/* Rolling origins: `folds` parts of the test rows, one after another, with option refit never or each.  Text table or JSON. */
STRETTO_API stretto_err stretto_backtest(stretto_config *config, stretto_data *data, stretto_event_fn *fn, void *user, int json,
                                         char **out);

/* --- 6 models --- */
STRETTO_API stretto_err stretto_model_load(const char *path, stretto_model **out);  /* E701, E901, E902 */
STRETTO_API stretto_err stretto_model_save(const stretto_model *self,
                                           const char *path); /* replaced whole or not at all; E702, E703 */
STRETTO_API void stretto_model_free(stretto_model *self);
STRETTO_API int stretto_model_horizon(const stretto_model *self);                   /* steps forecast */
STRETTO_API int stretto_model_context(const stretto_model *self);                   /* rows looked back on */
STRETTO_API int stretto_model_targets(const stretto_model *self);                   /* columns forecast */
STRETTO_API const char *stretto_model_target(const stretto_model *self, int i);     /* name; NULL = out of range */
STRETTO_API int stretto_model_quantiles(const stretto_model *self);                 /* count; 0 = point forecasts only */
STRETTO_API double stretto_model_quantile(const stretto_model *self, int i);         /* in (0,1); NaN = out of range */
STRETTO_API int64_t stretto_model_parameters(const stretto_model *self);            /* weights of one member, without padding */
/* Schema, layers, training record and every option with its origin; indented text, or JSON. */
STRETTO_API stretto_err stretto_model_info(const stretto_model *self, int json, char **out);
STRETTO_API stretto_config *stretto_model_config(stretto_model *self); /* borrowed: the options it was trained with */

/* --- 7 forecasts --- */
/* Read a file with the model's own schema (no column flags needed).  E903 when it does not fit. */
STRETTO_API stretto_err stretto_model_open(stretto_model *self, const char *path, stretto_data **out);
/* After the last row: mean [horizon][targets], quantiles [horizon][targets][nq] or NULL; original units.  Data that were opened
 * or wrapped without the model take its scale first, and keep it; E903 when they do not fit, or have the scale of another
 * training. */
STRETTO_API stretto_err stretto_predict(stretto_model *self, stretto_data *data, double *mean, double *quantiles);
/* The same into a CSV file, long (id,origin,time,step,mean,q..) or wide; "-" gives the text through out instead. */
STRETTO_API stretto_err stretto_predict_file(stretto_model *self, stretto_data *data, const char *path, int wide, char **out);
/* Scores on the rows of data that the model has not seen, or on all when it has seen them; config (may be NULL): options stride,
 * score-scale and score-steps.  Text table or JSON. */
STRETTO_API stretto_err stretto_eval(stretto_model *self, stretto_data *data, stretto_config *config, int json, char **out,
                                     double *skill);
STRETTO_API stretto_err stretto_model_plot(stretto_model *self, stretto_data *data,
                                           const char *svg_path); /* forecast after the last row */
/* What the last forecast or evaluation had to do differently from the training, in a sentence; "" = nothing.  Borrowed. */
STRETTO_API const char *stretto_model_note(const stretto_model *self);
/* What is doubtful in the data that were opened for the model last, one a line: categories that training has not seen, numbers
 * that can be read in two ways; "" = nothing.  Borrowed. */
STRETTO_API const char *stretto_model_warnings(const stretto_model *self);

/* --- 8 machine and plan --- */
STRETTO_API stretto_err stretto_machine_info(int json, char **out);                 /* this host, as text that --machine reads */
/* The parallel plan of one training step; data NULL = shapes from options columns, horizon, context alone. */
STRETTO_API stretto_err stretto_plan_new(stretto_config *config, stretto_data *data, stretto_plan **out);
STRETTO_API stretto_err stretto_plan_print(const stretto_plan *self, char **out); /* task by task */
STRETTO_API stretto_err stretto_plan_summary(const stretto_plan *self, int json, char **out); /* cost, bytes, exactness */
STRETTO_API stretto_err stretto_plan_compare(const stretto_plan *self, char **out); /* with every other strategy */
STRETTO_API stretto_err stretto_plan_draw(const stretto_plan *self, int svg, char **out); /* devices against time */
STRETTO_API stretto_err stretto_plan_save(const stretto_plan *self, const char *path); /* for option plan */
STRETTO_API void stretto_plan_free(stretto_plan *self);
/* Training speed of the configured network by width, batch and threads.  Text table or JSON. */
STRETTO_API stretto_err stretto_bench(stretto_config *config, int json, char **out);

/* What stops or slows a run on this host, or on every host of the launcher that started us; lines for people, or JSON.  E1101
 * when something stops it; *out is filled all the same ("" on other ranks than 0).  Options ranks, threads and run-dir count. */
STRETTO_API stretto_err stretto_doctor(stretto_config *config, int json, char **out);

/* How busy this node's GPUs are: smooths it, keeps it in the file of option state, and sets the node's weight in Slurm when it
 * moved; lines for people, or JSON.  With shares=yes only prints what is free, of this node or of all ranks' nodes, as a text for
 * option machine ("" on other ranks than 0).  E820 where there is no GPU and nothing recorded, E805 when Slurm refuses. */
STRETTO_API stretto_err stretto_gpuload(stretto_config *config, int json, char **out);

#ifdef __cplusplus
}
#endif
#endif
