/* touched.c - passes over the lines of a table that were touched. */
#include "exec/touched.h"

#include <string.h>

#include "base/mem.h"
#include "exec/bound.h"

/* BLOCK: lines that are looked at together; MANY: where more than one in so many was touched, all are passed over. */
enum { LINE = LANES * sizeof(f32), WORD = sizeof(u64), BLOCK = MERGE_BLOCK / LANES, MANY = 16 };

err touched_new(const struct plan *p, u8 **out) {
    *out = NULL;
    if (!netplan(p)->train || p->ntable == 0) return 0;
    NEW(*out, touched_bytes(p));
    return 0;
}

static u64 word(const u8 *at) {
    u64 w;
    memcpy(&w, at, WORD);
    return w;
}

/* The first line from i on that a or b has touched, n = none.  Little-endian machines. */
static inline i64 next_line(const u8 *a, const u8 *b, i64 i, i64 n) {
    for (; i + WORD <= n; i += WORD) {
        const u64 w = word(a + i) | word(b + i);
        if (w) return i + __builtin_ctzll(w) / 8;
    }
    while (i < n && !(a[i] | b[i])) i++;
    return i;
}

/* Lines of n that a or b has touched. */
static i64 count_of(const u8 *a, const u8 *b, i64 n) {
    i64 i = 0, count = 0;
    for (; i + WORD <= n; i += WORD) count += (i64)((word(a + i) | word(b + i)) * 0x0101010101010101 >> 56);
    for (; i < n; i++) count += a[i] | b[i];
    return count;
}

static void clear_block(i64 n, f32 *lines, u8 *touched) {
    const i64 count = count_of(touched, touched, n);
    if (count == 0) return;
    if (count > n / MANY) memset(lines, 0, (size_t)n * LINE);
    else
        for (i64 i = next_line(touched, touched, 0, n); i < n; i = next_line(touched, touched, i + 1, n))
            memset(lines + i * LANES, 0, LINE);
    memset(touched, 0, (size_t)n);
}

static void clear(i64 n, struct grads v) {
    for (i64 i = 0; i < n; i += BLOCK) clear_block(lmin(BLOCK, n - i), v.grad + i * LANES, v.touched + i);
}

static void add_line(f32 *y, const f32 *x) {
    for (i32 j = 0; j < LANES; j++) y[j] += x[j];
}

/* n at most BLOCK. */
static void add(const struct kern *k, i64 n, struct grads a, struct grads b) {
    const i64 count = count_of(a.touched, b.touched, n);
    if (count == 0) return;
    if (count > n / MANY) {
        k->add(n * LANES, a.grad, b.grad);
        for (i64 i = 0; i < n; i++) a.touched[i] |= b.touched[i];
        return;
    }
    for (i64 i = next_line(a.touched, b.touched, 0, n); i < n; i = next_line(a.touched, b.touched, i + 1, n)) {
        a.touched[i] = 1;
        add_line(a.grad + i * LANES, b.grad + i * LANES);
    }
}

/* From element `at` of a grain's vector on. */
static struct grads from(const struct plan *p, struct grads g, i32 grain, i64 at) {
    const i64 place = grain * netplan(p)->ntheta + at;
    return (struct grads){g.grad + place, g.touched + place / LANES};
}

void touched_zero(const struct plan *p, struct grads g, i32 grain) {
    for (i64 at = 0, end; at < netplan(p)->ntheta; at = end) {
        const bool table = plan_table_at(p, at, &end) != NULL;
        end = lmin(end, netplan(p)->ntheta);
        const struct grads v = from(p, g, grain, at);
        if (table) clear((end - at) / LANES, v);
        else memset(v.grad, 0, (size_t)(end - at) * sizeof(f32));
    }
}

void touched_merge(const struct exec *x, struct grads g, i32 a, i32 b, i64 lo, i64 hi) {
    for (i64 at = lo, end; at < hi; at = end) {
        const bool table = plan_table_at(x->plan, at, &end) != NULL;
        const struct grads to = from(x->plan, g, a, at), what = from(x->plan, g, b, at);
        end = lmin(end, hi);
        if (table) add(x->kern, (end - at) / LANES, to, what);
        else x->kern->add(end - at, to.grad, what.grad);
    }
}

u32 touched_pack(i64 n, const f32 *lines, const u8 *touched, unsigned char *out) {
    const u32 count = (u32)lines_sent(n, count_of(touched, touched, n));
    unsigned char *number = out + sizeof count, *to = number + lines_numbers(n, count);
    memcpy(out, &count, sizeof count);
    if (count == n) memcpy(to, lines, (size_t)n * LINE);
    for (i64 i = next_line(touched, touched, 0, n); count < n && i < n; i = next_line(touched, touched, i + 1, n)) {
        const u16 which = (u16)i;
        memcpy(number, &which, sizeof which);
        memcpy(to, lines + i * LANES, LINE);
        number += sizeof which;
        to += LINE;
    }
    return (u32)lines_bytes(n, count);
}

bool touched_unpack(i64 n, f32 *lines, u8 *touched, const unsigned char *in, u32 bytes) {
    u32 count;
    u16 number;
    memcpy(&count, in, sizeof count);
    if (count > n || lines_bytes(n, count) != bytes) return false;
    const unsigned char *from = in + sizeof count + lines_numbers(n, count);
    clear(n, (struct grads){lines, touched});
    for (u32 k = 0; k < count; k++, from += LINE) {
        i64 i = k;
        if (count < n) {
            memcpy(&number, in + sizeof count + k * sizeof number, sizeof number);
            i = number;
        }
        if (i >= n) return false;
        memcpy(lines + i * LANES, from, LINE);
        touched[i] = 1;
    }
    return true;
}
