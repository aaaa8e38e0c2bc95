/* space.h - the search space of `tune`: dimensions that are options, and points in it.
 *
 *     space.def --+
 *     defaults ---+--> struct space { dim[] }     point: value of each dimension, NaN = as in the defaults
 *     learner  ---+                                 --point_set--> options of a trial
 *
 * The origin of the space is the point without any value: the options as they would be without a search. */
#ifndef STRETTO_SEARCH_SPACE_H
#define STRETTO_SEARCH_SPACE_H

#include <math.h>

#include "base/json.h"
#include "opt/opt.h"

enum { SPACE_MOST = 48, SPACE_WORDS = 12, SPACE_TEXT = 32 };
enum dim_kind { DIM_CHOICE, DIM_FACTOR, DIM_RANGE, DIM_SHARE };

struct dim {
    enum opt_id id, when;     /* when: the condition's option, OPT_COUNT = none */
    enum dim_kind kind;
    const char *when_words;
    f64 least, most;          /* of the value, for all kinds but CHOICE */
    i32 nword, standard;      /* standard: the word of the defaults, -1 = none of them */
    char word[SPACE_WORDS][SPACE_TEXT];
    f64 usual;                /* the number of the defaults, NaN = none */
    f64 first;                /* value to try alone, NaN = none */
};

struct space {
    i32 n;
    struct dim dim[SPACE_MOST];
    const struct options *o; /* the resolved defaults; borrowed */
};

struct point {
    f64 v[SPACE_MOST]; /* CHOICE: number of the word; else the value; NaN = as in the defaults */
};

/* The dimensions among space.def.  o: defaults with every `auto` resolved, borrowed by the space.  given(self, id): true for an
 * option that must not vary.  columns: input columns of the data, for SHARE. */
typedef bool space_fixed(const void *self, enum opt_id id);
void space_make(const struct options *o, space_fixed *fixed, const void *self, i32 columns, struct space *out);

struct point point_origin(void);
bool point_is_origin(const struct space *s, const struct point *p);
bool point_equal(const struct space *s, const struct point *a, const struct point *b);
/* False where the dimension's condition does not hold at the point: its value has no effect. */
bool point_acts(const struct space *s, const struct point *p, i32 dim);
/* The text of the option at the point; "" = as in the defaults. */
void point_text(const struct space *s, const struct point *p, i32 dim, char out[SPACE_TEXT]);
/* Sets the options that differ, with the rank of a config file, as `train -c` will.  E103. */
err point_set(const struct space *s, const struct point *p, const char *origin, struct options *o);
/* "lr 0.0012, hidden 64"; "the defaults" at the origin. */
void point_label(const struct space *s, const struct point *p, struct str *out);
/* {"lr": "0.0012", ..} and back; false if it names another option or a value outside the space. */
struct js *point_json(const struct space *s, const struct point *p);
bool point_read(const struct space *s, const struct js *from, struct point *out);

/* Random numbers of a proposal: a pure function of (seed, trial), in the order of the calls. */
struct dice {
    u64 seed;
    u32 trial;
    u64 at;
};
f64 dice_uniform(struct dice *d);          /* [0, 1) */
i32 dice_below(struct dice *d, i32 n);     /* 0 .. n - 1 */
/* A value of the dimension: any but the one in the defaults; or one near v. */
f64 dim_draw(const struct dim *d, struct dice *dice);
f64 dim_move(const struct dim *d, f64 v, struct dice *dice);

#endif
