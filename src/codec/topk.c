/* topk.c - the largest share of the values, with error feedback; for gradients the momentum correction of deep gradient
 * compression (Lin et al., ICLR 2018): 1 % is 100 times fewer bytes.
 *
 *     u = 0.9 u + g;  v += u;  send the largest |v|;  there v -= v'                 (weight changes: v += g)
 *
 * Momentum goes on where a value was sent.  To clear it there (u = 0, "momentum factor masking") is for many stale workers: it
 * takes up to nine tenths of the step from values that are sent often (bench/results/stores.md).
 *
 *     64 Ki values:  count u32 | count x { position u16, value bf16 }, positions ascending
 *
 * The share starts at 25 % and is divided by four every WARM_UP rounds until it is that of the choice. The number of values is
 * exact: a sample gives a size that more than k values have; a radix selection among these, in three passes, finds the k-th. Of
 * equal sizes those in front are sent. */
#include "codec/bytes.h"
#include "codec/codec.h"
#include "codec/loops.h"

#include <math.h>

enum { WARM_UP = 48, BINS = 1 << 11, SAMPLE = 61 };
#define MOMENTUM 0.9f
#define FIRST_SHARE 0.25

struct sender {
    f32 *u, *v; /* of a block */
    u32 least;  /* bits of the smallest |v| that goes */
};

static i64 scratch_floats(const struct wire_args *a) { return a->hi - a->lo + LANES; } /* a list of sizes, or of positions */
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
static u32 bin_of(const u32 *count, i64 *k) {
    i32 b = BINS - 1;
    for (; b > 0 && count[b] < *k; b--) *k -= count[b];
    return (u32)b;
}

/* A size that at least k values probably have: in a sample twice the share of k has it. 1 = take all that are not zero. */
static u32 low_size(i64 n, const f32 *v, i64 k) {
    u32 count[BINS] = {0};
    i64 want = 2 * (k / SAMPLE) + SAMPLE;
    if (2 * want > n / SAMPLE) return 1;
    for (i64 i = 0; i < n; i += SAMPLE) count[size_bits(v[i]) >> 20]++;
    const u32 b = bin_of(count, &want);
    return b ? b << 20 : 1;
}

/* Lists the sizes of at least `low`; returns how many. Block by block, so that values are still in the cache. */
static i64 sizes_from(const struct wire_loops *l, i64 n, const f32 *v, u32 low, u32 *list) {
    i64 found = 0;
    for (i64 i = 0; i < n; i += TOPK_BLOCK) {
        const i64 end = found + l->find(lmin(TOPK_BLOCK, n - i), v + i, low, list + found);
        for (; found < end; found++) list[found] = size_bits(v[i + list[found]]);
    }
    return found;
}

/* The k-th largest size of a list of more than k: its upper 11 bits, then ten, then ten. *ties = how many of that size are among
 * the k. */
static u32 threshold(i64 found, const u32 *list, i64 k, i64 *ties) {
    u32 lo = 0;
    for (i32 shift = 20, bits = 11; shift >= 0; shift -= 10, bits = 10) {
        u32 count[BINS] = {0};
        for (i64 i = 0; i < found; i++) {
            const u32 above = list[i] - lo;
            if (above >> shift >> bits == 0) count[above >> shift]++;
        }
        lo += bin_of(count, &k) << shift;
    }
    *ties = k;
    return lo;
}

/* Writes the values of a block at the positions of the list, of the size `least` only the first *ties. Returns the bytes. */
static u32 send(const struct sender *s, i64 *ties, i64 found, const u32 *list, unsigned char *out) {
    u32 bytes = 4;
    for (i64 i = 0; i < found; i++) {
        const u32 k = list[i];
        if (size_bits(s->v[k]) == s->least && (*ties)-- <= 0) continue;
        const u16 h = bf16_of(s->v[k]);
        put16(out + bytes, (u16)k);
        put16(out + bytes + 2, h);
        bytes += 4;
        const bool finite = (h & 0x7fff) < 0x7f80;
        s->v[k] = finite ? s->v[k] - of_bf16(h) : 0;
        if (s->u && !finite) s->u[k] = 0;
    }
    put32(out, (bytes - 4) / 4);
    return bytes;
}

static u32 encode(const struct wire_args *a, const f32 *g, f32 *state_, f32 *scratch, unsigned char *out) {
    const struct wire_loops *l = wire_loops();
    const i64 n = a->hi - a->lo, k = values(a, share_of(a));
    struct sender s = {a->gradient ? state_ : NULL, a->gradient ? state_ + n : state_, 1};
    u32 *list = (u32 *)(void *)scratch, bytes = 0;
    i64 ties = n;
    if (s.u)
        l->momentum(n, MOMENTUM, s.u, g, s.v);
    else
        l->add(n, s.v, g);
    const u32 low = low_size(n, s.v, k);
    i64 found = sizes_from(l, n, s.v, low, list);
    if (found < k && low > 1) found = sizes_from(l, n, s.v, 1, list); /* the sample was not like the whole */
    if (found > k) s.least = threshold(found, list, k, &ties);
    for (i64 i = 0; i < n; i += TOPK_BLOCK) {
        const struct sender block = {s.u ? s.u + i : NULL, s.v + i, s.least};
        bytes += send(&block, &ties, l->find(lmin(TOPK_BLOCK, n - i), block.v, s.least, list), list, out + bytes);
    }
    if (s.least < FLOAT_INF) return bytes;
    for (i64 i = 0; i < n; i++) { /* more of NaN and infinity than k: no residual keeps them */
        if (size_bits(s.v[i]) < FLOAT_INF) continue;
        s.v[i] = 0;
        if (s.u) s.u[i] = 0;
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
    .scratch = scratch_floats,
    .encode = encode,
    .decode = decode,
};
