/* t_ensemble.c - an ensemble ends when a member brings less than --member-gain: which member is the last, what a refit trains,
 * and the bits of a run that is stopped around that decision and resumed. */
#include <string.h>

#include "api/ranks.h"
#include "session.h"

/* Options of every run; --member-gain 100 is more than any member brings. */
static const char *const small[] = {"target",         "a,b", "gaps",    "mask", "horizon", "4",    "context", "12",
                                    "hidden",         "8",   "steps",   "12",   "preset",  "none", "batch",   "9",
                                    "validate-every", "4",   "threads", "1",    NULL};

/* Events of a run, and the moment at which it is stopped. */
struct heard {
    volatile int stop;
    i32 begun, refitted, ends;   /* events */
    i32 last;                    /* members that the last EVENT_END counts */
    char note[200];              /* of the decision */
    i32 stop_member, stop_refit; /* stop at the first validation, or the first refit step, of this member; -1 = never */
    bool stop_weighing;          /* stop when the members are weighed */
};

static void on(void *self, const struct event *e) {
    struct heard *h = self;
    if (e->kind == EVENT_BEGIN) *(e->refit ? &h->refitted : &h->begun) += 1;
    if (e->kind == EVENT_END) h->ends++, h->last = e->members;
    if (e->kind == EVENT_NOTE && strstr(e->text, "--member-gain")) snprintf(h->note, sizeof h->note, "%s", e->text);
    if (e->kind == EVENT_VALID && e->member == h->stop_member && e->step > 0) h->stop = 1;
    if (e->kind == EVENT_TICK && h->refitted && e->member == h->stop_refit) h->stop = 1;
    if (e->kind == EVENT_PHASE && h->stop_weighing && strcmp(e->text, "guard") == 0) h->stop = 1;
}

/* The session's job again, in a run folder; *out = NULL if it was stopped. */
static err fit(const struct session *s, const char *dir, bool resume, struct heard *h, struct forecaster **out) {
    struct events events = {.sink = {{on, h}}, .n = 1};
    struct learn_job job = s->t->job;
    struct model *m = NULL;
    job.run_dir = dir;
    job.resume = resume;
    job.use.events = &events;
    job.use.stop = &h->stop;
    const err e = ranks_fit(s->t, learner_find("forecast"), &job, &m);
    *out = m ? forecaster_in(m) : NULL;
    return e;
}

static struct session session(const char *const *more) { return session_run(session_rows(200), small, more); }

static struct heard heard(void) { return (struct heard){.stop_member = -1, .stop_refit = -1}; }

/* Trains and checks the number of members. */
static void counts(const char *const *more, i32 members, const char *note) {
    struct heard h = heard();
    struct forecaster *f;
    struct session s = session(more);
    T_OK(fit(&s, NULL, false, &h, &f));
    assert_int_equal(f->nmember, members);
    assert_int_equal(h.begun, members);
    assert_int_equal(h.last, note ? members : f->spec.members);
    assert_int_equal(h.refitted, f->spec.refit_all ? members : 0);
    if (!strstr(h.note, note ? note : "") || (!note && h.note[0])) fail_msg("\"%s\" instead of \"%s\"", h.note, note ? note : "");
    forecast_free(&f->model);
    session_end(&s);
}

TEST(the_second_member_is_compared_with_the_first) {
    counts((const char *[]){"members", "4", "base", "none", "member-gain", "100", NULL}, 2, "2 of 4 members: member 2 brings");
}

TEST(the_first_member_is_compared_with_the_base) {
    counts((const char *[]){"members", "4", "base", "last", "member-gain", "100", NULL}, 1, "1 of 4 members: member 1 brings");
}

TEST(every_member_is_trained_without_a_demand) {
    counts((const char *[]){"members", "3", "base", "last", "member-gain", "0", NULL}, 3, NULL);
}

TEST(members_that_are_given_are_trained) { counts((const char *[]){"members", "3", "base", "last", "lr", "0", NULL}, 3, NULL); }

/* A network that stays zero brings nothing over the base. */
TEST(members_of_a_preset_must_bring_something) {
    counts((const char *[]){"preset", "short", "base", "last", "lr", "0", NULL}, 1,
           "1 of 5 members: member 1 brings 0.00 % over the base");
}

TEST(a_refit_trains_the_members_that_are_kept) {
    counts((const char *[]){"members", "4", "base", "none", "member-gain", "100", "refit-all", "yes", NULL}, 2, "2 of 4 members");
}

/* ------------------------------------------------------------------ stop and resume ----------------------------------------- */

static void same_model(const struct forecaster *a, const struct forecaster *b) {
    assert_int_equal(a->nmember, b->nmember);
    assert_true(a->weight == b->weight);
    for (i32 m = 0; m < a->nmember; m++) assert_memory_equal(a->theta[m], b->theta[m], sizeof(f32) * (size_t)a->net.ntheta);
}

/* Stopped at the moment that h asks for, then resumed: the model of the whole run. */
static void stops(const struct session *s, const struct forecaster *whole, struct heard h, const char *name) {
    struct heard rest = heard();
    struct forecaster *f;
    char dir[700];
    snprintf(dir, sizeof dir, "%s/%s", t_dir(), name);
    assert_int_equal(fit(s, dir, false, &h, &f), STOP_SIGNAL);
    T_OK(fit(s, dir, true, &rest, &f));
    same_model(f, whole);
    forecast_free(&f->model);
}

TEST(a_run_that_was_stopped_ends_with_the_same_members) {
    struct session s =
        session((const char *[]){"members", "4", "base", "none", "guard", "no", "member-gain", "100", "refit-all", "yes", NULL});
    struct heard h = heard();
    struct forecaster *whole;
    T_OK(fit(&s, NULL, false, &h, &whole));
    assert_int_equal(whole->nmember, 2);
    h = heard(), h.stop_member = 0;
    stops(&s, whole, h, "first");
    h = heard(), h.stop_member = 1;
    stops(&s, whole, h, "second");
    h = heard(), h.stop_weighing = true;
    stops(&s, whole, h, "weighing");
    h = heard(), h.stop_refit = 0;
    stops(&s, whole, h, "refit");
    h = heard(), h.stop_refit = 1;
    stops(&s, whole, h, "refit of the second");
    forecast_free(&whole->model);
    session_end(&s);
}

T_MAIN(cmocka_unit_test(the_second_member_is_compared_with_the_first),
       cmocka_unit_test(the_first_member_is_compared_with_the_base), cmocka_unit_test(every_member_is_trained_without_a_demand),
       cmocka_unit_test(members_that_are_given_are_trained), cmocka_unit_test(members_of_a_preset_must_bring_something),
       cmocka_unit_test(a_refit_trains_the_members_that_are_kept),
       cmocka_unit_test(a_run_that_was_stopped_ends_with_the_same_members))
