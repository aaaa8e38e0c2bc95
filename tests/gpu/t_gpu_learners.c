/* t_gpu_learners.c - kernels of learners (gpu/learners.h) on every device of this machine against plain loops of the host: random
 * shapes, odd sizes, one row, no row, parts of the rows. */
#include "gpu/cards.h"

#include "base/mem.h"
#include "base/rng.h"
#include "gpu/learners.h"
#include "kern/viterbi.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A number of [0, most), the same in every run. */
static i32 draw(u32 what, i64 i, i32 most) { return (i32)(rng_uniform(7, RNG_TEST, what, (u64)i) * (f32)most); }

/* ------------------------------------------------------------------ nearest centers ----------------------------------------- */

#define E 0x1p-24

struct centers_case {
    i32 n, d, k;
    bool grid; /* coordinates are multiples of 1/4: many ties */
};

static f32 coordinate(const struct centers_case *c, f32 v) { return c->grid ? roundf(4 * v) / 4 : v; }

static void fill(const struct centers_case *c, f32 *x, i64 n) {
    const f32 scale = 1 / sqrtf((f32)c->d);
    for (i64 i = 0; i < n; i++) x[i] = c->grid ? coordinate(c, x[i]) : x[i] * scale;
}

/* Products of row i with every center in double precision: |c|^2 - 2 x.c; the largest absolute sum of terms into *terms. */
static void products(const struct centers_case *c, const f32 *x, const f32 *center, f64 *value, f64 *terms) {
    *terms = 0;
    for (i32 k = 0; k < c->k; k++) {
        f64 sum = 0, all = 0;
        for (i32 j = 0; j < c->d; j++) {
            const f64 cj = (f64)center[(i64)k * c->d + j], xj = (f64)x[j];
            sum += cj * cj - 2 * xj * cj;
            all += cj * cj + fabs(2 * xj * cj);
        }
        value[k] = sum;
        *terms = dmax(*terms, all);
    }
}

/* A label is that of the least value; -1 only where another value lies within the margin and the rounding. */
static bool right(const struct centers_case *c, const f64 *value, f64 terms, i32 label, f64 margin, i32 *undecided) {
    f64 low = INFINITY, next = INFINITY;
    i32 best = -1;
    for (i32 k = 0; k < c->k; k++) {
        if (value[k] < low) {
            next = low;
            low = value[k];
            best = k;
        } else if (value[k] < next) {
            next = value[k];
        }
    }
    *undecided += label < 0;
    return label == best || (label == -1 && next - low <= margin + 2 * terms * E * (imin(c->d, 64) + c->d / 64 + 10));
}

static f32 *panels(const struct centers_case *c, const f32 *center, f32 *start) {
    const i32 groups = ceil_div(c->k, LANES);
    f32 *panel = floats((i64)groups * c->d * LANES);
    for (i32 i = 0; i < groups * LANES; i++) start[i] = INFINITY;
    for (i32 i = 0; i < c->k; i++) {
        f64 sum = 0;
        for (i32 j = 0; j < c->d; j++) {
            const f32 v = center[(i64)i * c->d + j];
            panel[((i64)(i / LANES) * c->d + j) * LANES + i % LANES] = -2 * v;
            sum += (f64)v * (f64)v;
        }
        start[i] = (f32)sum;
    }
    return panel;
}

static i32 one_assignment(struct centers_case c, i64 from, i64 to) {
    const i32 groups = ceil_div(c.k, LANES);
    const f32 margin = 1e-5f;
    f32 *x = noise((i64)c.n * c.d, 60), *center = noise((i64)c.k * c.d, 61), *start = floats(groups * LANES), *bits = floats(c.n);
    f64 *value = mem_alloc((size_t)c.k * sizeof *value), terms;
    i32 *label = (i32 *)(void *)bits, undecided = 0;
    fill(&c, x, (i64)c.n * c.d), fill(&c, center, (i64)c.k * c.d);
    f32 *panel = panels(&c, center, start);
    for (i32 i = 0; i < c.n; i++) label[i] = -7; /* rows outside of the part keep it */
    room_reset();
    struct gpu_nearest a = {.x = up(x, (i64)c.n * c.d), .panel = up(panel, (i64)groups * c.d * LANES),
                            .start = up(start, groups * LANES), .label = up_bytes(label, 4 * (i64)c.n), .from = from, .to = to,
                            .d = c.d, .groups = groups, .margin = margin, .share = 8 * (f32)E};
    gpu_nearest(&a);
    gpu_get(label, 4 * (i64)c.n, a.label, 4 * (i64)c.n, 4 * (i64)c.n, 1);
    for (i32 i = 0; i < c.n; i++) {
        if (i < from || i >= to) {
            assert_int_equal(label[i], -7);
            continue;
        }
        products(&c, x + (i64)i * c.d, center, value, &terms);
        if (!right(&c, value, terms, label[i], (f64)margin + 8 * E * terms, &undecided))
            fail_msg("%d rows, %d columns, %d centers: row %d has the label %d", c.n, c.d, c.k, i, label[i]);
    }
    mem_free(x), mem_free(center), mem_free(start), mem_free(bits), mem_free(value), mem_free(panel);
    return undecided;
}

