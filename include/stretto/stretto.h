/* stretto.h - the public interface of Stretto: train, evaluate and apply recurrent forecasters of time series.
 *
 *     stretto_config *c = stretto_config_new();                       all options of `stretto help options`, as text
 *     stretto_config_set(c, "horizon", "12");
 *     stretto_data *d;       stretto_data_open(c, "air.csv", &d);
 *     stretto_trainer *t;    stretto_trainer_new(c, d, &t);
 *     stretto_trainer_run(t);                                         > 0: why it stopped; < 0: see stretto_errmsg()
 *     stretto_trainer_save(t, "air.model");
 *
 * Errors.     A function that can fail returns stretto_err: 0 = done, < 0 = the negative error code (-204 for E204).
 *             stretto_errcode, _errmsg, _errwhere and _errfix describe the last error of the calling thread.  Every function
 *             may also fail with E601 (out of memory).  The library never prints and never exits.
 * Ownership.  The caller frees a handle from a _new, _open, _load or _wrap function with the _free function of its type;
 *             _free(NULL) does nothing.  On failure the handle is NULL.  A returned `const char *` belongs to the handle and
 *             is valid until the next call on it.  The caller frees a text stored through `char **out`: stretto_text_free.
 * Threads.    One thread at a time uses a handle; different threads may use different handles.  Exceptions are noted.
 * Units.      Values, forecasts and scores are in the units of the data file.  Arrays are row-major: element (i, j) of
 *             [a][b] is at i * b + j.  Texts and paths are UTF-8.
 * ABI.        Options are set by name, so a new option does not change this interface. */
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

typedef int stretto_err; /* 0 done, < 0 failed: -204 is E204, > 0 why a run stopped */

/* Why a training run stopped: positive return values of stretto_trainer_run. */
enum {
    STRETTO_STOP_STEPS = 1,   /* all steps done */
    STRETTO_STOP_PLATEAU = 2, /* early stopping (option patience) */
    STRETTO_STOP_SIGNAL = 3,  /* stretto_trainer_stop or a signal; a checkpoint is written, there is no model yet */
    STRETTO_STOP_TIME = 4     /* option time-limit */
};

typedef struct stretto_config stretto_config;
typedef struct stretto_data stretto_data;
typedef struct stretto_trainer stretto_trainer;
typedef struct stretto_model stretto_model;
typedef struct stretto_plan stretto_plan;
typedef struct stretto_frame stretto_frame;

/* The structs of the Arrow C data and stream interface, as their specification declares them. */
struct ArrowArrayStream;
struct ArrowArray;
struct ArrowSchema;

/* --- 1 version --- */
STRETTO_API const char *stretto_version(void); /* version, as "0.1.0"; static text */
STRETTO_API int stretto_abi(void);             /* version of the ABI; incremented when a function changes */
/* Version, compiler and instruction sets as a JSON object. */
STRETTO_API stretto_err stretto_build_info(char **json_out);

/* --- 2 errors (of the calling thread) --- */
STRETTO_API int stretto_errcode(void);          /* code of the last error: 204 for E204; 0 = none */
STRETTO_API const char *stretto_errmsg(void);   /* message of the last error; valid until the next error of this thread */
STRETTO_API const char *stretto_errwhere(void); /* place of the last error, as "file:line:field" or "--option"; "" = none */
STRETTO_API const char *stretto_errfix(void);   /* suggested fixes, one per line; "" = none */
/* Rank of this process among the processes that a launcher (mpirun, srun) started; 0 without a launcher.  All ranks run the
 * same program.  Ranks other than 0 take part in the training; they emit no events and write no files except their status
 * record. */
STRETTO_API int stretto_rank(void);
STRETTO_API int stretto_ranks(void); /* number of processes that the launcher started; 1 without a launcher */
STRETTO_API int stretto_exit_status(stretto_err e);            /* exit status of the program `stretto` for this result */
STRETTO_API const char *stretto_stop_text(stretto_err reason); /* a STRETTO_STOP reason in words; static text */
STRETTO_API void stretto_text_free(char *text);                /* free a text from a char **; NULL is allowed */

