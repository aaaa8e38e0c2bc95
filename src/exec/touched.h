/* touched.h - gradients of tables by lines of LANES floats: a byte says of each line of a grain's vector whether it was touched.
 *
 *     lines    0    1    2    3    4    5  ..        what is not touched is zero: nobody zeroes it again, adds it or sends it
 *     grad.0   0   .3    0    0  -.1    0
 *     touched  0    1    0    0    1    0   --pack--> | 2 | 1 4 | .3 .. | -.1 .. | --unpack--> the same, on another rank
 *
 * Sums are those of whole vectors, to the bit: a line that either side has touched is added as it is, and zeros to zeros make
 * zeros.  Lines that count as touched without need change nothing. */
#ifndef STRETTO_EXEC_TOUCHED_H
#define STRETTO_EXEC_TOUCHED_H

#include "plan/exchange.h"
#include "step/netplan.h"

struct exec;

/* Gradient vectors [ngrain][ntheta], and what was touched of them; touched NULL = the plan has no tables. */
struct grads {
    f32 *grad;
    u8 *touched;
};

err touched_new(const struct plan *p, u8 **out);
static inline i64 touched_bytes(const struct plan *p) { return p->ntable > 0 ? p->ngrain * netplan(p)->ntheta / LANES : 0; }
void touched_zero(const struct plan *p, struct grads g, i32 grain);
void touched_merge(const struct exec *x, struct grads g, i32 a, i32 b, i64 lo, i64 hi); /* [lo,hi) of vector a += that of b */

/* n lines: written to `out`, which has lines_bytes(n, n); returns the bytes, never more.  And back: false where they make no
 * sense. */
u32 touched_pack(i64 n, const f32 *lines, const u8 *touched, unsigned char *out);
bool touched_unpack(i64 n, f32 *lines, u8 *touched, const unsigned char *in, u32 bytes);

#endif
