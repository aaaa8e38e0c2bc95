/* unfinished.h - temporary files that a signal handler removes before the signal ends the process. */
#ifndef STRETTO_BASE_UNFINISHED_H
#define STRETTO_BASE_UNFINISHED_H

/* tmp stays valid until unfinished_done.  Where too many are open at once, one more is not removed. */
void unfinished_add(const char *tmp);
void unfinished_done(const char *tmp); /* renamed or removed; NULL, and one that was not added, are allowed */
void unfinished_remove(void);          /* removes the files; may be called from a signal handler */

#endif
