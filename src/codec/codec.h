/* codec.h - wire codecs: lossy forms in which a range of a flat f32 vector goes from rank to rank. One file and one const
 * struct each, one line in wires.def.
 *
 *     v [lo, hi)  +  residual  ->  encode  ->  packet  ->  decode  ->  v' [lo, hi)
 *                       ^             |
 *                       +-- v - v' <--+
 *
 * Error feedback (Seide et al., Interspeech 2014; Karimireddy et al., ICML 2019): what a packet drops is added to the input of a
 * later round, so the sum of the decoded vectors follows the sum of the inputs.
 *
 * Codecs are pure, as kernels are: they do not allocate, fail, or use globals. Equal arguments, input and state give equal bytes
 * on every instruction set. A zero that has always been zero decodes to zero, so the padding of packed weights stays zero.
 *
 * NaN and infinity go through none, fp16, bf16 and topk as they are. int8 and sign decode the block that holds one to NaN,
 * powersgd the matrix. Residuals stay finite, so a codec recovers in the next round. */
#ifndef STRETTO_CODEC_CODEC_H
#define STRETTO_CODEC_CODEC_H

#include "base/err.h"

/* A matrix in the flat vector: [panels][rows][width] floats from `at` on. A cell has I+H rows, Hp/LANES panels of width G*LANES;
 * a dense layer has K rows and one panel of width Np (kern/kern.h). */
struct wire_matrix {
    i64 at;
    i32 rows, panels, width;
};

/* The matrices of a vector in ascending order, none overlapping another. What lies between them is plain values (biases). */
struct wire_layout {
    const struct wire_matrix *matrix;
    i32 n;
};

struct wire_codec;

/* A codec and its value: the share of topk, the rank of powersgd. */
struct wire_choice {
    const struct wire_codec *codec;
    f64 value;
};

/* A range of at most 2^28 floats. Encoder and decoder of a packet need the same choice, layout, lo and hi. */
struct wire_args {
    struct wire_choice choice;
    const struct wire_layout *layout; /* NULL = no matrices */
    i64 lo, hi;
    i64 round; /* number of this encode, from 0: the share of topk falls over the first rounds */
    /* v is a gradient, not a change of weights; the same in every round of a state. topk then sends momentum (0.9) instead of v,
     * which sums to up to ten times v: the receiver must have no momentum of its own. Other codecs ignore it. */
    bool gradient;
};

/* v points to element lo. state and scratch have the floats that the functions of that name return; state starts as zeros and
 * belongs to one range of one sender; scratch keeps nothing between calls. */
struct wire_codec {
    const char *name, *help;
    const char *unit;                          /* what the value is; NULL = the codec takes none */
    f64 value, least, most;                    /* the default and the range of the value */
    bool whole;                                /* the value is a whole number */
    i64 (*room)(const struct wire_args *a);    /* bytes of a packet at most, in any round */
    i64 (*state)(const struct wire_args *a);   /* floats that encode keeps between calls; NULL = none */
    i64 (*scratch)(const struct wire_args *a); /* floats that encode needs during a call; NULL = none */
    u32 (*encode)(const struct wire_args *a, const f32 *v, f32 *state, f32 *scratch, unsigned char *out); /* returns the bytes */
    /* Overwrites v. False if the packet is malformed; v is then undefined, and nothing else was read or written. */
    bool (*decode)(const struct wire_args *a, const unsigned char *in, u32 bytes, f32 *v);
};

/* "none", "int8", "topk:0.01": a codec and its value. E103 for an unknown codec, and for a value out of range. */
err wire_parse(const char *text, struct wire_choice *out);
const struct wire_codec *wire_find(const char *name); /* NULL = there is none */
i32 wire_count(void);
const struct wire_codec *wire_at(i32 i);

/* state and scratch of a codec that may have none. */
static inline i64 wire_state(const struct wire_args *a) { return a->choice.codec->state ? a->choice.codec->state(a) : 0; }
static inline i64 wire_scratch(const struct wire_args *a) { return a->choice.codec->scratch ? a->choice.codec->scratch(a) : 0; }

#endif