EACH_CARD(rows_get_the_label_of_the_nearest_center) {
    const i32 n[] = {1, 255, 256, 257, 700}, d[] = {1, 2, 15, 16, 17, 64, 65, 130}, k[] = {1, 2, 16, 17, 33};
    u32 number = 0;
    for (size_t i = 0; i < COUNT(n); i++)
        for (size_t j = 0; j < COUNT(d); j++)
            for (size_t l = 0; l < COUNT(k); l++)
                if (chosen(number++)) one_assignment((struct centers_case){n[i], d[j], k[l], false}, 0, n[i]);
    for (u32 i = 0; i < (t_few() ? 2 : 40); i++) {
        const struct centers_case c = {1 + draw(62, i, 900), 1 + draw(63, i, 80), 1 + draw(64, i, 70), draw(65, i, 3) == 0};
        const i64 from = draw(66, i, c.n), to = from + draw(67, i, c.n - (i32)from + 1);
        one_assignment(c, from, to);
    }
}

/* Without ties nearly all rows are decided on the device; on a grid the many ties are left to the host. */
EACH_CARD(ties_are_left_to_the_host) {
    const i32 n = emulated() ? 300 : 5000;
    const i32 few = one_assignment((struct centers_case){n, 8, 20, false}, 0, n);
    const i32 many = one_assignment((struct centers_case){n, 2, 20, true}, 0, n);
    printf("undecided: %d of %d random rows, %d on a grid\n", few, n, many);
    assert_true(few <= n / 100 && many > n / 10);
}

EACH_CARD(no_rows_and_values_that_are_no_numbers) {
    enum { D = 3 };
    f32 x[2 * D] = {0.5f, NAN, 0, 0.25f, 0, 0}, panel[D * LANES] = {0}, start[LANES] = {0};
    i32 label[2] = {-7, -7};
    for (i32 i = 0; i < D * LANES; i++) panel[i] = -0.1f * (f32)(i % LANES);
    struct gpu_nearest a = {.x = up(x, 2 * D), .panel = up(panel, D * LANES), .start = up(start, LANES),
                            .label = up_bytes(label, sizeof label), .d = D, .groups = 1};
    gpu_nearest(&a);
    gpu_get(label, sizeof label, a.label, sizeof label, sizeof label, 1);
    assert_int_equal(label[0], -7);
    a.to = 2;
    gpu_nearest(&a);
    gpu_get(label, sizeof label, a.label, sizeof label, sizeof label, 1);
    assert_int_equal(label[0], -1); /* a product is not a number */
    assert_int_equal(label[1], LANES - 1);
}

/* ------------------------------------------------------------------ counts by bin ------------------------------------------- */

struct counts_case {
    i32 rows, n, ninput, nclass;
};

/* Partial results of all chunks added up, as the plain loop counts: classes i64 [256][nclass]; numbers weights, then sums. */
static void count_plainly(const struct counts_case *c, const u8 *bin, const u32 *entry, i32 input, i64 *to) {
    memset(to, 0, (size_t)(2 * GPU_HISTOGRAM_BINS * imax(1, c->nclass)) * sizeof *to);
    for (i32 i = 0; i < c->n; i++) {
        const u32 row = entry[2 * i], w = entry[2 * i + 1] >> 24, v = entry[2 * i + 1] & 0xffffff;
        const u8 b = bin[(i64)input * c->rows + row];
        if (c->nclass > 0) to[(i64)b * c->nclass + v] += w;
        else to[b] += w, to[GPU_HISTOGRAM_BINS + b] += (i64)w * v;
    }
}

