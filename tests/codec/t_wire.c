/* t_wire.c - wire codecs: text, error bounds, error feedback, bytes, ranges that cut matrices, odd lengths, NaN, zeros, equal
 * bytes everywhere, malformed packets. */
#define _GNU_SOURCE
#include "t.h"

#include "base/rng.h"
#include "codec/codec.h"
#include "kern/kern.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const every[] = {"none",      "fp16",     "bf16",       "int8",       "sign",
                                    "topk:0.01", "topk:0.3", "powersgd:1", "powersgd:4", "powersgd:7"};

/* An LSTM of 40 units (Hp 48) with 9 inputs, its bias, a dense layer 48 -> 24 (Np 32), its bias. */
enum { ROWS = 49, PANELS = 3, WIDTH = 64, LSTM = ROWS * PANELS * WIDTH, BIAS = 192, K = 48, NP = 32, DENSE = LSTM + BIAS };
enum { TOTAL = DENSE + K * NP + NP };
static const struct wire_matrix matrices[] = {{0, ROWS, PANELS, WIDTH}, {DENSE, K, 1, NP}};
static const struct wire_layout net = {matrices, COUNT(matrices)};

/* A codec with buffers of the exact sizes, so that a sanitizer sees what lies outside of them. */
struct rig {
    struct wire_args a;
    f32 *state, *scratch, *got;
    unsigned char *out;
    u32 bytes;
};

static struct rig rig(const char *text, const struct wire_layout *l, i64 lo, i64 hi, bool gradient) {
    struct rig r = {.a = {.layout = l, .lo = lo, .hi = hi, .gradient = gradient}};
    T_OK(wire_parse(text, &r.a.choice));
    r.state = calloc((size_t)wire_state(&r.a) + 1, 4);
    r.scratch = malloc((size_t)wire_scratch(&r.a) * 4 + 1);
    r.got = malloc((size_t)(hi - lo) * 4 + 1);
    r.out = malloc((size_t)r.a.choice.codec->room(&r.a) + 1);
    assert_true(r.state && r.scratch && r.got && r.out);
    return r;
}

static void close_rig(struct rig *r) {
    free(r->state);
    free(r->scratch);
    free(r->got);
    free(r->out);
}

/* One round: v -> packet -> got. */
static void pass(struct rig *r, const f32 *v) {
    memset(r->got, 0x55, (size_t)(r->a.hi - r->a.lo) * 4);
    r->bytes = r->a.choice.codec->encode(&r->a, v, r->state, r->scratch, r->out);
    assert_true(r->bytes <= r->a.choice.codec->room(&r->a));
    unsigned char *copy = malloc(r->bytes + 1); /* at an odd address, of the exact size */
    assert_non_null(copy);
    memcpy(copy + 1, r->out, r->bytes);
    assert_true(r->a.choice.codec->decode(&r->a, copy + 1, r->bytes, r->got));
    free(copy);
    r->a.round++;
}

static void noise(i64 n, u32 seed, f32 scale, f32 *v) {
    for (i64 i = 0; i < n; i++)
        v[i] = scale * (rng_uniform(seed, RNG_TEST, 0, (u64)i) + rng_uniform(seed, RNG_TEST, 1, (u64)i) - 1);
}

/* Values of the flat vector [lo, hi) that are of rank 2 in both matrices of `net`, noise elsewhere. */
static void rank2(i64 lo, i64 hi, u32 seed, f32 *v) {
    noise(hi - lo, seed, 1, v);
    for (size_t m = 0; m < COUNT(matrices); m++) {
        const struct wire_matrix *x = &matrices[m];
        for (i64 i = lo; i < hi; i++) {
            const i64 k = i - x->at, row = k / x->width % x->rows, col = k / x->width / x->rows * x->width + k % x->width;
            if (k < 0 || k >= (i64)x->rows * x->panels * x->width) continue;
            v[i - lo] = sinf((f32)row) * cosf(0.7f * (f32)col) + 0.5f * cosf(0.3f * (f32)row + 1) * sinf(0.11f * (f32)col);
        }
    }
}

static f64 norm(i64 n, const f32 *x) {
    f64 s = 0;
    for (i64 i = 0; i < n; i++) s += (f64)x[i] * (f64)x[i];
    return sqrt(s);
}

