/* opt.h - the options of the program: one table, one struct, and where each value came from.
 *
 *     options.def --+--> struct options { i64 context; f64 lr; const char *target; ... }   what the code above reads
 *     verbs.def   --+--> opt_info(OPT_lr)      name, type, default, range, words, unit, group, verbs, help
 *     presets.def --+
 *
 *     struct options o;
 *     TRY(opt_defaults(&o, lists));
 *     TRY(opt_set(&o, "context", "72", &OPT_FLAG));                  typed, checked; E101 or E103 with a fix
 *     TRY(opt_preset(&o, "long"));                                    a lower rank never overrides a higher one
 *     TRY(opt_resolve(&o, OPT_context, "336", "600 windows fit"));    the program's answer to "auto"
 *     opt_free(&o);
 *
 * Ranks, lowest first: default, preset, file, flag, API call.  The order of the calls does not matter, except that of two
 * values of the same rank the later one holds.  One caller at a time per struct. */
#ifndef STRETTO_OPT_OPT_H
#define STRETTO_OPT_OPT_H

#include "base/arena.h"
#include "base/option_structs.h"
#include "base/str.h"

enum verb {
#define VERB(name, least, most, args, help) VERB_##name,
#include "opt/verbs.def"
#undef VERB
    VERB_COUNT
};

struct verb_info {
    const char *name;
    i32 least, most; /* positional arguments */
    const char *args, *help;
};
const struct verb_info *verb_info(enum verb verb);
i32 verb_find(const char *name); /* or -1 */

/* LONG and ENUM differ from INT and WORD in the structs of modules alone (base/option_structs.h). */
enum opt_type { OPT_BOOL, OPT_INT, OPT_REAL, OPT_TIME, OPT_SIZE, OPT_WORD, OPT_TEXT, OPT_PATH, OPT_LIST, OPT_NUMS,
                OPT_LONG = OPT_INT, OPT_ENUM = OPT_WORD };
enum opt_group { OPT_DATA, OPT_MODEL, OPT_TASK, OPT_TRAINING, OPT_MACHINE, OPT_OUTPUT, OPT_VERB, OPT_HIDDEN, OPT_GROUPS };
enum opt_rank { OPT_RANK_DEFAULT, OPT_RANK_PRESET, OPT_RANK_FILE, OPT_RANK_FLAG, OPT_RANK_API };

enum opt_id {
#define OPT(TYPE, field, ...) OPT_##field,
#include "base/options.def"
#undef OPT
    OPT_COUNT
};

/* Words of an option ("@name") from a .def list of a higher floor. An array of these ends with {0}; a missing list accepts
 * every word. */
struct opt_list {
    const char *name;  /* "cells" */
    const char *words; /* "lstm gru rnn" */
};

struct opt_info {
    const char *name;
    const char *def; /* text of the default; "" = not set; "auto" = "auto" is a value of this option */
    enum opt_type type;
    enum opt_group group;
    f64 least, most;
    const char *unit; /* unit, words, or the name of the argument */
    u32 verbs;        /* bit 1 << VERB_x */
    const char *help;
    size_t offset;    /* in struct options */
};

/* Where a value came from. */
struct opt_from {
    enum opt_rank rank;
    const char *origin; /* "load.yaml:5"; NULL = "flag" and the like */
    const char *where;  /* "load.yaml:5:10" for messages; NULL = none */
};
extern const struct opt_from OPT_FLAG, OPT_API;

struct opt_meta {
    const char *text;   /* the value as text; opt_set takes it again */
    const char *origin; /* "default", "preset panel", "load.yaml:5", "flag", "auto: 3 x horizon" */
    const char *preset; /* the preset's value if a higher rank overrides it, or NULL */
    enum opt_rank rank;
    bool resolved;      /* the text answers "auto" */
    i32 order;          /* order of setting, for dumps */
};

#define OPT_C_BOOL bool
#define OPT_C_INT i64
#define OPT_C_LONG i64
#define OPT_C_REAL f64
#define OPT_C_TIME f64
#define OPT_C_SIZE i64
#define OPT_C_WORD const char *
#define OPT_C_ENUM const char *
#define OPT_C_TEXT const char *
#define OPT_C_PATH const char *
#define OPT_C_LIST const char *
#define OPT_C_NUMS const char *

