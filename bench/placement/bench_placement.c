/* bench_placement.c - placements of LSTM graphs in the simulator, on orders from run.py; prints tab-separated rows.
 *
 *     bench_placement grid PART PARTS DRAWS chunks|micro [ITERATIONS]   every PARTS-th cell of the grid of the design
 *     bench_placement exact STEPS                           small graphs on two devices against branch and bound
 *     bench_placement large DEVICES LAYERS COLUMNS          `best` for many devices: seconds, memory
 *
 * A task takes 1 (forward, head) or 2 (backward); a transfer takes CCR; links carry any number of transfers at once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "place/place.h"

#define BYTES 1000000 /* of a message; the rate of the links follows from CCR */

static const char *const METHODS[] = {"single", "blocks", "cyclic", "hybrid", "greedy", "heft", "affinity", "anneal", "best"};
static const i32 LAYERS[] = {1, 2, 3, 4, 6, 8}, COLUMNS[] = {4, 8, 16}, DEVICES[] = {2, 3, 4, 8};
static const f64 RATIOS[] = {0, 0.1, 1, 4}, COPIES[] = {0.1, 1};

static void check(err e) {
    if (e >= 0) return;
    fprintf(stderr, "E%d: %s\n", (int)err_last()->code, err_last()->text);
    exit(1);
}

struct cell {
    i32 L, C, P;
    f64 ratio, copy;
    bool slow; /* the last device has half the speed */
    bool time;
};

static void build(const struct cell *c, struct place_graph *g, struct place_machine *m) {
    struct place_layer layer[64], head = {.forward = 1};
    for (i32 l = 0; l < c->L; l++) layer[l] = (struct place_layer){1, 2, BYTES, BYTES, BYTES, {.copy_seconds = c->copy}};
    const struct place_lstm spec = {c->L, c->C, c->time, layer, false, &head};
    check(place_lstm(&spec, g));
    check(place_machine_equal(c->P, (struct place_link){0, c->ratio > 0 ? BYTES / c->ratio : INFINITY}, m));
    if (c->slow) m->device[c->P - 1].speed = 0.5;
}

static f64 mean_of_draws(const char *method, i32 draws, const struct place_graph *g, const struct place_machine *m,
                         const struct place_options *o) {
    f64 sum = 0;
    for (i32 i = 0; i < draws; i++) {
        char name[32];
        struct placement *p;
        snprintf(name, sizeof name, "%s:%d", method, i);
        check(place_run(name, g, m, o, &p));
        sum += p->makespan;
        placement_free(p);
    }
    return sum / draws;
}

static void grid_cell(const struct cell *c, i32 draws, i32 iterations) {
    struct place_graph g;
    struct place_machine m;
    const struct place_options o = {.no_contention = true, .iterations = iterations};
    build(c, &g, &m);
    printf("%d\t%d\t%d\t%g\t%g\t%d\t%.6f\t%.6f", c->L, c->C, c->P, c->ratio, c->copy, c->slow,
           mean_of_draws("random", draws, &g, &m, &o), mean_of_draws("random-layer", draws, &g, &m, &o));
    for (size_t i = 0; i < COUNT(METHODS); i++) {
        struct placement *p;
        check(place_run(METHODS[i], &g, &m, &o, &p));
        printf("\t%.6f", p->makespan);
        if (i == COUNT(METHODS) - 1) printf("\t%.6f\t%s\t%.4f\t%s", p->bound, p->bound_name, p->seconds, p->method);
        placement_free(p);
    }
    printf("\n");
    fflush(stdout);
    place_graph_free(&g);
    place_machine_free(&m);
}

static void grid(i32 part, i32 parts, i32 draws, bool time, i32 iterations) {
    i32 at = 0;
    for (i32 i = 0; i < (i32)(COUNT(LAYERS) * COUNT(COLUMNS) * COUNT(DEVICES) * COUNT(RATIOS) * COUNT(COPIES) * 2); i++) {
        i32 k = i;
        struct cell c = {.time = time};
        c.slow = k % 2;
        k /= 2;
        c.copy = COPIES[k % (i32)COUNT(COPIES)];
        k /= (i32)COUNT(COPIES);
        c.ratio = RATIOS[k % (i32)COUNT(RATIOS)];
        k /= (i32)COUNT(RATIOS);
        c.P = DEVICES[k % (i32)COUNT(DEVICES)];
        k /= (i32)COUNT(DEVICES);
        c.C = COLUMNS[k % (i32)COUNT(COLUMNS)];
        c.L = LAYERS[k / (i32)COUNT(COLUMNS)];
        if (at++ % parts == part) grid_cell(&c, draws, iterations);
    }
}

