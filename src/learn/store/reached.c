/* reached.c - decisions that depended on measured time: choices of --store auto, steps of --granularity SECONDS, a codec that was
 * switched off.
 *
 *     after a leg   struct store_run --> record.reached --> checkpoint; the record survives the death of a rank
 *     resumed       struct store_run <-- record.reached <-- checkpoint */
#include <stdio.h>
#include <string.h>

#include "learn/store/inside.h"

enum { LOCAL_LIMIT = 1000000 };
#define STEPS_LIMIT 1000000000000

/* Another store or codec begins anew. */
static i64 choice_of(const struct store_run *r) {
    char text[240];
    store_spec_text(&r->spec, text);
    const size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, " %d %.17g", (int)r->spec.every, r->spec.number);
    return (i64)comm_hash(COMM_HASH, text, strlen(text));
}

void reached_save(struct store_run *r) {
    struct store_reached *to = &r->record->reached;
    to->count[REACHED_SET] = 1;
    to->count[REACHED_BASE] = r->base;
    to->count[REACHED_LOCAL] = r->local;
    to->count[REACHED_CODEC] = !r->judged ? CODEC_NOT_JUDGED : r->codec ? CODEC_KEPT : CODEC_OFF;
    to->count[REACHED_CHOICE] = choice_of(r);
    to->count[REACHED_DECISIONS] = r->record->ndecision;
    chooser_save(r->chooser, to);
}

/* A file may hold any numbers. */
static bool is_sound(const struct store_reached *from) {
    const i64 *c = from->count;
    return c[REACHED_SET] == 1 && c[REACHED_BASE] >= 0 && c[REACHED_BASE] <= STEPS_LIMIT && c[REACHED_LOCAL] >= 1 &&
           c[REACHED_LOCAL] <= LOCAL_LIMIT && c[REACHED_CODEC] >= CODEC_NOT_JUDGED && c[REACHED_CODEC] <= CODEC_OFF &&
           chooser_sound(from);
}

static void take_decisions(struct store_record *s) {
    s->ndecision = (i32)lmax(0, lmin(STORE_DECISIONS, s->reached.count[REACHED_DECISIONS]));
    for (i32 k = 0; k < s->ndecision; k++) s->decision[k].what[STORE_WHY - 1] = 0;
}

void reached_load(struct store_run *r) {
    const struct store_reached *from = &r->record->reached;
    if (!is_sound(from) || from->count[REACHED_CHOICE] != choice_of(r)) return;
    r->base = from->count[REACHED_BASE];
    take_decisions(r->record);
    if (r->chooser) {
        r->local = from->count[REACHED_LOCAL];
        chooser_load(r->chooser, r, from);
    }
    if (from->count[REACHED_CODEC] == CODEC_NOT_JUDGED || r->spec.keeps_codec || r->spec.replay) return;
    r->judged = true;
    r->byte_seconds = 0;
    if (from->count[REACHED_CODEC] == CODEC_OFF && r->codec) pstore_drop_codec(r->ps);
    r->codec = from->count[REACHED_CODEC] == CODEC_KEPT;
}
