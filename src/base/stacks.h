/* stacks.h - where every thread of this process is, as text: for the record of a run that hangs.
 *
 *     the caller --signal--> a thread --addresses--> the caller --names--> fd         one thread after another
 *
 * Costs nothing before the first call, which takes a free real-time signal and keeps it.  A thread that does not answer within a
 * quarter of a second (stopped in the kernel) is named as such.  Safe while others hang: it takes no lock that they could hold
 * but those of reading a file. */
#ifndef STRETTO_BASE_STACKS_H
#define STRETTO_BASE_STACKS_H

#include "base/bits.h"

void stacks_write(int fd);

#endif