static void exact(i64 steps) {
    static const i32 shape[][2] = {{1, 4}, {1, 6}, {2, 4}, {4, 2}, {3, 3}, {2, 5}};
    for (size_t i = 0; i < COUNT(shape) * COUNT(RATIOS) * COUNT(COPIES) * 2; i++) {
        const size_t k = i / 4;
        struct cell c = {shape[k / COUNT(RATIOS)][0],
                         shape[k / COUNT(RATIOS)][1],
                         2,
                         RATIOS[k % COUNT(RATIOS)],
                         COPIES[i / 2 % 2],
                         i % 2,
                         true};
        struct place_graph g;
        struct place_machine m;
        struct placement *best, *p;
        bool solved;
        const struct place_options o = {.no_contention = true};
        build(&c, &g, &m);
        check(place_run("best", &g, &m, &o, &best));
        const f64 begin = clock_now();
        check(place_exact(&g, &m, steps, &p, &solved));
        printf("%d\t%d\t%g\t%g\t%d\t%d\t%.6f\t%.6f\t%d\t%lld\t%.3f\n", c.L, c.C, c.ratio, c.copy, c.slow, g.nnode, best->makespan,
               p->makespan, solved, (long long)p->simulated, clock_now() - begin);
        fflush(stdout);
        placement_free(best);
        placement_free(p);
        place_graph_free(&g);
        place_machine_free(&m);
    }
}

static void large(i32 devices, i32 layers, i32 columns) {
    struct place_layer layer[256], head = {.forward = 0.2e-3, .activation = 1 << 18, .unit = {1 << 22, 0, 1 << 20}};
    if (layers > 256) exit(1);
    for (i32 l = 0; l < layers; l++)
        layer[l] = (struct place_layer){1e-3, 2e-3, 1 << 18, 1 << 16, 1 << 20, {.memory = 1 << 26, .copy_bytes = 1 << 24}};
    const struct place_lstm spec = {layers, columns, false, layer, true, &head};
    struct place_graph g;
    struct place_machine m;
    struct placement *p;
    check(place_lstm(&spec, &g));
    check(place_machine_equal(devices, (struct place_link){5e-6, 1e10}, &m));
    for (i32 d = 0; d < devices; d++) { /* ranks of 16 devices with 8 GiB each; every tenth rank has half the speed */
        m.device[d] = (struct place_device){d / 16 % 10 == 9 ? 0.5 : 1, (i64)8 << 30, d / 16};
    }
    m.nrank = (devices + 15) / 16;
    m.inside = (struct place_link){1e-6, 5e10};
    check(place_run("best", &g, &m, NULL, &p));
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    i64 peak = 0;
    for (i32 d = 0; d < devices; d++) peak = lmax(peak, p->peak[d]);
    printf("%d\t%d\t%d\t%d\t%s\t%.6f\t%.6f\t%s\t%.3f\t%.1f\t%lld\t%.1f\n", devices, layers, columns, g.nnode, p->method,
           p->makespan, p->bound, p->bound_name, p->seconds, (f64)use.ru_maxrss / 1024, (long long)p->simulated,
           (f64)peak / (1 << 20));
    placement_free(p);
    place_graph_free(&g);
    place_machine_free(&m);
}

int main(int argc, char **argv) {
    if (argc >= 6 && argc <= 7 && !strcmp(argv[1], "grid")) {
        static const i32 at[] = {2, 3, 4, 6};
        i64 v[4] = {0};
        for (i32 i = 0; i < 4 && at[i] < argc; i++)
            if (!str_to_i64(argv[at[i]], strlen(argv[at[i]]), &v[i])) return 2;
        grid((i32)v[0], (i32)v[1], (i32)v[2], !strcmp(argv[5], "chunks"), (i32)v[3]);
        return 0;
    }
    i64 v[3] = {0};
    for (i32 i = 2; i < argc && i < 5; i++)
        if (!str_to_i64(argv[i], strlen(argv[i]), &v[i - 2])) return 2;
    if (argc == 3 && !strcmp(argv[1], "exact")) {
        exact(v[0]);
    } else if (argc == 5 && !strcmp(argv[1], "large")) {
        large((i32)v[0], (i32)v[1], (i32)v[2]);
    } else {
        fprintf(stderr,
                "bench_placement grid PART PARTS DRAWS chunks|micro [ITERATIONS] | exact STEPS | large DEVICES LAYERS COLUMNS\n");
        return 2;
    }
    return 0;
}
