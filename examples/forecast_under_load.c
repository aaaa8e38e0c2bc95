/* forecast_under_load.c - a process that lives long and forecasts for many clients at once: one model, a handle for each thread.
 *
 *     forecast_under_load MODEL DATA [THREADS]
 *
 *     bytes of MODEL --stretto_model_from_bytes--> a handle for each thread; nothing is shared, so nothing is locked
 *     request: the rows that a client has now --stretto_data_wrap--> data --stretto_predict--> mean
 *
 * Requests come from memory: columns of targets without covariates and without times.  Prints forecasts per second and the time
 * of one. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "stretto/stretto.h"

enum { MOST = 64, TIMES = 1 << 20 };

struct server { /* read by all threads */
    void *bytes;
    size_t nbytes;
    const double *value; /* [ncol][nrow] */
    const char **name;   /* [ncol] */
    long long nrow, history; /* history: rows of a request */
    int ncol, horizon;
    double seconds;
};
struct client {
    const struct server *s;
    pthread_t thread;
    stretto_err failed;
    char why[200];
    int n; /* answers */
    float ms[TIMES];
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One request: the rows up to `end`, of all columns. */
static stretto_err answer(const struct server *s, stretto_model *m, long long end, double *rows, double *mean) {
    stretto_data *data = NULL;
    for (int c = 0; c < s->ncol; c++)
        for (long long i = 0; i < s->history; i++) rows[c * s->history + i] = s->value[c * s->nrow + end - s->history + i];
    stretto_err e = stretto_data_wrap(stretto_model_config(m), rows, s->history, s->ncol, s->name, 0, 0, &data);
    if (e >= 0) e = stretto_predict(m, data, mean, NULL);
    stretto_data_free(data);
    return e;
}

static void *serve(void *self) {
    struct client *c = self;
    const struct server *s = c->s;
    stretto_model *m = NULL;
    double *rows = malloc(sizeof *rows * (size_t)(s->history * s->ncol));
    double *mean = malloc(sizeof *mean * (size_t)(s->horizon * s->ncol));
    stretto_err e = rows && mean ? stretto_model_from_bytes(s->bytes, s->nbytes, &m) : -601;
    if (e >= 0) e = stretto_config_set(stretto_model_config(m), "threads", "1"); /* the clients are the parallel part */
    const double begin = now();
    while (e >= 0 && c->n < TIMES && now() - begin < s->seconds) {
        const double start = now();
        e = answer(s, m, s->nrow - c->n % (s->nrow - s->history + 1), rows, mean);
        c->ms[c->n++] = (float)(1e3 * (now() - start));
    }
    if (e < 0) snprintf(c->why, sizeof c->why, "%s", stretto_errmsg()); /* errors are those of the thread */
    c->failed = e;
    stretto_model_free(m);
    free(rows);
    free(mean);
    return NULL;
}

static int ascending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static stretto_err load(const struct server *s, int threads) {
    struct client *client = calloc((size_t)threads, sizeof *client);
    stretto_err e = client ? 0 : -601;
    int n = 0, started = 0;
    for (; e >= 0 && started < threads; started++) {
        client[started].s = s;
        if (pthread_create(&client[started].thread, NULL, serve, &client[started]) != 0) break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(client[i].thread, NULL);
        if (client[i].failed < 0) fprintf(stderr, "client %d: error[E%03d] %s\n", i, -client[i].failed, client[i].why);
        if (client[i].failed < 0) e = client[i].failed;
        n += client[i].n;
    }
    if (e >= 0 && n > 0) {
        const float *ms = client[0].ms;
        qsort(client[0].ms, (size_t)client[0].n, sizeof *ms, ascending);
        printf("%2d threads: %8.0f forecasts a second; one takes %.3f ms, 1 of 100 more than %.3f ms\n", started, n / s->seconds,
               (double)ms[client[0].n / 2], (double)ms[client[0].n * 99 / 100]);
    }
    free(client);
    return e;
}

/* The columns of the file, as a process would collect them while they are measured. */
static stretto_err take(stretto_model *m, stretto_data *d, struct server *s, double **value) {
    s->nrow = stretto_data_rows(d), s->ncol = stretto_data_targets(d), s->horizon = stretto_model_horizon(m);
    s->history = s->nrow < 4 * stretto_model_context(m) ? s->nrow : 4 * stretto_model_context(m);
    s->value = *value = malloc(sizeof **value * (size_t)(s->nrow * s->ncol));
    s->name = malloc(sizeof *s->name * (size_t)s->ncol);
    if (!s->value || !s->name) return -601;
    for (int c = 0; c < s->ncol; c++) s->name[c] = stretto_data_column(d, c);
    for (long long i = 0; i < s->nrow * s->ncol; i++) (*value)[i] = stretto_data_value(d, (int)(i / s->nrow), i % s->nrow);
    return 0;
}

int main(int argc, char **argv) {
    struct server s = {.seconds = 1};
    const int threads = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 8;
    stretto_model *m = NULL;
    stretto_data *d = NULL;
    double *value = NULL;
    stretto_err e = argc < 3 || threads < 1 || threads > MOST ? -106 : stretto_model_load(argv[1], &m);
    if (!m && e == -106) fprintf(stderr, "usage: %s MODEL DATA [THREADS 1..%d]\n", argv[0], MOST);
    if (e >= 0) e = stretto_model_open(m, argv[2], &d);
    if (e >= 0) e = stretto_model_to_bytes(m, &s.bytes, &s.nbytes);
    if (e >= 0) e = take(m, d, &s, &value);
    if (e >= 0) e = load(&s, 1);
    if (e >= 0 && threads > 1) e = load(&s, threads);
    if (e < 0 && stretto_errcode())
        fprintf(stderr, "error[E%03d] %s: %s\n", stretto_errcode(), stretto_errwhere(), stretto_errmsg());
    stretto_bytes_free(s.bytes);
    free(value);
    free(s.name);
    stretto_data_free(d);
    stretto_model_free(m);
    return stretto_exit_status(e < 0 ? e : 0);
}