TEST(parse_reads_names_and_values) {
    static const struct {
        const char *text, *name;
        f64 value;
    } good[] = {{"none", "none", 0},
                {"topk", "topk", 0.01},
                {"topk:0.001", "topk", 0.001},
                {"powersgd", "powersgd", 4},
                {"powersgd:64", "powersgd", 64}};
    for (size_t i = 0; i < COUNT(good); i++) {
        struct wire_choice c;
        T_OK(wire_parse(good[i].text, &c));
        assert_string_equal(c.codec->name, good[i].name);
        assert_true(c.value == good[i].value);
        assert_ptr_equal(c.codec, wire_find(good[i].name));
    }
    for (i32 i = 0; i < wire_count(); i++) assert_ptr_equal(wire_find(wire_at(i)->name), wire_at(i));
}

TEST(parse_refuses_with_a_fix_that_parses) {
    static const struct {
        const char *text, *what, *fix;
    } bad[] = {{"topc:0.1", "is not one of", "topk"},
               {"", "is not one of", "none"},
               {"topk:", "has no number", "topk:0.01"},
               {"topk:few", "has no number", "topk:0.01"},
               {"topk:nan", "has no number", "topk:0.01"},
               {"topk:0", "is out of range: share of the values, 1e-06 to 0.5", "topk:0.01"},
               {"powersgd:65", "is out of range: rank, 1 to 64", "powersgd:4"},
               {"powersgd:2.5", "has no whole number", "powersgd:4"},
               {"int8:4", "int8 takes none", "int8"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct wire_choice c;
        char fix[64];
        T_FAILS(wire_parse(bad[i].text, &c), E103);
        assert_non_null(strstr(err_last()->text, bad[i].what));
        snprintf(fix, sizeof fix, "%.*s", (int)strcspn(err_last()->fix, " "), err_last()->fix);
        assert_string_equal(fix, bad[i].fix);
        T_OK(wire_parse(fix, &c));
    }
}

/* Decodes every 16-bit number, encodes the result, and the midpoints between neighbours. */
static void check_halves(const char *text, u16 infinity) {
    f32 *v = malloc(65536 * 4);
    struct rig r = rig(text, NULL, 0, 65536, false);
    u16 *h = malloc(65536 * 2), *back = malloc(65536 * 2);
    assert_true(v && h && back);
    for (u32 i = 0; i < 65536; i++) h[i] = (u16)i;
    assert_true(r.a.choice.codec->decode(&r.a, (unsigned char *)h, 65536 * 2, v));
    r.a.choice.codec->encode(&r.a, v, NULL, NULL, (unsigned char *)back);
    for (u32 i = 0; i < 65536; i++) {
        if ((i & 0x7fff) > infinity)
            assert_true(isnan(v[i]) && (back[i] & 0x7fff) > infinity && (back[i] & 0x8000) == (i & 0x8000));
        else
            assert_int_equal(back[i], i);
    }
    for (u32 i = 0; i + 1 < infinity; i++) { /* halves of f32 mantissas are exact */
        const f32 mid = 0.5f * v[i] + 0.5f * v[i + 1];
        const f32 ask[3] = {mid, nextafterf(mid, 0), nextafterf(mid, INFINITY)};
        const u32 want[3] = {i + (i & 1), i, i + 1};
        u16 got[3];
        struct wire_args a = r.a;
        a.hi = 3;
        a.choice.codec->encode(&a, ask, NULL, NULL, (unsigned char *)got);
        for (i32 k = 0; k < 3; k++)
            if (fabsf(mid) > 1e-37f) assert_int_equal(got[k], want[k]);
    }
    close_rig(&r);
    free(v);
    free(h);
    free(back);
}

TEST(fp16_and_bf16_round_to_nearest_even) {
    check_halves("fp16", 0x7c00);
    check_halves("bf16", 0x7f80);
}

TEST(fp16_saturates_but_keeps_infinity) {
    const f32 v[8] = {65519.99f, 65520, -1e30f, 3e38f, INFINITY, -INFINITY, NAN, 1e-30f};
    const f32 want[6] = {65504, 65504, -65504, 65504, INFINITY, -INFINITY};
    struct rig r = rig("fp16", NULL, 0, 8, false);
    pass(&r, v);
    for (i32 i = 0; i < 6; i++) assert_true(r.got[i] == want[i]);
    assert_true(isnan(r.got[6]) && r.got[7] == 0);
    close_rig(&r);
}

TEST(codecs_keep_their_error_bounds) {
    enum { N = 4096 };
    static f32 v[N];
    noise(N, 3, 2, v);
    const struct {
        const char *text;
        f64 most; /* largest error, of values up to 2 */
    } bound[] = {{"none", 0}, {"fp16", 1.0 / 2048}, {"bf16", 1.0 / 256}, {"int8", 2.0 / 127 / 2 * 1.001}};
    for (size_t b = 0; b < COUNT(bound); b++) {
        struct rig r = rig(bound[b].text, NULL, 0, N, false);
        pass(&r, v);
        for (i64 i = 0; i < N; i++) assert_true(fabs((f64)v[i] - (f64)r.got[i]) <= bound[b].most);
        close_rig(&r);
    }
    /* sign: two values a block, the means, so the block keeps its sum; at most the error of one mean */
    struct rig r = rig("sign", NULL, 0, N, false);
    pass(&r, v);
    for (i64 i = 0; i < N; i++) assert_true((v[i] > 0) == (r.got[i] > 0));
    for (i64 b = 0; b < N; b += 512) {
        f64 up = 0, count = 0, sent = 0;
        for (i64 i = b; i < b + 512; i++)
            if (v[i] > 0) up += (f64)v[i], count++, sent = (f64)r.got[i];
        assert_true(fabs(sent - up / count) < sent / 256);
    }
    close_rig(&r);
}

/* The k-th largest |v|, by sorting. */
static int by_size(const void *a, const void *b) {
    const f32 x = fabsf(*(const f32 *)a), y = fabsf(*(const f32 *)b);
    return (x < y) - (x > y);
}

/* Deep gradient compression as it is written, without momentum factor masking, with sorting; a tie goes to the smaller index. */
static void dgc(i64 n, i64 k, bool gradient, const f32 *g, f32 *u, f32 *v, f32 *sent) {
    f32 *sorted = malloc((size_t)n * 4);
    assert_non_null(sorted);
    for (i64 i = 0; i < n; i++) {
        u[i] = (gradient ? 0.9f * u[i] : 0) + g[i];
        v[i] += u[i];
    }
    memcpy(sorted, v, (size_t)n * 4);
    qsort(sorted, (size_t)n, 4, by_size);
    const f32 least = fabsf(sorted[k - 1]);
    i64 above = 0;
    while (above < k && fabsf(sorted[above]) > least) above++;
    i64 ties = k - above;
    for (i64 i = 0; i < n; i++) {
        u32 bits;
        sent[i] = 0;
        if (fabsf(v[i]) < least || v[i] == 0 || (fabsf(v[i]) == least && ties-- <= 0)) continue;
        memcpy(&bits, &v[i], 4);
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
        memcpy(&sent[i], &bits, 4);
        v[i] -= sent[i];
    }
    free(sorted);
}

static void check_dgc(i64 n, bool gradient, bool steps) {
    f32 *g = calloc((size_t)n, 4), *u = calloc((size_t)n, 4), *v = calloc((size_t)n, 4), *sent = calloc((size_t)n, 4);
    assert_true(g && u && v && sent);
    struct rig r = rig("topk:0.01", NULL, 0, n, gradient);
    const i64 rounds[] = {0, 47, 48, 96, 143, 144, 1000}; /* 25, 25, 6.25, 1.5625, 1.5625, 1, 1 % */
    const f64 share[] = {0.25, 0.25, 0.0625, 0.015625, 0.015625, 0.01, 0.01};
    for (size_t i = 0; i < COUNT(rounds); i++) {
        noise(n, (u32)i, 1, g);
        if (steps) /* many equal values, and many zeros */
            for (i64 j = 0; j < n; j++) g[j] = j % 3 ? 0 : roundf(4 * g[j]);
        r.a.round = rounds[i];
        pass(&r, g);
        dgc(n, (i64)ceil(share[i] * (f64)n), gradient, g, u, v, sent);
        for (i64 j = 0; j < n; j++) assert_true(sent[j] == r.got[j]);
    }
    close_rig(&r);
    free(g);
    free(u);
    free(v);
    free(sent);
}

TEST(topk_equals_deep_gradient_compression_by_sorting) {
    const i64 n[] = {1, 17, 1000, 70001};
    for (size_t i = 0; i < COUNT(n); i++)
        for (i32 way = 0; way < 4; way++) check_dgc(n[i], way & 1, way & 2);
}

/* The sample of topk meets every 61st value: make these large, then tiny, so that it misleads. */
TEST(topk_is_exact_where_its_sample_misleads) {
    enum { N = 300000 };
    f32 *v = malloc(N * 4);
    assert_non_null(v);
    for (i32 way = 0; way < 2; way++) {
        struct rig r = rig("topk:0.01", NULL, 0, N, false);
        r.a.round = 1000;
        for (i64 i = 0; i < N; i++) v[i] = (i % 61 == 0) == (way == 0) ? 2.0f + 1e-6f * (f32)i : 1e-3f + 1e-9f * (f32)i;
        pass(&r, v);
        i64 sent = 0;
        for (i64 i = 0; i < N; i++) sent += r.got[i] != 0;
        assert_int_equal(sent, N / 100);
        for (i64 i = N - 1, left = N / 100; left > 0; i--) { /* values grow with i: the last ones of the large kind go */
            if (v[i] < 1) continue;
            assert_true(r.got[i] != 0);
            left--;
        }
        close_rig(&r);
    }
    free(v);
}

TEST(powersgd_is_exact_for_matrices_of_its_rank) {
    static f32 v[TOTAL];
    rank2(0, TOTAL, 5, v);
    struct rig r = rig("powersgd:4", &net, 0, TOTAL, false);
    for (i32 k = 0; k < 3; k++) {
        pass(&r, v);
        t_near("of rank 2", r.got, v, TOTAL, 1e-5);
    }
    for (i64 i = LSTM; i < DENSE; i++) assert_true(r.got[i] == v[i]); /* biases are not compressed */
    close_rig(&r);
}

/* Ranks 1 to 7 leave what a singular value decomposition leaves, with warm start on the same matrix. */
TEST(powersgd_error_falls_with_the_rank) {
    static f32 v[LSTM];
    const i32 cols = PANELS * WIDTH;
    memset(v, 0, sizeof v);
    for (i32 k = 0; k < 8; k++) /* singular values 2^-k: cosines over rows and columns are orthogonal */
        for (i32 i = 0; i < ROWS; i++)
            for (i32 j = 0; j < cols; j++)
                v[((i64)(j / WIDTH) * ROWS + i) * WIDTH + j % WIDTH] +=
                    (f32)(ldexp(2, -k) / sqrt((f64)ROWS * cols) * cos(M_PI * (k + 1) * (i + 0.5) / ROWS) *
                          cos(M_PI * (k + 1) * (j + 0.5) / cols));
    f64 before = norm(LSTM, v);
    for (i32 rank = 1; rank <= 7; rank += 3) {
        char text[32];
        f64 want = 0;
        snprintf(text, sizeof text, "powersgd:%d", rank);
        struct rig r = rig(text, &net, 0, LSTM, false);
        for (i32 k = 0; k < 8; k++) {
            memset(r.state, 0, LSTM * 4); /* without the residual: power iterations on v */
            pass(&r, v);
        }
        for (i64 i = 0; i < LSTM; i++) r.got[i] -= v[i];
        for (i32 k = rank; k < 8; k++) want += ldexp(1, -2 * k);
        assert_true(fabs(norm(LSTM, r.got) - sqrt(want)) < 0.01 * sqrt(want) + 1e-6);
        assert_true(norm(LSTM, r.got) < before);
        before = norm(LSTM, r.got);
        close_rig(&r);
    }
}

/* The sum of what went in minus the sum of what came out, over some rounds, is the residual. */
struct feedback {
    f64 want[TOTAL], got[TOTAL];
    f64 early, late, input; /* largest norms: of that difference in each half of the rounds, and of one input */
};

static void feed(struct rig *r, i32 rounds, struct feedback *f) {
    static f32 v[TOTAL], bias[TOTAL];
    noise(TOTAL, 77, 0.3f, bias);
    memset(f, 0, sizeof *f);
    r->a.round = 1000;
    for (i32 k = 0; k < rounds; k++) {
        f64 off = 0;
        noise(TOTAL, 100 + (u32)k, 1, v);
        for (i64 i = 0; i < TOTAL; i++) v[i] += bias[i];
        pass(r, v);
        for (i64 i = 0; i < TOTAL; i++) {
            f->want[i] += (f64)v[i];
            f->got[i] += (f64)r->got[i];
            off += (f->want[i] - f->got[i]) * (f->want[i] - f->got[i]);
        }
        f64 *most = k < rounds / 2 ? &f->early : &f->late;
        *most = fmax(*most, sqrt(off));
        f->input = fmax(f->input, norm(TOTAL, v));
    }
}

/* The residual settles at a multiple of one input, so the mean of the decoded vectors converges to that of the inputs. */
TEST(error_feedback_keeps_the_sum_of_the_inputs) {
    static const struct {
        const char *text;
        f64 most;  /* residual / input */
        bool kept; /* the residual is the state itself, all of it */
    } bound[] = {{"int8", 0.01, true},    {"sign", 1, true},        {"topk:0.01", 14, true},
                 {"topk:0.3", 0.8, true}, {"powersgd:4", 4, false}, {"powersgd:7", 3, false}};
    static struct feedback f;
    for (size_t c = 0; c < COUNT(bound); c++) {
        struct rig r = rig(bound[c].text, &net, 0, TOTAL, false);
        feed(&r, 300, &f);
        assert_true(f.late < bound[c].most * f.input);
        assert_true(f.late < 1.1 * f.early);
        for (i64 i = 0; bound[c].kept && i < TOTAL; i++) assert_true(fabs(f.want[i] - f.got[i] - (f64)r.state[i]) < 1e-3);
        close_rig(&r);
    }
}

TEST(packets_save_the_promised_bytes) {
    enum { H = 512, I = 16, N = (I + H) * H * 4 };
    const struct wire_matrix lstm = {0, I + H, H / LANES, 4 * LANES};
    const struct wire_layout layout = {&lstm, 1};
    const struct {
        const char *text;
        f64 least;
    } promise[] = {{"none", 1},  {"fp16", 2},       {"bf16", 2},         {"int8", 3.9},
                   {"sign", 20}, {"topk:0.01", 50}, {"topk:0.001", 500}, {"powersgd:4", 10}};
    f32 *v = malloc(N * 4);
    assert_non_null(v);
    noise(N, 1, 1, v);
    for (size_t i = 0; i < COUNT(promise); i++) {
        struct rig r = rig(promise[i].text, &layout, 0, N, true);
        r.a.round = 1000;
        pass(&r, v);
        assert_true(4.0 * N / r.bytes >= promise[i].least);
        close_rig(&r);
    }
    free(v);
}

TEST(ranges_may_cut_matrices_anywhere) {
    static f32 v[TOTAL];
    for (u64 k = 0; k < (t_few() ? 40 : 400); k++) {
        u32 w[4];
        rng_words(9, RNG_TEST, 3, k, w);
        const i64 lo = w[0] % TOTAL, hi = lo + w[1] % (u32)(TOTAL - lo + 1);
        for (size_t c = 0; c < COUNT(every); c++) {
            if (strncmp(every[c], "powersgd", 8) != 0 && k > 20) continue;
            struct rig r = rig(every[c], &net, lo, hi, k & 1);
            rank2(lo, hi, (u32)k, v);
            pass(&r, v);
            pass(&r, v);
            if (!strcmp(every[c], "powersgd:4") || !strcmp(every[c], "powersgd:7"))
                for (i64 i = 0; i < hi - lo; i++) assert_true(fabsf(r.got[i] - v[i]) < 2e-5f);
            if (k == 0 && !strcmp(every[c], "powersgd:4")) assert_true(r.bytes <= 4 * (u32)(hi - lo));
            close_rig(&r);
        }
    }
}

TEST(pieces_of_cut_panels_are_factored) {
    /* 10 rows of panel 0, panel 1 whole, 20 rows of panel 2, each 4 (rows + 64) floats; 3 + 5 floats of cut rows go as they are
     */
    const i64 lo = (ROWS - 10) * WIDTH - 3, hi = (2 * ROWS + 20) * WIDTH + 5;
    static f32 v[LSTM];
    struct rig r = rig("powersgd:4", &net, lo, hi, true);
    rank2(lo, hi, 1, v);
    pass(&r, v);
    assert_int_equal(r.bytes, 4 * (3 + 5 + 4 * (10 + 64 + ROWS + 64 + 20 + 64)));
    close_rig(&r);
}

TEST(every_length_passes) {
    static f32 v[66000];
    static const i64 from[] = {0, 250, 505, 65530}, to[] = {70, 262, 520, 65542};
    noise(COUNT(v), 8, 1, v);
    for (size_t c = 0; c < COUNT(every); c++)
        for (size_t s = 0; s < COUNT(from); s++)
            for (i64 n = from[s]; n < to[s]; n += t_few() ? 5 : 1) {
                struct rig r = rig(every[c], NULL, 3, 3 + n, n & 1);
                pass(&r, v);
                if (n == 0) assert_int_equal(r.bytes, 0);
                pass(&r, v);
                close_rig(&r);
            }
}

TEST(zeros_stay_zero) {
    static f32 v[TOTAL];
    for (size_t c = 0; c < COUNT(every); c++) {
        struct rig r = rig(every[c], &net, 0, TOTAL, true);
        for (i32 k = 0; k < 20; k++) {
            noise(TOTAL, (u32)k, 1, v);
            for (i64 i = 0; i < TOTAL; i++) /* padding of 8 of 48 units and 8 of 32 outputs, and a row without gradient */
                if (i < LSTM ? (i / WIDTH / ROWS == 2 && i % LANES >= 8) || i / WIDTH % ROWS == 3 : i >= DENSE && i % NP >= 24)
                    v[i] = 0;
            pass(&r, v);
            for (i64 i = 0; i < TOTAL; i++)
                if (v[i] == 0) assert_true(r.got[i] == 0);
        }
        close_rig(&r);
    }
}

/* The receiver sees that something is wrong, nothing hangs, and the rounds after it are finite. */
TEST(nan_and_infinity_arrive_and_pass) {
    static f32 v[TOTAL];
    const f32 bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t c = 0; c < COUNT(every); c++)
        for (size_t b = 0; b < COUNT(bad); b++)
            for (i32 many = 0; many < 2; many++) {
                struct rig r = rig(every[c], &net, 0, TOTAL, many);
                r.a.round = 1000;
                for (i32 k = 0; k < 4; k++) {
                    i64 found = 0;
                    noise(TOTAL, (u32)k, 1, v);
                    for (i64 i = 100; k == 1 && i < (many ? TOTAL : 101); i += 2) v[i] = bad[b];
                    pass(&r, v);
                    for (i64 i = 0; i < TOTAL; i++) found += !isfinite(r.got[i]);
                    assert_true(k == 1 ? found > 0 && (many || !isfinite(r.got[100])) : found == 0);
                    for (i64 i = 0; i < wire_state(&r.a); i++) assert_true(isfinite(r.state[i]));
                }
                close_rig(&r);
            }
}