struct options {
#define OPT(TYPE, field, ...) OPT_C_##TYPE field;
#include "base/options.def"
#undef OPT
    struct opt_meta meta[OPT_COUNT];
    const struct opt_list *lists;
    const char *preset_name; /* applied by opt_preset, or NULL */
    i32 order;
    struct arena strings; /* owns every text above */
};

/* Value of an INT, SIZE, REAL or TIME while it is "auto" (texts hold "auto" itself). */
#define OPT_AUTO_INT INT64_MIN
#define OPT_AUTO_REAL __builtin_nan("")

const struct opt_info *opt_info(enum opt_id id);
i32 opt_find(const char *name); /* enum opt_id, or -1; '_' counts as '-' */
char opt_letter(enum opt_id id);   /* short form, 0 = none */
i32 opt_find_letter(char c);       /* enum opt_id, or -1 */
const char *opt_group_name(enum opt_group group);

err opt_defaults(struct options *o, const struct opt_list *lists); /* lists may be NULL; overwrites *o */
void opt_free(struct options *o);                                   /* allowed after any failure, and on {0} */
err opt_copy(struct options *dst, const struct options *src);       /* overwrites *dst */

/* Checks text against the table and stores it. E101 unknown name, E103 wrong type, range or word. */
err opt_set(struct options *o, const char *name, const char *text, const struct opt_from *from);
err opt_set_id(struct options *o, enum opt_id id, const char *text, const struct opt_from *from);

/* Replaces "auto" (of any rank) by the resolved value; no effect if the user gave a value. why: "3 x horizon". */
err opt_resolve(struct options *o, enum opt_id id, const char *text, const char *why);

/* Sets the origin of a value to the one recorded elsewhere: when a model was trained. */
err opt_set_origin(struct options *o, enum opt_id id, const char *origin);

/* opt_structs.c: copies the values into the structs that modules read. */
void opt_give_learner(const struct options *o, struct learner_options *out);
void opt_give_net(const struct options *o, struct net_options *out);
void opt_give_optim(const struct options *o, struct optim_options *out);
void opt_give_loop(const struct options *o, struct loop_options *out);
void opt_give_chain(const struct options *o, struct chain_options *out);

/* Applies the values of a preset. E103 if the name is unknown. */
err opt_preset(struct options *o, const char *name);

bool opt_is_auto(const struct options *o, enum opt_id id);         /* still "auto" */
bool opt_given(const struct options *o, enum opt_id id);           /* set by file, flag or call */
const char *opt_get_text(const struct options *o, const char *name); /* NULL when there is no such option */
err opt_check(const struct options *o);                             /* E106 for options that contradict each other */

/* E101 with the nearest name among the options of `verbs`.  `shown` is the name as the user wrote it ("--horzion"). */
err opt_unknown(const char *name, const char *shown, u32 verbs, const struct opt_from *from);

/* The words of a WORD option, @lists included. */
struct opt_words {
    const char *at, *rest;
    const struct opt_list *lists;
    bool open; /* the list is missing: every word is accepted */
};
struct opt_words opt_words(const struct opt_list *lists, const struct opt_info *info);
bool opt_words_next(struct opt_words *w, char word[32], char *alias); /* alias may be NULL; 0 = none */
void opt_words_text(struct str *out, const struct opt_list *lists, const struct opt_info *info, const char *between);

/* Dumps the options of `verbs`: YAML with origins as comments and flat JSON, both of which can be loaded; origins as JSON. */
void opt_dump(const struct options *o, u32 verbs, struct str *out);
/* The same for one option that is set: "lr: 0.001   # flag". */
void opt_dump_line(const struct options *o, enum opt_id id, struct str *out);
void opt_dump_json(const struct options *o, u32 verbs, struct str *out);
void opt_dump_origins(const struct options *o, u32 verbs, struct str *out);

struct preset_info {
    const char *name, *when;
};
i32 preset_count(void);
const struct preset_info *preset_at(i32 index);
/* Value `index` of a preset: its option and text; false past the end. */
bool preset_value(const char *name, i32 index, enum opt_id *id, const char **text);

#endif
