/* flight.h - flight recorder of a rank: what it did last, in a ring of fixed size, written down when something goes wrong.
 *
 *     agent: await, send, came, sent -+
 *     caller: step, ended, phase -----+--> [ oldest .. newest ]  --flight_write--> FOLDER/flight/rank-3.txt
 *
 * An entry costs a clock look and 64 bytes; nothing is allocated, locked or written while all is well.  Any thread may add;
 * a reader leaves out an entry that is just being written. */
#ifndef STRETTO_COMM_FLIGHT_H
#define STRETTO_COMM_FLIGHT_H

#include <stdatomic.h>

#include "comm/comm.h"

enum { FLIGHT_RING = 2048, FLIGHT_WORDS = 7, FLIGHT_PATH = 4200 };
enum flight_what { FLIGHT_SEND, FLIGHT_AWAIT, FLIGHT_SENT, FLIGHT_CAME, FLIGHT_STEP, FLIGHT_ENDED, FLIGHT_PHASE };

struct flight_entry {
    f64 time;             /* clock_now */
    u64 serial;           /* of the exchange */
    u32 number, bytes;    /* of the message; number of the step */
    char name[COMM_NAME]; /* of the message, or the phase */
    i32 peer;
    u16 what, channel;
};

#define FLIGHT_BUSY UINT64_MAX /* serial of a place that is being written: whoever comes round to it leaves it alone */
struct flight {
    _Atomic u64 next; /* entries ever added */
    struct {
        _Atomic u64 serial, word[FLIGHT_WORDS]; /* serial: 1 + which entry it holds, 0 = none */
    } ring[FLIGHT_RING];
};

void flight_add(struct flight *f, const struct flight_entry *e); /* f may be NULL; time 0 = now */

/* What stands above the entries. */
struct flight_title {
    const char *folder, *why, *self, *scene; /* of the run; why it is written; what this rank's status record says; "" = none */
    const struct comm_rank_info *who;
    i32 world;
    bool stacks; /* of all threads, too */
};
/* Writes the file, by way of a temporary name; path: where it is, "" when it could not be.  Leaves err_last alone. */
void flight_write(const struct flight *f, const struct flight_title *t, char path[FLIGHT_PATH]);
void flight_forget(const char *folder); /* a new run: records of the one before go */

#endif
