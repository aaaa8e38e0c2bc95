/* loops.h - private to src/codec: the inner loops of the codecs, compiled once per instruction set (loops.c).
 *
 * Loops of one name give the same bits on every set: what they sum, they sum in LANES partial sums by index, then as a binary
 * tree, and nothing fuses a multiplication with an addition. The set `base` is the specification, and what STRETTO_ISA=ref
 * runs. Packets may have any alignment. */
#ifndef STRETTO_CODEC_LOOPS_H
#define STRETTO_CODEC_LOOPS_H

#include "kern/kern.h"

enum {
    INT8_BLOCK = 256,     /* floats with a common scale */
    SIGN_BLOCK = 512,     /* floats with a common pair of means */
    TOPK_BLOCK = 1 << 16, /* floats whose positions fit in 16 bits */
    RANK_MAX = 64
};

struct wire_shape {
    i32 rows, panels, width, rank;
};

struct wire_loops {
    void (*to_fp16)(i64 n, const f32 *v, unsigned char *out);
    void (*from_fp16)(i64 n, const unsigned char *in, f32 *v);
    void (*to_bf16)(i64 n, const f32 *v, unsigned char *out);
    void (*from_bf16)(i64 n, const unsigned char *in, f32 *v);
    /* One block of n floats, from v and the residual e, which is updated. int8.c and sign.c describe the blocks. */
    void (*to_int8)(i32 n, const f32 *v, f32 *e, unsigned char *out);
    void (*from_int8)(i32 n, const unsigned char *in, f32 *v);
    u32 (*to_sign)(i32 n, const f32 *v, f32 *e, unsigned char *out);
    u32 (*from_sign)(i32 n, const unsigned char *in, u32 bytes, f32 *v); /* returns the bytes read; 0 = malformed */
    bool (*finite)(i64 n, const f32 *x);                                 /* neither NaN nor infinity */
    void (*add)(i64 n, f32 *y, const f32 *x);                            /* y += x */
    void (*momentum)(i64 n, f32 m, f32 *u, const f32 *g, f32 *v);        /* u = m u + g; v += u */
    /* The positions of the values whose |v| has bits of at least `least` > 0, ascending; returns how many. list: room for n +
     * LANES. */
    i64 (*find)(i64 n, const f32 *v, u32 least, u32 *list);
    /* Products of a matrix m [panels][rows][width], width a multiple of LANES, with factors p [r][rows] and q [r][panels*width].
     */
    void (*m_by_q)(const struct wire_shape *s, const f32 *m, const f32 *q, f32 *p);
    void (*mt_by_p)(const struct wire_shape *s, const f32 *m, const f32 *p, f32 *q);
    /* m = p^T q, or m -= p^T q; p and q as in a packet. */
    void (*p_by_q)(const struct wire_shape *s, const unsigned char *p, const unsigned char *q, f32 *m, bool subtract);
};

const struct wire_loops *wire_loops(void); /* of kern_best() */

#endif
