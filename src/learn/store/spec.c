/* spec.c - reads and checks the options of the parameter store. */
#include "learn/store/spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "opt/opt.h"

/* ------------------------------------------------------------------ granularity --------------------------------------------- */

static err bad_granularity(const char *text, const char *why) {
    return FAIL_AT(E103, "--granularity", "--granularity 8steps   or   1epoch, 0.5s, 8steps*tensor, 1step*rows:64",
                   "\"%.60s\": %s", text, why);
}

static err read_piece(const char *text, const char *piece, struct store_spec *s) {
    f64 rows = 0;
    if (strcmp(piece, "model") == 0)
        s->piece = PIECE_MODEL;
    else if (strcmp(piece, "tensor") == 0)
        s->piece = PIECE_TENSOR;
    else if (strncmp(piece, "rows:", 5) == 0) {
        if (!str_to_f64(piece + 5, strlen(piece + 5), '.', &rows) || rows < 1 || rows > 1e6 || rows != floor(rows))
            return bad_granularity(text, "a number of rows from 1 to 1000000 must follow rows:");
        s->piece = PIECE_ROWS;
        s->rows = (i32)rows;
    } else {
        return bad_granularity(text, "a piece is model, tensor or rows:N");
    }
    return 0;
}

/* "8steps", "8batches", "2epochs", "0.5s", "auto", then "*tensor". */
static err read_granularity(const char *text, struct store_spec *s) {
    static const struct {
        const char *unit;
        enum store_every every;
        f64 most;
        bool whole;
    } unit[] = {{"steps", EVERY_STEPS, 1e6, true},       {"step", EVERY_STEPS, 1e6, true},
                {"batches", EVERY_STEPS, 1e6, true},     {"batch", EVERY_STEPS, 1e6, true},
                {"epochs", EVERY_EPOCHS, 1e4, false},    {"epoch", EVERY_EPOCHS, 1e4, false},
                {"seconds", EVERY_SECONDS, 3600, false}, {"s", EVERY_SECONDS, 3600, false}};
    const char *star = strchr(text, '*');
    const size_t n = star ? (size_t)(star - text) : strlen(text), digits = strspn(text, "0123456789.");
    if (star) TRY(read_piece(text, star + 1, s));
    if (n == 4 && strncmp(text, "auto", 4) == 0) return 0;
    for (size_t i = 0; i < COUNT(unit); i++) {
        if (strlen(unit[i].unit) != n - digits || strncmp(text + digits, unit[i].unit, n - digits) != 0) continue;
        s->every = unit[i].every;
        if (!str_to_f64(text, digits, '.', &s->number)) return bad_granularity(text, "a number comes first, as 8steps");
        if (s->number <= 0) return bad_granularity(text, "a worker would never push");
        if (s->number > unit[i].most || (unit[i].whole && s->number != floor(s->number)))
            return bad_granularity(text,
                                   unit[i].whole ? "a whole number of steps up to 1000000 is needed" : "the number is too large");
        return 0;
    }
    return bad_granularity(text, "the unit is steps, batches, epochs or s");
}

/* ------------------------------------------------------------------ the whole ----------------------------------------------- */

static const char *named(const char *word) { return strcmp(word, "auto") == 0 ? NULL : word; }

/* The codec's own error, with the option that it is about. */
static err read_codec(const char *text, struct wire_choice *out) {
    struct err_record why;
    char fix[sizeof why.fix + 16];
    const err e = wire_parse(text, out);
    if (e >= 0) return 0;
    why = *err_last();
    snprintf(fix, sizeof fix, "--codec %s", why.fix);
    return FAIL_AT(E103, "--codec", fix, "%s", why.text);
}

err store_spec_read(const struct options *o, struct store_spec *out) {
    *out = (struct store_spec){.servers = (i32)o->servers,
                               .worker = named(o->worker_optim),
                               .server = named(o->server_optim),
                               .server_lr = opt_is_auto(o, OPT_server_lr) ? -1 : o->server_lr,
                               .by_time = strcmp(o->shards, "time") == 0,
                               .keeps_codec = o->keep_codec || o->deterministic,
                               .stops = strcmp(o->on_nan, "stop") == 0,
                               .replay = o->replay && *o->replay ? o->replay : NULL};
    TRY(store_policy_parse(o->store, &out->choice));
    TRY(read_codec(o->codec, &out->codec));
    return read_granularity(o->granularity, out);
}

bool store_is_lossless(const struct store_spec *s) { return strcmp(s->codec.codec->name, "none") == 0; }

/* Synchronous sums of the gradients of single steps: sync, delay1, ssp:0. */
static bool sums_gradients(const struct store_choice *c) {
    const struct store_policy *p = c->policy;
    return p->plain || (store_staleness(c) == 0 && p->local == 1 && !p->chooses);
}

bool store_is_plain(const struct store_spec *s) {
    if (!s->choice.policy) return true; /* nobody has asked for a store */
    return sums_gradients(&s->choice) && store_is_lossless(s) && s->servers == 0 && s->every == EVERY_POLICY &&
           s->piece == PIECE_MODEL && !s->worker && !s->server && s->server_lr < 0 && !s->by_time && !s->replay;
}

void store_spec_text(const struct store_spec *s, char out[160]) {
    const struct store_policy *p = s->choice.policy;
    size_t n = (size_t)snprintf(out, 160, p->most > 0 ? "%s:%g" : "%s", p->name, s->choice.value);
    if (s->servers > 0) n += (size_t)snprintf(out + n, 160 - n, ", %d server%s", s->servers, s->servers > 1 ? "s" : "");
    if (!store_is_lossless(s))
        snprintf(out + n, 160 - n, s->codec.codec->unit ? ", codec %s:%g" : ", codec %s", s->codec.codec->name, s->codec.value);
}

