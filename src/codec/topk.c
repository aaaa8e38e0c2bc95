/* topk.c - the largest share of the values, with error feedback; for gradients deep gradient compression (Lin et al., ICLR 2018): 1 %
 * is 100 times fewer bytes.
 *
 *     u = 0.9 u + g;  v += u;  send the largest |v|;  there v -= v', u = 0          (weight changes: v += g)
 *
 *     64 Ki values:  count u32 | count x { position u16, value bf16 }, positions ascending
 *
 * The share starts at 25 % and is divided by four every WARM_UP rounds until it is that of the choice. The number of values is
 * exact: a radix selection in three passes finds the k-th largest |v|; of equal ones, those in front are sent. A sample only says
 * which small values the first pass may skip. */
#include "codec/bytes.h"
#include "codec/codec.h"
#include "codec/loops.h"

#include <math.h>

enum { WARM_UP = 64, BINS = 1 << 11, SAMPLE = 61 };
#define MOMENTUM 0.9f
#define FIRST_SHARE 0.25

static i64 state(const struct wire_args *a) { return (a->gradient ? 2 : 1) * (a->hi - a->lo); }

static i64 values(const struct wire_args *a, f64 share) {
    const i64 n = a->hi - a->lo;
    return lmin(n, (i64)ceil(share * (f64)n));
}

static f64 share_of(const struct wire_args *a) {
    f64 share = FIRST_SHARE;
    for (i64 left = a->round - WARM_UP; left >= 0 && share > a->choice.value; left -= WARM_UP) share /= 4;
    return dmax(share, a->choice.value);
}

static i64 room(const struct wire_args *a) {
    return 4 * ((a->hi - a->lo + TOPK_BLOCK - 1) / TOPK_BLOCK) + 4 * values(a, dmax(FIRST_SHARE, a->choice.value));
}

/* The bin that holds the k-th largest value, counted from the last one; *k becomes its rank within that bin. */
static u32 bin_of(const u32 *count, i32 bins, i64 *k) {
    i32 b = bins - 1;
    for (; b > 0 && count[b] < *k; b--) *k -= count[b];
    return (u32)b;
}

/* A bin above which at least k values probably lie: a sample has twice as many as that share. */
static u32 low_bin(i64 n, const f32 *v, i64 k, u32 count[BINS]) {
    i64 want = 2 * (k / SAMPLE) + SAMPLE;
    if (2 * want > n / SAMPLE) return 0;
    for (i64 i = 0; i < n; i += SAMPLE) count[size_bits(v[i]) >> 20]++;
    return bin_of(count, BINS, &want);
}

/* Bits of the k-th largest |v|: the upper 11 bits, then ten, then ten. *ties = how many values of that size are among the k. */
static u32 threshold(const struct wire_loops *l, i64 n, const f32 *v, i64 k, i64 *ties) {
    u32 count[BINS] = {0};
    i64 found = 0;
    u32 lo = low_bin(n, v, k, count) << 20;
    memset(count, 0, sizeof count);
    l->count_sizes(n, v, lo, 20, count, BINS);
    for (i32 b = 0; b < BINS; b++) found += count[b];
    if (found < k) { /* the sample was not like the whole */
        lo = 0;
        memset(count, 0, sizeof count);
        l->count_sizes(n, v, lo, 20, count, BINS);
    }
    lo += bin_of(count, BINS, &k) << 20;
    for (i32 shift = 10; shift >= 0; shift -= 10) {
        memset(count, 0, sizeof count);
        l->count_sizes(n, v, lo, shift, count, BINS / 2);
        lo += bin_of(count, BINS / 2, &k) << shift;
    }
    *ties = k;
    return lo;
}

static u32 encode(const struct wire_args *a, const f32 *g, f32 *s, f32 *scratch, unsigned char *out) {
    const struct wire_loops *l = wire_loops();
    const i64 n = a->hi - a->lo;
    f32 *u = a->gradient ? s : NULL, *v = a->gradient ? s + n : s;
    u32 bytes = 0;
    i64 ties = 0;
    (void)scratch;
    if (u)
        l->momentum(n, MOMENTUM, u, g, v);
    else
        l->add(n, v, g);
    u32 least = threshold(l, n, v, values(a, share_of(a)), &ties);
    if (least == 0) least = 1, ties = n; /* fewer values than k are not zero */
    for (i64 i = 0; i < n; i += TOPK_BLOCK) {
        const i32 sent = l->to_topk(lmin(TOPK_BLOCK, n - i), u ? u + i : NULL, v + i, least, &ties, out + bytes + 4);
        put32(out + bytes, (u32)sent);
        bytes += 4 + 4 * (u32)sent;
    }
    if (least < FLOAT_INF) return bytes;
    for (i64 i = 0; i < n; i++) { /* more of NaN and infinity than k: no residual keeps them */
        if (size_bits(v[i]) < FLOAT_INF) continue;
        v[i] = 0;
        if (u) u[i] = 0;
    }
    return bytes;
}

static bool decode(const struct wire_args *a, const unsigned char *in, u32 bytes, f32 *v) {
    const i64 n = a->hi - a->lo;
    u32 at = 0;
    for (i64 i = 0; i < n; i += TOPK_BLOCK, v += TOPK_BLOCK) {
        const i64 m = lmin(TOPK_BLOCK, n - i);
        if (bytes - at < 4) return false;
        const u32 sent = get32(in + at);
        at += 4;
        if (sent > m || (bytes - at) / 4 < sent) return false;
        memset(v, 0, (size_t)m * sizeof *v);
        i64 last = -1;
        for (u32 j = 0; j < sent; j++, at += 4) {
            const i64 k = get16(in + at);
            if (k <= last || k >= m) return false;
            v[k] = of_bf16(get16(in + at + 2));
            last = k;
        }
    }
    return at == bytes;
}

extern const struct wire_codec wire_topk;
const struct wire_codec wire_topk = {
    .name = "topk",
    .help = "the largest share of the values, with error feedback",
    .unit = "share of the values",
    .value = 0.01,
    .least = 1e-6,
    .most = 0.5,
    .room = room,
    .state = state,
    .encode = encode,
    .decode = decode,
};
