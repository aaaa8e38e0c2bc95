/* opt_structs.c - the values of struct options as the small structs of base/option_structs.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "opt/opt.h"

/* Index of a word in the list of its option. */
static u32 choice(const struct options *o, enum opt_id id) {
    char word[32];
    struct opt_words w = opt_words(o->lists, opt_info(id));
    for (u32 i = 0; opt_words_next(&w, word, NULL); i++)
        if (strcmp(word, o->meta[id].text) == 0) return i;
    return 0;
}

static struct option_nums numbers(const char *list) {
    struct option_nums out = {0};
    char item[64];
    for (; str_list_next(&list, item, sizeof item); out.n++)
        if (out.n < OPTION_NUMS) str_to_f64(item, strlen(item), '.', &out.v[out.n]);
    return out;
}

#define GIVE_BOOL(field) out->field = o->field;
#define GIVE_INT(field) out->field = o->field == OPT_AUTO_INT ? 0 : (i32)o->field;
#define GIVE_LONG(field) out->field = o->field == OPT_AUTO_INT ? 0 : o->field;
#define GIVE_REAL(field) out->field = isnan(o->field) ? 0 : (__typeof__(out->field))o->field;
#define GIVE_TIME(field) GIVE_REAL(field)
#define GIVE_ENUM(field) out->field = choice(o, OPT_##field);
#define GIVE_WORD(field) snprintf(out->field, sizeof out->field, "%s", o->field);
#define GIVE_NUMS(field) out->field = numbers(o->field);
#define GIVE(TYPE, field) GIVE_##TYPE(field)

void opt_give_learner(const struct options *o, struct learner_options *out) {
#define OPTION_LEARNER GIVE
#include "base/option_members.h"
}

void opt_give_net(const struct options *o, struct net_options *out) {
#define OPTION_NET GIVE
#include "base/option_members.h"
}

void opt_give_optim(const struct options *o, struct optim_options *out) {
#define OPTION_OPTIM GIVE
#include "base/option_members.h"
}

void opt_give_loop(const struct options *o, struct loop_options *out) {
#define OPTION_LOOP GIVE
#include "base/option_members.h"
}

void opt_give_chain(const struct options *o, struct chain_options *out) {
#define OPTION_CHAIN GIVE
#include "base/option_members.h"
}