/* --- 3 options --- */
STRETTO_API stretto_config *stretto_config_new(void); /* all options at their defaults; NULL = out of memory */
STRETTO_API void stretto_config_free(stretto_config *self);
/* Set an option by name ("horizon", "target", ..) to a value as on the command line.  E101: no such option.  E103: invalid
 * value. */
STRETTO_API stretto_err stretto_config_set(stretto_config *self, const char *name, const char *value);
/* Like stretto_config_set, with the precedence of a command-line flag: stretto_config_set overrides a flag, a flag overrides a
 * file. */
STRETTO_API stretto_err stretto_config_flag(stretto_config *self, const char *name, const char *value);
/* Read options from a YAML or JSON file.  E101, E103, E104: what is wrong and in which line.  E701: cannot read the file. */
STRETTO_API stretto_err stretto_config_load(stretto_config *self, const char *path);
STRETTO_API const char *stretto_config_get(stretto_config *self, const char *name); /* value as text; NULL = no such option */
/* All options of `train` as YAML that can be loaded again, with the origin of each value as a comment. */
STRETTO_API stretto_err stretto_config_print(stretto_config *self, char **yaml_out);
/* Check what does not depend on data: conflicting options (E106), kernels that this processor lacks (E103), an invalid plan
 * file (E402).  Lets a program fail before it reads a large file. */
STRETTO_API stretto_err stretto_config_check(stretto_config *self);
/* Join the MPI job that started this process now, not with the first trainer: data that are opened next are read once on each
 * host, and its ranks map the same memory.  Every rank calls this, then stretto_data_open, then stretto_trainer_new, all with
 * this config.  No effect without a launcher.  E803: cannot join.  An error of stretto_data_open is then that of all ranks. */
STRETTO_API stretto_err stretto_config_join(stretto_config *self);
STRETTO_API int stretto_option_count(void); /* number of options; valid indices of stretto_option are 0 .. count - 1 */
/* Name, default and one-line help of option i; static texts.  E103: i is out of range. */
STRETTO_API stretto_err stretto_option(int i, const char **name, const char **default_value, const char **help);

/* --- 4 data --- */
/* Read a table (CSV, TSV, JSON lines, .gz, .zst, Arrow IPC, Parquet, or a cache file; a folder of such files is one table, "-"
 * is standard input) and select the columns that the config names.  The config is copied.  E1xx: options; E2xx: contents of the
 * file; E7xx: access to it. */
STRETTO_API stretto_err stretto_data_open(stretto_config *config, const char *path, stretto_data **out);
/* Make a series from memory: values [ncol][nrow], NaN = missing, names [ncol]; both are copied.  All columns are targets unless
 * option target names some.  first_time: seconds since 1970 UTC; step_seconds: sampling interval, 0 = no time column. */
STRETTO_API stretto_err stretto_data_wrap(stretto_config *config, const double *values, int64_t nrow, int ncol,
                                          const char *const *names, int64_t first_time, int64_t step_seconds,
                                          stretto_data **out);
/* A table in memory, in the Arrow C stream interface (a stream of structs of columns; arrow.apache.org).  The stream is released,
 * also on failure.  label: what messages call the table ("data frame").  Columns of f64 without a bitmap of missing cells, in
 * one batch, are read where they lie: the memory of the producer must not change until the frame and all data from it are freed.
 * E202, E214: columns of types that cannot be read. */
STRETTO_API stretto_err stretto_frame_new(struct ArrowArrayStream *stream, const char *label, stretto_frame **out);
/* Stands for the path of a data file in stretto_data_open, stretto_model_open, stretto_check, stretto_data_info, stretto_cache,
 * any number of times and from any thread.  Valid until stretto_frame_free. */
