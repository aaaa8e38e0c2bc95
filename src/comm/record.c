/* record.c - feeds the flight recorder: phases, steps and messages as they happen, and writes the file when the rank fails. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/event.h"
#include "comm/rank.h"

void comm_set_record_folder(struct comm *c, const char *folder) {
    if (!c || !folder) return;
    pthread_mutex_lock(&c->writes);
    snprintf(c->folder, sizeof c->folder, "%s", folder);
    pthread_mutex_unlock(&c->writes);
}

static void record(struct comm *c, const char *why, bool stacks, char path[FLIGHT_PATH]) {
    char self[200] = "", scene[1024] = "";
    path[0] = 0;
    if (!c->flight || !c->folder[0]) return;
    if (c->hint) c->hint(c->hint_self, c->rank, self, sizeof self);
    if (c->describe) c->describe(c->describe_self, scene, sizeof scene);
    const struct flight_title t = {.folder = c->folder, .why = why, .self = self, .scene = scene, .who = &c->member[c->rank],
                                   .world = c->size, .stacks = stacks};
    flight_write(c->flight, &t, path);
}

void rank_failure(struct comm *c, const char *why, bool stacks) {
    pthread_mutex_lock(&c->writes);
    if (!c->record[0]) record(c, why, stacks, c->record);
    pthread_mutex_unlock(&c->writes);
}

/* The record of an alarm is overwritten by the record of a failure, never the other way round. */
void rank_alarm(void *self, f64 quiet) {
    struct comm *c = self;
    char why[160], path[FLIGHT_PATH];
    snprintf(why, sizeof why, "nothing has moved for %.3g s (no message, no step, no phase); a failure only if one follows",
             quiet);
    pthread_mutex_lock(&c->writes);
    if (!c->record[0]) record(c, why, true, path);
    pthread_mutex_unlock(&c->writes);
}

void comm_set_step(struct comm *c, u64 exchange, i64 step, comm_describe *describe, void *self) {
    if (!c) return;
    pthread_mutex_lock(&c->writes); /* a record in progress calls describe */
    c->describe = describe;
    c->describe_self = self;
    pthread_mutex_unlock(&c->writes);
    const u16 what = describe ? FLIGHT_STEP : FLIGHT_ENDED;
    flight_add(c->flight, &(struct flight_entry){.serial = exchange, .number = (u32)step, .what = what});
    watch_moved(&c->watch);
}

static void on_phase(void *self, const struct event *e) {
    struct comm *c = self;
    struct flight_entry entry = {.what = FLIGHT_PHASE};
    if (e->kind == EVENT_WORK) watch_moved(&c->watch);
    if (e->kind != EVENT_PHASE) return;
    snprintf(entry.name, sizeof entry.name, "%s", e->text);
    flight_add(c->flight, &entry);
    watch_moved(&c->watch);
}

struct sink comm_sink(struct comm *c) { return (struct sink){on_phase, c}; }

/* Uses the time of the last look at the clock: reading the clock costs as much as a small message. */
void rank_note(struct comm *c, const struct comm_message *m, bool ends) {
    if (!c->flight) return;
    if (c->since == 0) c->since = clock_now();
    struct flight_entry e = {.time = c->since, .serial = m->head.serial, .number = m->head.number, .bytes = m->head.bytes,
                             .peer = m->peer, .channel = m->channel};
    const u16 begun = m->sends ? FLIGHT_SEND : FLIGHT_AWAIT;
    e.what = (u16)(ends ? begun + (FLIGHT_SENT - FLIGHT_SEND) : begun);
    memcpy(e.name, m->head.name, sizeof e.name);
    flight_add(c->flight, &e);
}
