/* t_gpu_chain.c - sentences of a CRF on every device of this machine (gpu/learners.h) against the kernel of the cores
 * (learn/crf/kernel.c): random numbers of labels and lengths, tokens without attributes, parts of the data.  Equal bits. */
#include "gpu/cards.h"

#include "base/mem.h"
#include "base/rng.h"
#include "gpu/learners.h"
#include "learn/crf/kernel.h"

#include <math.h>
#include <string.h>

enum { ATTRIBUTES = 40, MOST = 5, BLOCK = 3 }; /* attributes of a token, at most; sentences of a block */

struct data {
    i32 L, Lp, n, T0, T; /* sentences; tokens before the launch; of the launch */
    i32 *first, *block, blocks, longest;
    i64 *at;
    i32 *attribute, *gold;
    f32 *w;
};

/* A number of [0, most), the same in every run. */
static i32 draw(u32 what, i64 i, i32 most) { return (i32)(rng_uniform(7, RNG_TEST, what, (u64)i) * (f32)most); }

static struct data data_of(i32 L, i32 n, i32 longest, f32 scale) {
    struct data d = {.L = L, .Lp = round_up(L, CRF_PAD), .n = n, .T0 = 5, .longest = 1};
    d.first = mem_alloc((size_t)(n + 1) * 4), d.block = mem_alloc((size_t)(n + 2) * 4);
    for (i32 k = 0; k < n; k++) {
        const i32 T = 1 + draw(90, k + L, longest);
        d.first[k + 1] = d.first[k] + T;
        d.longest = imax(d.longest, T);
        if (k % BLOCK == 0) d.block[d.blocks++] = k;
    }
    d.block[d.blocks] = n;
    d.T = d.first[n];
    const i32 all = d.T0 + d.T;
    d.at = mem_alloc((size_t)(all + 1) * 8), d.gold = mem_alloc((size_t)all * 4);
    d.attribute = mem_alloc((size_t)(all * MOST + CRF_AHEAD) * 4);
    for (i32 t = 0; t < all; t++) {
        d.at[t + 1] = d.at[t] + draw(91, t, MOST + 1);
        d.gold[t] = draw(92, t, L);
        for (i64 k = d.at[t]; k < d.at[t + 1]; k++) d.attribute[k] = draw(93, k, ATTRIBUTES);
    }
    d.w = noise((i64)(ATTRIBUTES + L) * d.Lp, 94);
    for (i32 r = 0; r < ATTRIBUTES + L; r++)
        for (i32 y = 0; y < d.Lp; y++) d.w[r * d.Lp + y] = y < L ? d.w[r * d.Lp + y] * scale : 0;
    return d;
}

static void data_free(struct data *d) {
    void *all[] = {d->first, d->block, d->at, d->attribute, d->gold, d->w};
    for (size_t i = 0; i < COUNT(all); i++) mem_free(all[i]);
}

static struct crf_pass pass_of(const struct data *d) {
    return (struct crf_pass){.L = d->L, .Lp = d->Lp, .w = d->w, .scale = 1, .A = d->w + ATTRIBUTES * d->Lp,
                             .at = d->at, .attribute = d->attribute, .gold = d->gold};
}

static struct gpu_chain chain_of(const struct data *d) {
    const i64 rows = (i64)d->T * d->Lp * 4;
    room_reset();
    return (struct gpu_chain){.w = up(d->w, (i64)(ATTRIBUTES + d->L) * d->Lp), .at = up_bytes(d->at, (d->T0 + d->T + 1) * 8),
                              .attribute = up_bytes(d->attribute, d->at[d->T0 + d->T] * 4 + 4),
                              .gold = up_bytes(d->gold, (d->T0 + d->T) * 4), .token0 = d->T0,
                              .first = up_bytes(d->first, (d->n + 1) * 4), .block = up_bytes(d->block, (d->blocks + 1) * 4),
                              .u = room(rows), .a = room(rows), .d = room(rows), .note = room((i64)d->T * 16),
                              .pair = room((i64)d->blocks * d->L * d->Lp * 4), .from = room((i64)d->T * d->L),
                              .path = room(d->T), .tokens = d->T, .n = d->n, .blocks = d->blocks, .L = d->L, .Lp = d->Lp};
}

static bool same_bits(const char *what, const struct data *d, const f32 *got, const f32 *want, i64 n) {
    if (memcmp(got, want, (size_t)n * sizeof *got) == 0) return true;
    for (i64 i = 0; i < n; i++)
        if (memcmp(got + i, want + i, sizeof *got) != 0)
            fail_msg("%s, %d labels, %d sentences: number %lld is %.9g, not %.9g", what, d->L, d->n, (long long)i, (f64)got[i],
                     (f64)want[i]);
    return false;
}

static const struct crf_kern *cores(void) { return crf_kern_for((i32)kern_best()->arch); }

/* The likelihood of a sentence from the notes of its tokens: max, score of the gold label, sum of alpha. */
static f64 likelihood(const struct data *d, const struct crf_pass *p, const f32 *note, i32 k) {
    const i32 *gold = d->gold + d->T0;
    f64 z = 0;
    for (i32 t = d->first[k]; t < d->first[k + 1]; t++) {
        z += (f64)note[t * 4] + log((f64)note[t * 4 + 2]) - (f64)note[t * 4 + 1];
        if (t > d->first[k]) z += (f64)p->top - (f64)p->A[(i64)gold[t - 1] * d->Lp + gold[t]];
    }
    return z;
}

