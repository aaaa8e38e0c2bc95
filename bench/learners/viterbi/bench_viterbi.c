/* bench_viterbi.c - Viterbi decoding without files: `bench/learners/viterbi.py` starts it and reads its lines.
 *
 *     bench_viterbi MODEL many TOKENS ROUNDS             sentences, one thread
 *     bench_viterbi MODEL long SYMBOLS ROUNDS            one sequence: 1 and 2 threads in turn
 *     bench_viterbi MODEL slices SYMBOLS STEP            one sequence: 1, 1 + STEP, .. 64 slices (STEP 0: 1, 2, 4, .. 64)
 *
 * A line: what threads slices steps wall-seconds processor-seconds hash-of-the-path rounds blocks-repeated log-likelihood
 * processor-seconds-of-the-busiest-thread */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "api/config.h"
#include "base/clock.h"
#include "base/hash.h"
#include "learn/hmm/symbols.h"
#include "learn/viterbi_slices.h"

static struct machine machine;

struct bench {
    struct hmm *h;
    struct pool *pool[2];
    i32 rounds;
};

static struct resources with(const struct bench *b, i32 threads) {
    machine.ndevice = threads;
    return (struct resources){.pool = b->pool[threads - 1], .machine = &machine, .kern = kern_best()};
}

static err many(const struct bench *b, const char *path) {
    struct dataset *d;
    struct hmm_tokens t;
    u8 *labels;
    const struct resources use = with(b, 1);
    TRY(token_set_read_as(path, b->h->ncolumn, b->h->tag < 0 ? TOKENS_NO_TAG : b->h->tag, &d));
    const struct token_set *s = token_set_of(d);
    TRY(hmm_tokens_of(b->h, s, &t));
    NEW(labels, s->ntoken);
    for (i32 i = 0; i < b->rounds; i++) {
        const f64 wall = clock_now(), cpu = clock_cpu();
        TRY(hmm_decode(b->h, &(struct hmm_rows){s->nsentence, s->first, t.word, NULL}, &use, labels, NULL));
        printf("many 1 0 %lld %.6f %.6f %016llx 0 0 0 0\n", (long long)s->ntoken, clock_now() - wall, clock_cpu() - cpu,
               (unsigned long long)hash_bytes(HASH_SEED, labels, (size_t)s->ntoken));
    }
    mem_free(labels);
    hmm_tokens_free(&t);
    dataset_free(d);
    return 0;
}

/* Processor time of this thread: worker 0 of a pool of two. */
static f64 thread_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

static err one(const struct bench *b, const struct hmm_symbols *s, i32 threads, i32 slices, u8 *path) {
    const struct hmm_fixed *f = &b->h->fixed;
    const struct resources use = with(b, threads);
    struct viterbi_long_result r;
    const struct viterbi_long q = {.kern = &f->kern, .start = f->start, .unary = f->emit, .symbol = s->at,
                                   .symbol_bytes = s->bytes, .T = s->n, .slices = slices, .path = path};
    memset(path, 255, (size_t)s->n);
    const f64 before = clock_cpu(), mine_before = thread_cpu();
    TRY(viterbi_long(&q, &use, &r));
    const f64 cpu = clock_cpu() - before, mine = thread_cpu() - mine_before;
    printf("long %d %d %lld %.6f %.6f %016llx %d %lld %.6f %.6f\n", threads, r.slices, (long long)s->n, r.seconds, cpu,
           (unsigned long long)hash_bytes(HASH_SEED, path, (size_t)s->n), r.rounds, (long long)r.again,
           (f64)r.score / f->scale, dmax(mine, cpu - mine));
    return fflush(stdout) == 0 ? 0 : -E703;
}

static err one_long(const struct bench *b, bool slices, const char *file) {
    struct hmm_symbols s;
    u8 *path;
    const struct resources use = with(b, 1);
    TRY(hmm_symbols_read(b->h, file, &use, &s));
    NEW(path, s.n);
    for (i32 i = 0; i < b->rounds && !slices; i++)
        for (i32 threads = 1; threads <= 2; threads++) TRY(one(b, &s, threads, 0, path));
    for (i32 P = 1; P <= 64 && slices; P += b->rounds > 0 ? b->rounds : P) TRY(one(b, &s, 2, P, path));
    mem_free(path);
    hmm_symbols_free(&s);
    return 0;
}

static err run(char **arg) {
    struct options o;
    struct str record = {0};
    struct model *m;
    struct bench b = {.rounds = (i32)strtol(arg[4], NULL, 10)};
    TRY(opt_defaults(&o, api_lists()));
    TRY(model_from_file(arg[1], config_parse, &o, &m, &record));
    b.h = hmm_of(m);
    TRY(machine_host(2, &machine));
    for (i32 i = 0; i < 2; i++) TRY(pool_new(i + 1, &b.pool[i]));
    TRY(strcmp(arg[2], "many") == 0 ? many(&b, arg[3]) : one_long(&b, strcmp(arg[2], "slices") == 0, arg[3]));
    for (i32 i = 0; i < 2; i++) pool_free(b.pool[i]);
    model_free(m);
    opt_free(&o);
    str_free(&record);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "bench_viterbi MODEL many|long|slices FILE ROUNDS\n");
        return 2;
    }
    if (run(argv) >= 0) return 0;
    fprintf(stderr, "%s\n", err_last()->text);
    return 1;
}