STRETTO_API const char *stretto_frame_path(const stretto_frame *self);
STRETTO_API void stretto_frame_free(stretto_frame *self); /* data that were opened from it stay valid */
STRETTO_API void stretto_data_free(stretto_data *self); /* free it after all trainers that use it */
STRETTO_API int64_t stretto_data_rows(const stretto_data *self); /* number of records, including those inserted by option gaps */
STRETTO_API int stretto_data_columns(const stretto_data *self);  /* number of columns with a role; targets come first */
STRETTO_API int stretto_data_targets(const stretto_data *self);  /* number of target columns */
STRETTO_API const char *stretto_data_column(const stretto_data *self, int i); /* name of column i; NULL = out of range */
/* Value of a cell in original units; NaN = missing or out of range. */
STRETTO_API double stretto_data_value(const stretto_data *self, int column, int64_t row);
STRETTO_API const char *stretto_data_summary(stretto_data *self); /* one line: columns, records, frequency, time range */
/* List all problems of a file (errors, what a training would refuse, leaks, constant runs) as text or, if json != 0, as JSON.
 * *proposed_config (may be NULL) receives a config as YAML that applies the first remedy of each error; NULL if no option is a
 * remedy.  A missing option target is guessed, with a warning.  Option importance ranks the columns by a random forest.  With
 * another task than forecast: the problems of that learner's data, and no config.  Returns the code of the first error; *out is
 * filled in that case, too. */
STRETTO_API stretto_err stretto_check(stretto_config *config, const char *path, int json, char **out, char **proposed_config);
/* Like stretto_check, but a guessed target is no warning. */
STRETTO_API stretto_err stretto_data_info(stretto_config *config, const char *path, int json, char **out);
/* Write a parsed binary copy of a data file, which is memory-mapped when it is read.  E702, E703: cannot write. */
STRETTO_API stretto_err stretto_cache(stretto_config *config, const char *path, const char *out_path);
/* A synthetic series as CSV text; rows 0 = the usual number of records.  E103: no such sample (see stretto_samples). */
STRETTO_API stretto_err stretto_sample(const char *name, int64_t rows, uint64_t seed, char **csv_out);
STRETTO_API const char *stretto_samples(void); /* names and descriptions of the samples, one per line; static text */

/* --- 5 training --- */
typedef struct stretto_event {
    int kind;                    /* 0 note, 1 warning, 2 begin, 3 step, 4 validation, 5 saved, 6 end, 7 other work,
                                  * 8 detail: a note on plans, kernels and messages */
    const char *text;            /* of notes, details, warnings, ends, other work; valid during the call; may be NULL */
    int64_t step, steps;         /* training step, and planned number of steps */
    int member, members;         /* ensemble member from 0, and ensemble size; an end with fewer: no further one is trained */
    double epoch, seconds, left; /* epochs done; seconds since the start; estimated seconds left, < 0 = unknown */
    double train, valid;         /* training and validation loss; NaN = not measured at this step */
    double lr, grad_norm, windows_per_s;
    int best;                    /* of a validation: 1 = the best so far */
    int64_t best_step;           /* of begin in a resumed run: the step at which `valid` was measured */
    int slices;                  /* number of time slices; 0 = none, and the fields below have no meaning */
    double rounds, forgets, useful; /* mean rounds forward, forget window in steps, share of steps that were not repeated */
} stretto_event;
/* Receives the events of a run, on the thread that calls stretto_trainer_run.  It may call stretto_trainer_stop and no other
 * function of that trainer. */
typedef void stretto_event_fn(void *user, const stretto_event *event);

/* Prepare a training run.  The config is copied.  The data are borrowed until the trainer is freed; they are scaled by the
 * training split.  Resolves every option whose value is auto.  E106, E3xx: options do not fit the data. */
STRETTO_API stretto_err stretto_trainer_new(stretto_config *config, stretto_data *data, stretto_trainer **out);
/* All options with every auto resolved for these data, and the origin of each value, as YAML that can be loaded again.  Does
 * not train. */
STRETTO_API stretto_err stretto_trainer_config(stretto_trainer *self, char **yaml_out);
STRETTO_API void stretto_trainer_on_event(stretto_trainer *self, stretto_event_fn *fn, void *user); /* set the event callback */
/* Keep checkpoints, config.json, metrics.jsonl and report.html in this directory, which is created; resume != 0 continues from
 * its newest checkpoint, and stretto_trainer_run compares the data with those that the run began with: E215 if they differ and
 * the option data-changed does not accept that.  E704: another run writes there. */
