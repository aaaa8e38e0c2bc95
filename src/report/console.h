/* console.h - progress display of a run for the user.
 *
 * On a terminal one line is redrawn, at most ten times a second:
 *     member 2/5  42%|####>     | 126/300 [00:02<00:03, 12.4k windows/s] loss 0.312  val 0.287*  best 0.287
 * Otherwise (files, Slurm logs) a plain line is printed every `interval` seconds:
 *     step 126 of 300  epoch 1.2  train 0.312  val 0.287 (best)  12.4k windows/s  left 3 s
 * Notes and warnings are separate lines. Writes only to the given FILE. Not thread-safe. */
#ifndef STRETTO_REPORT_CONSOLE_H
#define STRETTO_REPORT_CONSOLE_H

#include <stdio.h>

#include "base/event.h"
#include "base/str.h"

enum console_mode { CONSOLE_AUTO, CONSOLE_PLAIN, CONSOLE_NONE }; /* none: no progress, but notes and warnings */
enum console_colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

struct console_options {
    FILE *to;                 /* stderr in the command */
    enum console_mode mode;
    enum console_colour colour;
    bool quiet, verbose;      /* no notes, only warnings; notes of kind EVENT_DETAIL, too */
    f64 interval;             /* seconds between plain lines; 0 = 5 */
    i32 width;                /* columns; 0 = ask the terminal */
    i32 terminal;             /* -1 no, 1 yes, 0 = detect (isatty, TERM) */
    f64 (*now)(void *clock);  /* monotonic seconds; NULL = system clock */
    void *clock;
};

struct console {
    struct console_options o;
    bool redraw, colour, utf8;
    bool open;                /* an unfinished progress line is on the screen */
    bool working;             /* the unfinished line shows EVENT_WORK */
    f64 drawn;                /* when the last line was drawn */
    struct event at;          /* the latest measurements */
    f64 best;                 /* lowest validation loss so far, NaN = none */
    i64 best_step;
    i32 best_member;
    i64 total;                /* steps of all finished members */
    f64 spent;                /* and their seconds */
    bool counted;             /* the present member is in these */
    struct str line;
};

void console_open(struct console *c, const struct console_options *o);
struct sink console_sink(struct console *c); /* c must outlive it */
void console_close(struct console *c);       /* ends an unfinished line and frees; may be called twice */

/* Decides whether to color text on `to`: by the option, then NO_COLOR, then FORCE_COLOR / CLICOLOR_FORCE, then whether it is a
 * terminal. */
bool console_colours(FILE *to, enum console_colour wish);

#endif