static void add_up(const struct counts_case *c, const u32 *part, i32 chunks, i64 *to) {
    const i64 cells = gpu_histogram_cells(c->nclass), B = GPU_HISTOGRAM_BINS;
    memset(to, 0, (size_t)(2 * B * imax(1, c->nclass)) * sizeof *to);
    for (i32 k = 0; k < chunks; k++, part += cells)
        for (i64 i = 0; i < (c->nclass > 0 ? cells : B); i++) {
            to[i] += part[i];
            if (c->nclass == 0) to[B + i] += (i64)part[B + i] + ((i64)part[2 * B + i] << 12);
        }
}

static void one_count(struct counts_case c) {
    const i32 chunks = gpu_histogram_chunks(c.n), all = 7; /* inputs that there are; the drawn ones are 6, 4, 2, .. */
    const i64 parts = (i64)c.ninput * chunks * gpu_histogram_cells(c.nclass);
    u8 *bin = mem_alloc((size_t)all * (size_t)c.rows);
    u32 *entry = mem_alloc((size_t)imax(1, c.n) * 8), *part = mem_alloc((size_t)lmax(1, parts) * sizeof *part);
    i64 *want = mem_alloc((size_t)(512 * imax(1, c.nclass)) * 8), *got = mem_alloc((size_t)(512 * imax(1, c.nclass)) * 8);
    i32 input[7];
    for (i64 i = 0; i < (i64)all * c.rows; i++) bin[i] = (u8)draw(70, i, 256);
    for (i32 i = 0; i < c.n; i++) {
        const u32 v = (u32)draw(72, i, c.nclass > 0 ? c.nclass : 1 << 24);
        entry[2 * i] = (u32)draw(71, i, c.rows);
        entry[2 * i + 1] = (u32)(i % 11 ? 1 + draw(73, i, 3) : 15) << 24 | (c.nclass == 0 && i % 5 == 0 ? 0xffffff : v);
    }
    for (i32 k = 0; k < c.ninput; k++) input[k] = all - 1 - 2 * k % all;
    room_reset();
    struct gpu_histogram h = {.bin = up_bytes(bin, (i64)all * c.rows), .bin_step = c.rows, .input = up_bytes(input, sizeof input),
                              .entry = up_bytes(entry, imax(1, c.n) * 8), .n = c.n, .ninput = c.ninput, .nclass = c.nclass,
                              .part = room(lmax(1, parts) * 4)};
    gpu_histogram(&h);
    gpu_get(part, parts * 4, h.part, parts * 4, parts * 4, 1);
    for (i32 k = 0; k < c.ninput; k++) {
        count_plainly(&c, bin, entry, input[k], want);
        add_up(&c, part + k * chunks * gpu_histogram_cells(c.nclass), chunks, got);
        assert_memory_equal(got, want, (size_t)(c.nclass > 0 ? 256 * c.nclass : 512) * sizeof *got);
    }
    mem_free(bin), mem_free(entry), mem_free(part), mem_free(want), mem_free(got);
}

EACH_CARD(counts_by_bin_equal_the_plain_loop) {
    const i32 n[] = {0, 1, 255, 257, 3000}, nclass[] = {0, 1, 2, 16, 17, 33}, ninput[] = {1, 3};
    u32 number = 0;
    for (size_t i = 0; i < COUNT(n); i++)
        for (size_t j = 0; j < COUNT(nclass); j++)
            for (size_t k = 0; k < COUNT(ninput); k++)
                if (chosen(number++)) one_count((struct counts_case){imax(1, n[i] / 2), n[i], ninput[k], nclass[j]});
    if (emulated()) return;
    one_count((struct counts_case){1000, GPU_HISTOGRAM_CHUNK, 1, 0});
    one_count((struct counts_case){1, 3 * GPU_HISTOGRAM_CHUNK + 1, 2, 0});
    one_count((struct counts_case){70000, 2 * GPU_HISTOGRAM_CHUNK + 77, 3, 5});
}

/* ------------------------------------------------------------------ max-plus steps ------------------------------------------ */

enum { WORDS = 9 };

struct paths_case {
    i32 L, n, longest;
    bool extreme; /* scores at the limit of the fixed point, and many ties */
};

static i32 score(const struct paths_case *c, u32 what, i64 i) {
    const i32 limit = viterbi_limit(c->L);
    return c->extreme ? (draw(what, i, 3) - 1) * limit : -draw(what, i, imin(limit, 4000));
}