STRETTO_API stretto_err stretto_trainer_run_dir(stretto_trainer *self, const char *path, int resume);
/* Paths of the data file and the model of a run directory, to resume it; its options are in config.json (stretto_config_load).
 * E701: cannot read.  E705: nothing to resume. */
STRETTO_API stretto_err stretto_run_paths(const char *run_dir, char **data_path, char **model_path);
/* The run directory on this host of a run that may be in HDFS: what is newer there is fetched. Free *run_dir_out with
 * stretto_text_free. E704: it belongs to another run.  E705: no run there.  E706: HDFS cannot be used. */
STRETTO_API stretto_err stretto_run_fetch(const char *run, char **run_dir_out);
/* Path of the model to be written, stored in the run directory and the report.  Call it before stretto_trainer_run_dir. */
STRETTO_API stretto_err stretto_trainer_target(stretto_trainer *self, const char *model_path);
/* Train and score.  Returns 0 or a STRETTO_STOP reason.  E501: diverged.  E801, E802: a rank was lost.  E806: stopped before
 * there was anything to save. */
STRETTO_API stretto_err stretto_trainer_run(stretto_trainer *self);
/* Stop after the current step and write a checkpoint.  May be called from any thread and from a signal handler. */
STRETTO_API void stretto_trainer_stop(stretto_trainer *self);
/* Score table of the test split, next to the naive forecasts, as text or JSON; "" before a run. */
STRETTO_API const char *stretto_trainer_scores(stretto_trainer *self, int json);
/* Skill on the test split: 1 - error / error of the best naive forecast; NaN = no test split; 1 on ranks other than 0. */
STRETTO_API double stretto_trainer_skill(const stretto_trainer *self);
/* Write the model atomically and mark the run directory as finished.  E105: not trained yet.  E702, E703: cannot write. */
STRETTO_API stretto_err stretto_trainer_save(stretto_trainer *self, const char *path);
STRETTO_API stretto_err stretto_trainer_report(stretto_trainer *self, const char *html_path); /* write the report; E105: no run */
/* Write the report of a trained model again: of a run directory, or of a model file.  data_path NULL: the data of the run, which
 * MODEL.run names, too; the parts are those of the training.  Other data are scored as stretto_eval scores them.  config (may be
 * NULL): options threads, device, kernel, memory and stride.  html_path NULL: RUN/report.html, or MODEL.html with other data.
 * *path_out is the path that was written; free it with stretto_text_free.  E105: no data are named.  E705: no model of that run.
 * E702, E703: cannot write. */
STRETTO_API stretto_err stretto_report(const char *run_or_model, const char *data_path, stretto_config *config,
                                       const char *html_path, char **path_out);
/* Draw a forecast of the test split next to the actual values, as SVG.  E105 before run; E106: no test split. */
STRETTO_API stretto_err stretto_trainer_plot(stretto_trainer *self, const char *svg_path);
/* Write the tasks of all threads in Chrome trace format.  E105 before run. */
STRETTO_API stretto_err stretto_trainer_trace(stretto_trainer *self, const char *json_path);
STRETTO_API stretto_model *stretto_trainer_model(stretto_trainer *self); /* the model, owned by the trainer; NULL before run */
STRETTO_API void stretto_trainer_free(stretto_trainer *self);            /* also frees its model */

/* Rolling-origin evaluation: scores `folds` consecutive parts of the test split (options folds and refit), as text or JSON.  fn
 * may be NULL.  E301: too few test records.  E803: called under a launcher. */
STRETTO_API stretto_err stretto_backtest(stretto_config *config, stretto_data *data, stretto_event_fn *fn, void *user, int json,
                                         char **out);
/* End the stretto_backtest that runs with this config, or else the next one, after the present step: it returns
 * STRETTO_STOP_SIGNAL or E806, and no scores.  May be called from any thread and from a signal handler. */
STRETTO_API void stretto_backtest_stop(stretto_config *config);

