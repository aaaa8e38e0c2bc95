/* option_structs.h - the options as modules see them: plain values in one struct for each reader that options.def names.
 *
 *     OPT(INT, hidden, "hidden", ..., NET, ...)  -->  struct net_options { i32 hidden; ... }  -->  op->spec.hidden in a layer
 *
 *     reader    struct            embedded in                    read by
 *     LEARNER   learner_options   struct forecast_spec           the learner
 *     NET       net_options       forecast_spec, op_spec         layers
 *     OPTIM     optim_options     forecast_spec, optim_hyper     optimisers
 *     LOOP      loop_options      forecast_spec, train_job       the training loop
 *     CHAIN     chain_options     chain_course                   the solver of time slices
 *     NONE      -                                                api and cli alone
 *
 * A member has the name of its option.  Values were checked against the table when they were set; src/opt/opt_structs.c copies
 * them.  An `auto` without an answer is 0.  ENUM is the place of the word in its list. */
#ifndef STRETTO_BASE_OPTION_STRUCTS_H
#define STRETTO_BASE_OPTION_STRUCTS_H

#include "base/err.h"

enum { OPTION_WORD = 24, OPTION_NUMS = 16 }; /* bytes of a word, with the end; numbers of a list */

struct option_nums {
    i32 n; /* numbers given, which may be more than v holds */
    f64 v[OPTION_NUMS];
};

#define OPTION_OF_BOOL(real, field) bool field;
#define OPTION_OF_INT(real, field) i32 field;
#define OPTION_OF_LONG(real, field) i64 field;
#define OPTION_OF_REAL(real, field) real field;
#define OPTION_OF_TIME(real, field) f64 field;
#define OPTION_OF_ENUM(real, field) u32 field;
#define OPTION_OF_WORD(real, field) char field[OPTION_WORD];
#define OPTION_OF_NUMS(real, field) struct option_nums field;
#define OPTION_MEMBER(TYPE, field) OPTION_OF_##TYPE(f64, field)
#define OPTION_MEMBER32(TYPE, field) OPTION_OF_##TYPE(f32, field) /* layers and optimisers compute in f32 */

struct learner_options {
#define OPTION_LEARNER OPTION_MEMBER
#include "base/option_members.h"
};
struct net_options {
#define OPTION_NET OPTION_MEMBER32
#include "base/option_members.h"
};
struct optim_options {
#define OPTION_OPTIM OPTION_MEMBER32
#include "base/option_members.h"
};
struct chain_options {
#define OPTION_CHAIN OPTION_MEMBER32
#include "base/option_members.h"
};
struct loop_options {
#define OPTION_LOOP OPTION_MEMBER
#include "base/option_members.h"
};

#endif