/* An emulated device takes no large case. */
static bool is_small(i32 L, i32 n, i32 longest) { return !emulated() || L * n * longest < 3000; }

static void one_pass(i32 L, i32 n, i32 longest, f32 scale) {
    struct data d = data_of(L, n, longest, scale);
    struct crf_scratch c = {0};
    T_OK(crf_scratch_new(L, d.Lp, d.longest, &c));
    const struct crf_pass bare = pass_of(&d), p = crf_scratch_pass(&c, &bare);
    struct gpu_chain g = chain_of(&d);
    g.M = up(c.E, (i64)L * d.Lp), g.back = up(c.back, (i64)L * d.Lp);
    gpu_chain_pass(&g);
    f32 *got = down(g.d, (i64)d.T * d.Lp), *pair = down(g.pair, (i64)d.blocks * L * d.Lp), *note = down(g.note, (i64)d.T * 4);
    f32 *want = floats((i64)d.T * d.Lp);
    bool all_finite = true;
    for (i32 b = 0; b < d.blocks; b++) {
        memset(c.pair, 0, sizeof *c.pair * (size_t)(d.Lp * d.Lp));
        for (i32 k = d.block[b]; k < d.block[b + 1]; k++) {
            f32 *to = want + (i64)d.first[k] * d.Lp;
            const f64 nll = cores()->sentence(&p, d.T0 + d.first[k], d.first[k + 1] - d.first[k], to, c.pair);
            const f64 from_notes = likelihood(&d, &p, note, k);
            assert_int_equal(isfinite(nll) != 0, isfinite(from_notes) != 0); /* the cores then compute the block once more */
            assert_true(!isfinite(nll) || fabs(nll - from_notes) <= 1e-9 * (1 + fabs(nll)));
            all_finite = all_finite && isfinite(nll);
        }
        if (all_finite) assert_true(same_bits("pairs", &d, pair + (i64)b * L * d.Lp, c.pair, (i64)L * d.Lp));
    }
    if (all_finite) assert_true(same_bits("P - Y", &d, got, want, (i64)d.T * d.Lp));
    assert_int_equal(all_finite, scale < 100);
    crf_scratch_free(&c), data_free(&d);
    mem_free(got), mem_free(pair), mem_free(note), mem_free(want);
}

EACH_CARD(forward_backward_has_the_bits_of_the_cores) {
    const i32 L[] = {1, 2, 7, 8, 9, 16, 17, 22, 33, 64, 65, 130, 256}, n[] = {1, 4, 33}, longest[] = {1, 9, 30};
    u32 number = 0;
    if (!crf_kern_fuses((i32)kern_best()->arch)) skip();
    for (size_t i = 0; i < COUNT(L); i++)
        for (size_t j = 0; j < COUNT(n); j++)
            for (size_t k = 0; k < COUNT(longest); k++)
                if (chosen(number++) && is_small(L[i], n[j], longest[k])) one_pass(L[i], n[j], longest[k], 1.5f);
    if (emulated()) return;
    one_pass(22, 300, 60, 3);
    one_pass(22, 300, 60, 400); /* sums that single precision cannot hold */
}

static void some_paths(i32 L, i32 n, i32 longest, bool ties) {
    struct data d = data_of(L, n, longest, 2);
    f32 *u = floats((i64)d.longest * d.Lp), *v = floats(2 * d.Lp);
    i32 *from = mem_alloc((size_t)(d.longest * d.Lp) * 4), *best = mem_alloc((size_t)d.longest * 4);
    for (i64 i = 0; ties && i < (i64)(ATTRIBUTES + L) * d.Lp; i++) d.w[i] = roundf(d.w[i]);
    const struct crf_pass p = pass_of(&d);
    struct gpu_chain g = chain_of(&d);
    g.M = g.w + (i64)ATTRIBUTES * d.Lp;
    gpu_chain_paths(&g);
    u8 *path = mem_alloc((size_t)d.T);
    gpu_get(path, d.T, g.path, d.T, d.T, 1);
    for (i32 k = 0; k < n; k++) {
        const i32 T = d.first[k + 1] - d.first[k];
        cores()->score(&p, d.T0 + d.first[k], T, u);
        cores()->decode(u, p.A, L, d.Lp, T, from, v, best);
        for (i32 t = 0; t < T; t++)
            if (best[t] != path[d.first[k] + t])
                fail_msg("%d labels: token %d of %d has label %d, not %d", L, t, T, path[d.first[k] + t], best[t]);
    }
    data_free(&d);
    mem_free(u), mem_free(v), mem_free(from), mem_free(best), mem_free(path);
}

EACH_CARD(best_paths_equal_those_of_the_cores) {
    const i32 L[] = {1, 2, 15, 16, 17, 22, 64, 65, 256}, n[] = {1, 17, 40}, longest[] = {1, 7, 40};
    u32 number = 0;
    for (size_t i = 0; i < COUNT(L); i++)
        for (size_t j = 0; j < COUNT(n); j++)
            for (size_t k = 0; k < COUNT(longest); k++)
                if (chosen(number++) && is_small(L[i], n[j], longest[k]))
                    some_paths(L[i], n[j], longest[k], (i + j + k) % 2);
}

TEST(devices_are_closed) { close_cards(); }

T_MAIN(cmocka_unit_test(forward_backward_has_the_bits_of_the_cores), cmocka_unit_test(best_paths_equal_those_of_the_cores),
       cmocka_unit_test(devices_are_closed))