/* Search for better options within option time-limit (0: ten minutes) or a number of `trials`.  Trials train on records before
 * those that score them, all of them before the test split, which the search never sees.  Options that the config sets do not
 * vary; the defaults are trial 0 and stay unless another trial is better beyond chance.  Option run-dir keeps every fit, so that
 * the same call goes on where one ended; option plot draws what mattered.  *out: the table of trials, as text or JSON.
 * *best_yaml: the options to train with, as YAML for stretto_config_load.  fn may be NULL.  Under a launcher, all ranks call it
 * and share the trials; on ranks other than 0 both texts are "".  Returns 0, or STRETTO_STOP_SIGNAL with the best so far.
 * E106: nothing to vary, or data of this task cannot be hidden.  E301: too few records.  E705: run-dir holds another search. */
STRETTO_API stretto_err stretto_tune(stretto_config *config, stretto_data *data, stretto_event_fn *fn, void *user, int json,
                                     char **out, char **best_yaml);
/* End the stretto_tune that runs in this process, or else the next one, with the best so far.  May be called from a signal
 * handler. */
STRETTO_API void stretto_tune_stop(void);

/* --- 6 models --- */
/* Load a model file.  E701: cannot read.  E901: not a model, or damaged.  E902: written by a newer version. */
STRETTO_API stretto_err stretto_model_load(const char *path, stretto_model **out);
STRETTO_API stretto_err stretto_model_save(const stretto_model *self, const char *path); /* write it atomically; E702, E703 */
/* The bytes of the model file, for a store of the caller; free them with stretto_bytes_free. */
STRETTO_API stretto_err stretto_model_to_bytes(const stretto_model *self, void **bytes_out, size_t *n_out);
STRETTO_API void stretto_bytes_free(void *bytes); /* NULL is allowed */
/* A model from such bytes, which are copied.  E901, E902 as stretto_model_load. */
STRETTO_API stretto_err stretto_model_from_bytes(const void *bytes, size_t n, stretto_model **out);
STRETTO_API void stretto_model_free(stretto_model *self);
STRETTO_API int stretto_model_horizon(const stretto_model *self); /* forecast horizon in time steps */
STRETTO_API int stretto_model_context(const stretto_model *self); /* lookback window in time steps */
STRETTO_API int stretto_model_targets(const stretto_model *self); /* number of target columns */
STRETTO_API const char *stretto_model_target(const stretto_model *self, int i); /* name of target i; NULL = out of range */
STRETTO_API int stretto_model_quantiles(const stretto_model *self); /* number of quantiles; 0 = point forecasts only */
STRETTO_API double stretto_model_quantile(const stretto_model *self, int i); /* level of quantile i; NaN = out of range */
STRETTO_API int64_t stretto_model_parameters(const stretto_model *self); /* weights of one ensemble member, without padding */
/* Schema, layers, training record and all options with their origin, as indented text or JSON. */
STRETTO_API stretto_err stretto_model_info(const stretto_model *self, int json, char **out);
STRETTO_API stretto_config *stretto_model_config(stretto_model *self); /* options of its training, owned by the model */

/* --- 7 forecasts --- */
/* Read a data file with the model's own columns and settings.  E903: the file does not fit the model. */
STRETTO_API stretto_err stretto_model_open(stretto_model *self, const char *path, stretto_data **out);
/* Forecast beyond the last record: mean [horizon][targets of the data]; quantiles [horizon][targets][quantiles], or NULL.  Both
 * arrays belong to the caller.  Data opened or wrapped without this model are scaled for it by the first call and can then be
 * used only with it. E301, E302: too little history, or future values of known columns missing.  E903: the data do not fit. */
STRETTO_API stretto_err stretto_predict(stretto_model *self, stretto_data *data, double *mean, double *quantiles);
/* The same as CSV, long (id,origin,time,step,mean,q..) or wide; path "-" returns the text through out, which may be NULL
 * otherwise. */
STRETTO_API stretto_err stretto_predict_file(stretto_model *self, stretto_data *data, const char *path, int wide, char **out);
/* Tags as stretto_predict_file writes them, and behind each the probability of every label given the sentence: B-NP/0.98. path
 * and out as above.  E106: a model that is no conditional random field. */
STRETTO_API stretto_err stretto_marginals_file(stretto_model *self, stretto_data *data, const char *path, char **out);
/* `samples` possible courses of each target as CSV, long (id,origin,time,step,sample.1,..): at each step they follow the
 * quantiles of stretto_predict, over the steps the errors on validation.  The same seed gives the same bytes. path and out as
 * above.  E106: a model without a horizon, or without quantiles. */