TEST(huge_and_tiny_values_pass) {
    static f32 v[TOTAL];
    const f32 scale[] = {1e38f, 1e30f, 1e-20f, 1e-30f, 1e-38f, 1e-42f, 0};
    for (size_t c = 0; c < COUNT(every); c++)
        for (size_t s = 0; s < COUNT(scale); s++) {
            struct rig r = rig(every[c], &net, 0, TOTAL, true);
            for (i32 k = 0; k < 4; k++) {
                noise(TOTAL, (u32)k, scale[s], v);
                pass(&r, v);
                for (i64 i = 0; i < wire_state(&r.a); i++) assert_true(isfinite(r.state[i]));
                if (scale[s] < 1e30f)
                    for (i64 i = 0; i < TOTAL; i++) assert_true(isfinite(r.got[i]));
            }
            close_rig(&r);
        }
}

static u64 hash(u64 h, const unsigned char *p, u32 n) {
    for (u32 i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

/* Recorded once; every instruction set, compiler and machine gives these bytes. */
TEST(packets_are_the_same_everywhere) {
    static const u64 want[COUNT(every)] = {0xb0ece1674500dc25, 0x288d756e4310cf21, 0x05f82159b7f7a271, 0x74220db6a07ebaa8,
                                           0x40abefc2bc466cb8, 0x46e33e6e9ef41eba, 0xce5f33fc0aa90c3c, 0x339898d33bf785e3,
                                           0x109a70492256b2c1, 0xcc46e44d6922ff56};
    static f32 v[TOTAL];
    bool same = true;
    for (size_t c = 0; c < COUNT(every); c++) {
        u64 h = 0xcbf29ce484222325u;
        struct rig r = rig(every[c], &net, 0, TOTAL - 5, true);
        for (u32 k = 0; k < 5; k++) {
            noise(TOTAL, k, 0.01f, v);
            for (i64 i = 0; i < TOTAL; i += 97) v[i] = 0;
            r.a.round = k * 50;
            pass(&r, v);
            h = hash(hash(h, r.out, r.bytes), (const unsigned char *)r.got, 4 * (TOTAL - 5));
        }
        h = hash(h, (const unsigned char *)r.state, 4 * (u32)wire_state(&r.a));
        if (h != want[c]) print_error("%s: 0x%016llx\n", every[c], (unsigned long long)h);
        same = same && h == want[c];
        close_rig(&r);
    }
    assert_true(same);
}

/* Decodes a damaged packet of exactly this size; the sanitizers watch. Returns whether it was accepted. */
static bool accepts(struct rig *r, const unsigned char *packet, u32 bytes) {
    unsigned char *copy = malloc(bytes + 1);
    assert_non_null(copy);
    memcpy(copy, packet, bytes);
    f32 *v = malloc((size_t)(r->a.hi - r->a.lo) * 4);
    assert_non_null(v);
    const bool good = r->a.choice.codec->decode(&r->a, copy, bytes, v);
    free(v);
    free(copy);
    return good;
}

TEST(malformed_packets_are_refused) {
    enum { LO = 2000, HI = 9000 };
    static f32 v[HI - LO];
    noise(HI - LO, 4, 1, v);
    for (i64 i = 0; i < HI - LO; i += 31) v[i] = 0;
    for (size_t c = 0; c < COUNT(every); c++) {
        struct rig r = rig(every[c], &net, LO, HI, true);
        pass(&r, v);
        unsigned char *p = malloc(r.bytes + 64);
        assert_non_null(p);
        memcpy(p, r.out, r.bytes);
        memset(p + r.bytes, 0, 64);
        assert_true(accepts(&r, p, r.bytes));
        for (u32 n = 0; n < r.bytes; n += n < 600 ? 1 : 97) assert_false(accepts(&r, p, n));
        for (u32 n = 1; n < 64; n++) assert_false(accepts(&r, p, r.bytes + n));
        for (u64 k = 0; k < (t_few() ? 500 : 3000); k++) { /* flipped bits, sometimes in a packet cut short */
            u32 w[4];
            rng_words(5, RNG_TEST, 6, k, w);
            const u32 at = k & 1 ? w[0] % r.bytes : w[0] % (u32)imin(64, (i32)r.bytes);
            p[at] ^= (unsigned char)(1 + w[1] % 255);
            accepts(&r, p, k & 2 ? r.bytes : w[2] % r.bytes);
            p[at] = r.out[at];
        }
        free(p);
        close_rig(&r);
    }
}

TEST(topk_refuses_positions_that_do_not_ascend) {
    struct rig r = rig("topk:0.5", NULL, 0, 10, false);
    const u16 good[] = {2, 0, 3, 0x3f80, 9, 0x4000}, twice[] = {2, 0, 3, 0x3f80, 3, 0x4000},
              outside[] = {2, 0, 3, 0x3f80, 10, 0x4000};
    assert_true(accepts(&r, (const unsigned char *)good, sizeof good));
    assert_false(accepts(&r, (const unsigned char *)twice, sizeof twice));
    assert_false(accepts(&r, (const unsigned char *)outside, sizeof outside));
    close_rig(&r);
}

T_MAIN(cmocka_unit_test(parse_reads_names_and_values), cmocka_unit_test(parse_refuses_with_a_fix_that_parses),
       cmocka_unit_test(fp16_and_bf16_round_to_nearest_even), cmocka_unit_test(fp16_saturates_but_keeps_infinity),
       cmocka_unit_test(codecs_keep_their_error_bounds), cmocka_unit_test(topk_equals_deep_gradient_compression_by_sorting),
       cmocka_unit_test(topk_is_exact_where_its_sample_misleads), cmocka_unit_test(powersgd_is_exact_for_matrices_of_its_rank),
       cmocka_unit_test(powersgd_error_falls_with_the_rank), cmocka_unit_test(error_feedback_keeps_the_sum_of_the_inputs),
       cmocka_unit_test(packets_save_the_promised_bytes), cmocka_unit_test(ranges_may_cut_matrices_anywhere),
       cmocka_unit_test(pieces_of_cut_panels_are_factored), cmocka_unit_test(every_length_passes),
       cmocka_unit_test(zeros_stay_zero), cmocka_unit_test(nan_and_infinity_arrive_and_pass),
       cmocka_unit_test(huge_and_tiny_values_pass), cmocka_unit_test(packets_are_the_same_everywhere),
       cmocka_unit_test(malformed_packets_are_refused), cmocka_unit_test(topk_refuses_positions_that_do_not_ascend))