/* ------------------------------------------------------------------ other options ------------------------------------------- */

static err contradicts(const char *store, const char *option, const char *fix, const char *why) {
    return FAIL_AT(E106, NULL, fix, "--store %.60s and %s: %s", store, option, why);
}

err store_spec_ranks(const struct store_spec *s, i32 ranks, const struct events *to) {
    char name[160];
    if (ranks > 1 || store_is_plain(s) || s->choice.policy->shared) return 0;
    store_spec_text(s, name);
    if (!s->choice.policy->plain)
        return FAIL_AT(E106, "--store",
                       "--ranks 2   or   mpirun -n 2 stretto ..   or   --store hogwild   (threads of one process)",
                       "%s needs ranks that train together, there is one", name);
    event_note(to, EVENT_NOTE, "store %s: one rank sends nothing, so codec, servers and granularity have no effect", name);
    return 0;
}

/* Threads of one process on one vector: nothing is sent, each thread makes whole steps by itself. */
static err check_shared(const struct options *o, const struct store_spec *s) {
    const char *name = o->store;
    if (o->ranks > 1)
        return contradicts(name, "--ranks", "--store asp   or   --ranks 1 --threads N", "threads of one process share a vector");
    if (o->accumulate > 1)
        return contradicts(name, "--accumulate", "--accumulate 1", "each thread updates after its own part of a batch");
    if (o->plan && *o->plan) return contradicts(name, "--plan", "no --plan", "a plan file cuts a batch, hogwild does not");
    if (o->heal) return contradicts(name, "--heal", "no --heal", "threads of one process die together");
    if (o->deterministic)
        return contradicts(name, "--deterministic", "--store sync", "the order of updates depends on the clock");
    if (strcmp(o->parallel, "auto") != 0 && strcmp(o->parallel, "serial") != 0)
        return contradicts(name, "--parallel", "--parallel serial   or   --store sync",
                           "each thread makes serial steps of its own, nothing is cut");
    if (s->servers > 0 || !store_is_lossless(s) || s->by_time || s->replay)
        return contradicts(name, "servers, codecs, --shards time or --replay", "--store asp --ranks 2",
                           "threads share one vector, nothing is sent");
    if (s->every != EVERY_POLICY || s->piece != PIECE_MODEL || s->worker || s->server || s->server_lr >= 0)
        return contradicts(name, "local steps or an optimiser of a server",
                           "--granularity auto   (and no --worker-optim, --server-optim, --server-lr)",
                           "each gradient is applied at once, by --optim");
    return 0;
}

/* The order of updates, or the steps of a leg, follow the clock: a run records them. */
static bool follows_clock(const struct store_spec *s) {
    return store_staleness(&s->choice) > 0 || s->choice.policy->chooses || s->every == EVERY_SECONDS;
}

static err not_deterministic(const char *store, const struct store_spec *s) {
    if (s->every == EVERY_SECONDS)
        return contradicts(store, "--granularity in seconds with --deterministic",
                           "--granularity 8steps   or   --replay RUN/order.txt",
                           "the steps between two pushes depend on the clock");
    return contradicts(store, "--deterministic", "--store sync   or   --replay RUN/order.txt",
                       s->choice.policy->chooses ? "the choices and the order of updates depend on the clock"
                                                 : "the order of updates depends on the clock");
}

/* What pushes every `local` steps or never keeps gradients cannot do what a plan's messages do. */
err store_spec_check(const struct options *o) {
    struct store_spec s;
    TRY(store_spec_read(o, &s));
    const struct store_policy *p = s.choice.policy;
    if (p->pipeline && !store_is_plain(&s))
        return contradicts(o->store, "servers, a codec or local steps", "--store sync   or   --store ssp:1",
                           "an update that is a step late needs the plan's messages");
    if (s.every != EVERY_POLICY && p->local == STORE_BY_VALUE)
        return contradicts(o->store, "--granularity", "--granularity auto", "both say after how many steps a worker pushes");
    if (store_is_plain(&s)) return 0;
    if (strcmp(o->pipeline, "delay1") == 0)
        return contradicts(o->store, "--pipeline delay1", "--pipeline overlap", "a store has delays of its own");
    if (p->shared) return check_shared(o, &s);
    if (s.replay && !follows_clock(&s))
        return contradicts(o->store, "--replay", "no --replay   (or the --store of the recorded run)",
                           "the order of synchronous rounds is fixed, no run records it");
    if (o->accumulate > 1)
        return contradicts(o->store, "--accumulate", "--accumulate 1   or   --accumulate 1 --granularity 8steps",
                           "a worker pushes whole steps");
    if (o->slice_rounds > 0)
        return contradicts(o->store, "--slice-rounds", "--slice-rounds 0",
                           "workers keep no states of slices from visit to visit");
    if (o->plan && *o->plan)
        return contradicts(o->store, "--plan", "no --plan", "a plan file has the messages of synchronous ranks");
    if (o->deterministic && !s.replay && follows_clock(&s)) return not_deterministic(o->store, &s);
    if (p->keeps_base && (s.every != EVERY_POLICY || s.worker))
        return contradicts(o->store, "local steps", "--granularity auto", "it corrects gradients of single steps");
    return 0;
}