STRETTO_API stretto_err stretto_sample_file(stretto_model *self, stretto_data *data, const char *path, int samples,
                                            long long seed, char **out);
/* Predictions as one struct array of the Arrow C data interface, which the caller releases, array and schema.  A forecast has the
 * columns id (text), origin, time (timestamp in seconds, with the zone of the data; numbers of rows from 0 where the data have
 * no times), step (i64), mean, q0.1 .. (f64); other models those of their CSV.  samples > 0: that many possible courses
 * sample.1 .. as of stretto_sample_file. */
STRETTO_API stretto_err stretto_predict_arrow(stretto_model *self, stretto_data *data, int samples, long long seed,
                                              struct ArrowArray *array_out, struct ArrowSchema *schema_out);
/* Score the records that the model has not seen, or all records if it has seen them all.  config (may be NULL): options stride,
 * score-scale and score-steps.  Score table as text or JSON; *skill (may be NULL) as stretto_trainer_skill. */
STRETTO_API stretto_err stretto_eval(stretto_model *self, stretto_data *data, stretto_config *config, int json, char **out,
                                     double *skill);
STRETTO_API stretto_err stretto_model_plot(stretto_model *self, stretto_data *data,
                                           const char *svg_path); /* draw the forecast beyond the last record, as SVG */
/* Label every step of one long sequence: the file holds words separated by blanks or line ends, the output a label a line.  Path
 * "-" returns the text through out, which may be NULL otherwise.  For models that label sequences (--task hmm); option slices of
 * the model's config.  fn (may be NULL) gets progress and notes.  E106: another model.  E201, E202: no words in the file. */
STRETTO_API stretto_err stretto_decode_file(stretto_model *self, const char *sequence, const char *path, stretto_event_fn *fn,
                                            void *user, char **out);
/* How the last forecast or evaluation deviated from the training, in one sentence (bf16 computed in fp32); "" = not at all. */
STRETTO_API const char *stretto_model_note(const stretto_model *self);
/* Warnings about the data that were last opened for this model, one per line: categories that training has not seen, ambiguous
 * numbers; "" = none. */
STRETTO_API const char *stretto_model_warnings(const stretto_model *self);

/* --- 8 machine and plan --- */
/* Description of this host: text for option machine, or JSON. */
STRETTO_API stretto_err stretto_machine_info(int json, char **out);
/* The parallel plan of one training step.  data NULL: shapes from options columns, horizon and context.  E401: the strategy
 * does not fit.  E402: invalid plan file. */
STRETTO_API stretto_err stretto_plan_new(stretto_config *config, stretto_data *data, stretto_plan **out);
STRETTO_API stretto_err stretto_plan_print(const stretto_plan *self, char **out); /* the plan task by task */
STRETTO_API stretto_err stretto_plan_summary(const stretto_plan *self, int json, char **out); /* cost, bytes, exactness */
/* How well policies deal independent work (forecasts, not training steps) to the devices of option machine: simulated. */
STRETTO_API stretto_err stretto_plan_deal(stretto_config *config, char **out);
STRETTO_API stretto_err stretto_plan_compare(const stretto_plan *self, char **out); /* table of all strategies */
/* Table of methods that place layers on devices; method "all", or one of them ("best", "random:7").  E103: unknown method. */
STRETTO_API stretto_err stretto_plan_place(const stretto_plan *self, const char *method, char **out);
STRETTO_API stretto_err stretto_plan_draw(const stretto_plan *self, int svg, char **out); /* devices against time, text or SVG */
STRETTO_API stretto_err stretto_plan_save(const stretto_plan *self, const char *path); /* write a file for option plan */
STRETTO_API void stretto_plan_free(stretto_plan *self);
/* Training steps per second of the configured network by hidden size, batch and threads, as text or JSON. */
STRETTO_API stretto_err stretto_bench(stretto_config *config, int json, char **out);

/* Check this host, or all hosts of the launcher, for what stops or slows a run (options ranks, threads and run-dir), as text or
 * JSON. E1101: something stops a run; *out is filled in that case, too ("" on ranks other than 0). */
