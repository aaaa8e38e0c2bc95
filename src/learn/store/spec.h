/* spec.h - what the options say of the parameter store: --store, --servers, --granularity, --codec and those beside them. */
#ifndef STRETTO_LEARN_STORE_SPEC_H
#define STRETTO_LEARN_STORE_SPEC_H

#include "base/event.h"
#include "codec/codec.h"
#include "store/policy.h"

struct options;

/* When a worker pushes. */
enum store_every { EVERY_POLICY, EVERY_STEPS, EVERY_EPOCHS, EVERY_SECONDS };
/* What is pushed and applied by itself. */
enum store_piece { PIECE_MODEL, PIECE_TENSOR, PIECE_ROWS };

struct store_spec {
    struct store_choice choice;
    struct wire_choice codec;
    i32 servers;
    enum store_every every; /* EVERY_POLICY: as the policy has it */
    f64 number;             /* of steps, epochs, seconds */
    enum store_piece piece;
    i32 rows;                    /* PIECE_ROWS: rows of a piece */
    const char *worker, *server; /* optimisers; NULL = by the policy */
    f64 server_lr;               /* < 0 = by the policy */
    bool by_time;                /* each worker owns a span of time */
    bool keeps_codec;            /* even where it costs more than it saves */
    bool stops;                  /* at a push that is not finite */
    const char *replay;          /* NULL = none */
};

/* E103 for a word or number, E106 for what cannot be combined.  Texts are those of the options. */
err store_spec_read(const struct options *o, struct store_spec *out);
/* E106 where other options contradict the store. */
err store_spec_check(const struct options *o);

/* E106 where one rank is too few; a note where a store has nothing to do. */
err store_spec_ranks(const struct store_spec *s, i32 ranks, const struct events *to);

/* The messages of the plan do all that is asked: no server, no codec, an update after every step. */
bool store_is_lossless(const struct store_spec *s); /* no codec */
bool store_is_plain(const struct store_spec *s);
/* Names it for people: "ssp:3, 2 servers, codec bf16". */
void store_spec_text(const struct store_spec *s, char out[160]);

#endif
