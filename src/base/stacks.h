/* stacks.h - writes the call stacks of all threads of this process as text, for the record of a run that hangs.
 *
 *     the caller --signal--> a thread --addresses--> the caller --names--> fd         one thread after another
 *
 * Costs nothing before the first call, which takes a free real-time signal and keeps it. A thread that does not answer within a
 * quarter of a second (blocked in the kernel) is reported as such. Safe while other threads hang: it takes no lock that they
 * could hold except those of file reading. */
#ifndef STRETTO_BASE_STACKS_H
#define STRETTO_BASE_STACKS_H

#include "base/bits.h"

void stacks_write(int fd);

#endif
