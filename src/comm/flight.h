/* flight.h - flight recorder of a rank: its last events in a ring buffer of fixed size, written to a file when something fails.
 *
 *     agent: await, send, came, sent -+
 *     caller: step, ended, phase -----+--> [ oldest .. newest ]  --flight_write--> FOLDER/flight/rank-3.txt
 *
 * An entry costs one look at the clock and 64 bytes. Recording allocates nothing, takes no lock and writes no file. Any thread
 * may add; the reader skips an entry that is being written. */
#ifndef STRETTO_COMM_FLIGHT_H
#define STRETTO_COMM_FLIGHT_H

#include <stdatomic.h>

#include "comm/comm.h"

enum { FLIGHT_RING = 2048, FLIGHT_WORDS = 7, FLIGHT_PATH = 4200 };
enum flight_what { FLIGHT_SEND, FLIGHT_AWAIT, FLIGHT_SENT, FLIGHT_CAME, FLIGHT_STEP, FLIGHT_ENDED, FLIGHT_PHASE };

struct flight_entry {
    f64 time;             /* clock_now */
    u64 serial;           /* of the exchange */
    u32 number, bytes;    /* number and size of the message; number: of the step */
    char name[COMM_NAME]; /* of the message or phase */
    i32 peer;
    u16 what, channel;
};

#define FLIGHT_BUSY UINT64_MAX /* serial of a slot that is being written; other writers skip it */
struct flight {
    _Atomic u64 next; /* entries added so far */
    struct {
        _Atomic u64 serial, word[FLIGHT_WORDS]; /* serial: 1 + number of the entry it holds, 0 = none */
    } ring[FLIGHT_RING];
};

void flight_add(struct flight *f, const struct flight_entry *e); /* f may be NULL; time 0 = now */

/* The heading of the file. */
struct flight_title {
    const char *folder, *why, *self, *scene; /* folder of the run; reason; status record of this rank; what the workers are
                                              * doing; "" = none */
    const struct comm_rank_info *who;
    i32 world;
    bool stacks; /* include the stacks of all threads */
};
/* Writes the file under a temporary name and renames it. path: the file, "" on failure. Does not change err_last. */
void flight_write(const struct flight *f, const struct flight_title *t, char path[FLIGHT_PATH]);

#endif
