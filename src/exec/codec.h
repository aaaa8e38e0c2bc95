/* codec.h - in which form a range of a buffer goes from rank to rank.  One file and one const struct each, one line in
 * codecs.def.
 *
 * encode and decode run in the agent, or in the worker that takes its place; they do not allocate.  What a codec drops in one
 * step and adds in a later one is its residual (error feedback: Seide et al., Interspeech 2014): exec allots `residual` floats a
 * message on the sending rank, zeroed.  Checkpoints hold residuals (exec_residuals); where micro-batches move
 * between ranks in mid-run, residuals restart from zero.  A codec with residuals must not take
 * messages with MESSAGE_SETTLE or MESSAGE_GATHER: they are sent for a checkpoint, so their number depends on the clock. */
#ifndef STRETTO_EXEC_CODEC_H
#define STRETTO_EXEC_CODEC_H

#include "base/err.h"
#include "plan/exchange.h"

/* The range of a message, as the codec sees it. */
struct coded {
    const struct plan *plan;
    const struct plan_message *m;
    unsigned char *data; /* of the buffer: element 0 of repeat 0 */
    u8 *marks;           /* sparse buffers: a byte for each line of the range, 1 = it is not zero; else NULL */
    f32 *residual;       /* encode: [codec.residual], NULL where it has none; decode: NULL */
};

struct codec {
    const char *name, *help;
    /* True if the codec applies to the message; the first such codec of the list sends it. */
    bool (*takes)(const struct plan *p, const struct plan_message *m);
    i64 (*room)(const struct plan *p, const struct plan_message *m);           /* bytes of a packet at most */
    i64 (*residual)(const struct plan *p, const struct plan_message *m);       /* floats kept between steps; NULL = none */
    u32 (*encode)(const struct coded *c, unsigned char *out);                  /* returns the bytes, at most room */
    bool (*decode)(const struct coded *c, const unsigned char *in, u32 bytes); /* overwrites the range; false: malformed */
    bool fewer;                                                                /* a packet may be shorter than room */
};

const struct codec *codec_for(const struct plan *p, const struct plan_message *m); /* NULL = sent as stored */
void codec_try_first(const struct codec *c); /* tests only: codec_for tries this codec before the list; NULL = the list alone */

#endif