STRETTO_API stretto_err stretto_doctor(stretto_config *config, int json, char **out);

/* Measure and smooth the GPU occupancy of this node, keep it in the file of option state, and set the node's weight in Slurm
 * when it changed; text or JSON.  With shares=yes, only return the free share of the GPUs of this node or of all ranks' nodes,
 * as text for option machine ("" on ranks other than 0).  E820: no GPU and no record.  E805: Slurm refused. */
STRETTO_API stretto_err stretto_gpuload(stretto_config *config, int json, char **out);

/* --- 9 graphs --- */
/* Rank or group the nodes of the edge list `path`: one edge a line, FROM TO [WEIGHT], separated by blanks, tabs or a comma;
 * plain, .gz or .zst.  method: "pagerank" (columns node,rank), "components" (node,component) or "labels" (node,label:
 * communities); groups are numbered from 0, the largest first.  The CSV table has one line per node, in order of first
 * appearance or that of option node-list, and is written atomically to out_path; *out is then a summary, as text or JSON.
 * With out_path "-" *out is the table, with "" there is none.  Options top, sort and plot: how many nodes or groups the summary
 * lists, the order of the table, a picture.  fn may be NULL.  Returns 0, or STRETTO_STOP_TIME or STRETTO_STOP_SIGNAL with the
 * values that were reached.
 * Numbers are the same to the bit for any number of threads and ranks; ranks other than 0 write nothing, and their *out is "".
 * E103: no such method, or a node that is not in the node list.
 * E201 .. E204: the file and line of a bad edge.  E7xx: access to files. */
STRETTO_API stretto_err stretto_graph(stretto_config *config, const char *method, const char *path, const char *out_path,
                                      stretto_event_fn *fn, void *user, int json, char **out);
/* Ends the stretto_graph that runs in this process, or else the next one, after the present iteration: it then gives what was
 * reached.  May be called from a signal handler. */
STRETTO_API void stretto_graph_stop(void);

/* --- 10 ONNX --- */
/* Write a model as an ONNX graph (opset 14), atomically: of a forecaster inputs in original units, outputs mean
 * [batch][horizon] and quantiles [batch][horizon][quantiles]; docs/onnx.md.  mean_only != 0: no quantiles.  E904: the model has
 * parts that ONNX cannot express; the message lists all of them.  E702, E703: cannot write. */
STRETTO_API stretto_err stretto_model_export_onnx(stretto_model *self, const char *path, int mean_only);
/* Run the file in ONNX Runtime on windows of the data and compare it with the model; data NULL: only read it, where there is a
 * runtime.  *worst (may be NULL): largest difference, in standard deviations of the column; NaN = not compared.  *out (may be
 * NULL): the result as one line.  E907: the runtime cannot read or run the file, the difference is no rounding, or there are data
 * and no runtime.  E903: the data do not fit. */
STRETTO_API stretto_err stretto_model_check_onnx(stretto_model *self, stretto_data *data, const char *path, int mean_only,
                                                 double *worst, char **out);

/* Make a network of the recurrent and dense layers of an ONNX file.  test_folder (may be NULL): input_N.pb and output_N.pb as
 * ONNX's own tests have them: weights among the inputs are taken from there, and the network must give the output.  *report (may
 * be NULL): the result of that test as one line.  E905: no ONNX file.  E906: the message lists all that a network cannot hold.
 * E907: the network gives another output. */
STRETTO_API stretto_err stretto_import_onnx(const char *path, const char *test_folder, stretto_model **out, char **report);
/* Numbers of an imported network for each step; every_step: 1 = it has an output for each step, 0 = one for the sequence.
 * Pointers may be NULL.  E106: another model. */
STRETTO_API stretto_err stretto_network_shape(const stretto_model *self, int *inputs, int *outputs, int *every_step);
/* Run an imported network from a zero state: x [steps][batch][inputs] -> y [steps or 1][batch][outputs], both the caller's.
 * E106: another model. */
STRETTO_API stretto_err stretto_network_run(const stretto_model *self, const float *x, int steps, int batch, float *y);

#ifdef __cplusplus
}
#endif
#endif
