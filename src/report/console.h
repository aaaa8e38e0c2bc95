/* console.h - what a person sees while a run goes on.
 *
 * On a terminal one line is redrawn, ten times a second at most:
 *     member 2/5  42%|####>     | 126/300 [00:02<00:03, 12.4k windows/s] loss 0.312  val 0.287*  best 0.287
 * elsewhere (files, Slurm logs) a plain line comes every `interval` seconds:
 *     step 126 of 300  epoch 1.2  train 0.312  val 0.287 (best)  12.4k windows/s  left 3 s
 * Notes and warnings are lines of their own.  Writes only to the FILE it was given.  One caller. */
#ifndef STRETTO_REPORT_CONSOLE_H
#define STRETTO_REPORT_CONSOLE_H

#include <stdio.h>

#include "base/event.h"
#include "base/str.h"

enum console_mode { CONSOLE_AUTO, CONSOLE_PLAIN, CONSOLE_NONE }; /* none: no progress, still notes and warnings */
enum console_colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

struct console_options {
    FILE *to;                 /* stderr in the command */
    enum console_mode mode;
    enum console_colour colour;
    bool quiet;               /* no notes; warnings stay */
    f64 interval;             /* seconds between plain lines; 0 = 5 */
    i32 width;                /* columns; 0 = ask the terminal */
    i32 terminal;             /* -1 no, 1 yes, 0 = find out (isatty, TERM) */
    f64 (*now)(void *clock);  /* monotonic seconds; NULL = the system's */
    void *clock;
};

struct console {
    struct console_options o;
    bool redraw, colour, utf8;
    bool open;                /* an unfinished progress line is on the screen */
    bool working;             /* and it is of EVENT_WORK */
    f64 drawn;                /* when the last line was drawn */
    struct event at;          /* the latest measurements */
    f64 best;                 /* least validation loss so far, NaN = none */
    i64 best_step;
    i32 best_member;
    i64 total;                /* steps of all members that ended */
    f64 spent;                /* and their seconds */
    struct str line;
};

void console_open(struct console *c, const struct console_options *o);
struct sink console_sink(struct console *c); /* c must outlive it */
void console_close(struct console *c);       /* ends an unfinished line and frees; twice is fine */

/* Whether to colour text on `to`: the wish, then NO_COLOR, then FORCE_COLOR / CLICOLOR_FORCE, then whether it is a terminal. */
bool console_colours(FILE *to, enum console_colour wish);

#endif
