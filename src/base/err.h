/* err.h - error handling: return codes, the error record of a thread, and the macros that forward errors.
 *
 * Every fallible function returns `err`: 0 = done, < 0 = failed with code -STRETTO_Exxx of errors.def, > 0 = the reason why a
 * training run stopped (only the trainer). The text for the user is in a record of the calling thread: what was found, where,
 * and how to fix it. The library never prints and never exits; the caller shows the record.
 *
 *     error[E204] file:line:field: what was found        <- code, where, text
 *       fix: --gaps mask                                 <- fix (lines separated by \n)
 *
 *     TRY(csv_open(...));                                 forwards the first error unchanged
 *     return FAIL(E102, "%s has no column \"%s\"", file, name);
 *     return FAIL_AT(E204, where, fix, "...", ...);       the same with a place and a fix (either may be NULL) */
#ifndef STRETTO_BASE_ERR_H
#define STRETTO_BASE_ERR_H

#include "base/bits.h"

typedef int err;

enum err_code {
    ERR_NONE = 0,
#define E(n, exit_status, title, help) E##n = n,
#include "base/errors.def"
#undef E
};

/* The record of the last error on this thread.  Strings are owned by the record. */
struct err_record {
    i32 code;          /* 204 for E204; 0 = no error */
    char where[256];   /* "file:line:field" or "" */
    char text[1024];   /* what was found */
    char fix[768];     /* one remedy per line, or "" */
};

#define TRY(call)                                                                                                                \
    do {                                                                                                                         \
        err try_e_ = (call);                                                                                                     \
        if (try_e_ < 0) return try_e_;                                                                                           \
    } while (0)

/* Like TRY, for functions that must clean up: stores the error in `e` and jumps to `out`. */
#define TRY_OUT(call)                                                                                                            \
    do {                                                                                                                         \
        e = (call);                                                                                                              \
        if (e < 0) goto out;                                                                                                     \
    } while (0)

#define FAIL(code, ...) err_set((code), NULL, NULL, __VA_ARGS__)
#define FAIL_AT(code, where, fix, ...) err_set((code), (where), (fix), __VA_ARGS__)

/* Record an error on this thread and return -code.  where and fix may be NULL. */
err err_set(enum err_code code, const char *where, const char *fix, const char *fmt, ...) PRINTF_LIKE(4, 5);

const struct err_record *err_last(void); /* this thread's record; valid until the next failure here */
void err_put(const struct err_record *r); /* copy a record from another thread into this one's */
void err_clear(void);

/* The table of errors.def. */
struct err_info {
    i32 code;
    i32 exit_status;   /* exit status of the CLI */
    const char *title; /* short title */
    const char *help;  /* the long text of `stretto explain` */
};
const struct err_info *err_info(i32 code); /* NULL when there is no such code */
i32 err_count(void);
const struct err_info *err_at(i32 index);
i32 err_exit_status(err e); /* 0 for 0; the table's status for failures; 1 for unknown codes */

#endif