/* The path of n words by the reference of the host. */
static void path_plainly(const struct viterbi *m, const i32 *start, const i32 *emit, const i32 *word, i32 n, u8 *path) {
    i32 v[VITERBI_LABELS + VITERBI_PAD];
    u8 *back = mem_alloc((size_t)(n * m->Lb + 1));
    struct viterbi_stream s = {.unary = emit, .ld = m->Lp, .row = word + 1, .v = v, .back = back};
    i64 gain;
    viterbi_start(m, start, emit + (i64)word[0] * m->Lp, &s);
    viterbi_ref.steps(m, 1, &s, n - 1);
    struct viterbi_walk w = {back, n - 1, viterbi_best(m, &s, &gain), path + 1};
    viterbi_trace(m, 1, &w);
    path[0] = (u8)w.label;
    mem_free(back);
}

static void some_paths(struct paths_case c) {
    const i32 L = c.L, Lp = viterbi_padded(L), unit = 1 << viterbi_shift(L);
    i32 *trans = mem_alloc((size_t)(L * L) * 4), *packed = mem_alloc((size_t)(L * Lp) * 4), *start = mem_alloc((size_t)L * 4);
    i32 *shifted = mem_alloc((size_t)L * 4), *emit = mem_alloc((size_t)(WORDS * Lp) * 4);
    i32 *first = mem_alloc((size_t)(c.n + 1) * 4);
    struct viterbi m;
    for (i32 i = 0; i < L * L; i++) trans[i] = score(&c, 80, i);
    for (i32 j = 0; j < L; j++) start[j] = score(&c, 81, j), shifted[j] = start[j] * unit;
    for (i32 i = 0; i < WORDS * Lp; i++) emit[i] = score(&c, 82, i) * unit;
    viterbi_pack(KERN_REF, L, trans, packed, &m);
    for (i32 k = 0; k < c.n; k++) first[k + 1] = first[k] + draw(83, k, c.longest + 1); /* some have no word */
    const i32 all = first[c.n];
    i32 *word = mem_alloc((size_t)(all + 1) * 4);
    u8 *want = mem_alloc((size_t)all + 1), *got = mem_alloc((size_t)all + 1);
    for (i32 i = 0; i < all; i++) word[i] = draw(84, i, WORDS);
    room_reset();
    struct gpu_viterbi v = {.trans = up_bytes(packed, 4 * (i64)(L * Lp)), .start = up_bytes(shifted, 4 * (i64)L),
                            .emit = up_bytes(emit, 4 * (i64)(WORDS * Lp)), .first = up_bytes(first, 4 * (i64)(c.n + 1)),
                            .word = up_bytes(word, 4 * (i64)(all + 1)), .back = room((i64)(all + 1) * L), .path = room(all + 1),
                            .n = c.n, .L = L, .Lp = Lp, .shift = m.shift};
    gpu_viterbi(&v);
    gpu_get(got, all, v.path, all, all, 1);
    for (i32 k = 0; k < c.n; k++)
        if (first[k + 1] > first[k]) path_plainly(&m, start, emit, word + first[k], first[k + 1] - first[k], want + first[k]);
    assert_memory_equal(got, want, (size_t)all);
    mem_free(trans), mem_free(packed), mem_free(start), mem_free(shifted), mem_free(emit), mem_free(first);
    mem_free(word), mem_free(want), mem_free(got);
}

EACH_CARD(paths_equal_those_of_the_host) {
    const i32 L[] = {1, 2, 15, 16, 17, 33, 64, 65, 129, 256}, n[] = {0, 1, 17, 40}, longest[] = {1, 7, 60};
    u32 number = 0;
    for (size_t i = 0; i < COUNT(L); i++)
        for (size_t j = 0; j < COUNT(n); j++)
            for (size_t k = 0; k < COUNT(longest); k++)
                if (chosen(number++)) some_paths((struct paths_case){L[i], n[j], longest[k], (i + j + k) % 2});
    if (emulated()) return;
    some_paths((struct paths_case){12, 3, 5000, true}); /* no length overflows */
}

TEST(devices_are_closed) { close_cards(); }

T_MAIN(cmocka_unit_test(rows_get_the_label_of_the_nearest_center), cmocka_unit_test(ties_are_left_to_the_host),
       cmocka_unit_test(no_rows_and_values_that_are_no_numbers),
       cmocka_unit_test(counts_by_bin_equal_the_plain_loop),
       cmocka_unit_test(paths_equal_those_of_the_host), cmocka_unit_test(devices_are_closed))
