/* console.c - see console.h: progress line, notes and warnings. */
#define _GNU_SOURCE
#include "report/console.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/text.h"

#define REDRAW_EVERY 0.1 /* seconds */
enum { BAR_MOST = 24, BAR_LEAST = 8, WIDTH_DEFAULT = 80, WIDTH_LEAST = 20 };

static f64 system_now(void *clock) {
    (void)clock;
    return clock_now();
}

static bool is_set(const char *name) {
    const char *v = getenv(name);
    return v && *v;
}

static bool is_terminal(FILE *to) {
    const char *term = getenv("TERM");
    return isatty(fileno(to)) && !(term && strcmp(term, "dumb") == 0);
}

static bool wants_colour(enum console_colour wish, bool terminal) {
    if (wish != COLOUR_AUTO) return wish == COLOUR_ALWAYS;
    if (is_set("NO_COLOR")) return false;
    const char *force = is_set("FORCE_COLOR") ? getenv("FORCE_COLOR") : is_set("CLICOLOR_FORCE") ? getenv("CLICOLOR_FORCE") : "0";
    return terminal || strcmp(force, "0") != 0;
}

bool console_colours(FILE *to, enum console_colour wish) { return wants_colour(wish, is_terminal(to)); }

/* True if the environment's locale is UTF-8, which enables block characters. */
static bool env_utf8(void) {
    const char *l = is_set("LC_ALL") ? getenv("LC_ALL") : is_set("LC_CTYPE") ? getenv("LC_CTYPE") : getenv("LANG");
    return l && (strcasestr(l, "utf-8") || strcasestr(l, "utf8"));
}

void console_open(struct console *c, const struct console_options *o) {
    *c = (struct console){.o = *o, .drawn = -INFINITY, .best = (f64)NAN};
    c->at.train = c->at.valid = (f64)NAN;
    if (!c->o.now) c->o.now = system_now;
    if (c->o.interval <= 0) c->o.interval = 5;
    bool terminal = o->terminal > 0 || (o->terminal == 0 && is_terminal(o->to));
    c->redraw = o->mode == CONSOLE_AUTO && terminal;
    c->colour = wants_colour(o->colour, terminal);
    c->utf8 = env_utf8();
}

/* Current width of the terminal in columns; it may be resized during a run. */
static i32 width_of(const struct console *c) {
    if (c->o.width > 0) return imax(WIDTH_LEAST, c->o.width);
    struct winsize w = {0};
    if (ioctl(fileno(c->o.to), TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return imax(WIDTH_LEAST, w.ws_col);
    i64 n = 0;
    const char *env = getenv("COLUMNS");
    if (env && str_to_i64(env, strlen(env), &n) && n >= WIDTH_LEAST && n < 10000) return (i32)n;
    return WIDTH_DEFAULT;
}

static f64 done_share(const struct event *e) {
    f64 members = imax(1, e->members), steps = (f64)lmax(1, e->steps);
    return dmin(1, dmax(0, ((f64)e->member + (f64)e->step / steps) / members));
}

/* The bar |####>     |, in eighths of a block where the terminal can show them. */
static void add_bar(struct str *b, f64 share, i32 width, bool utf8) {
    static const char *const part[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    i32 eighths = (i32)(share * width * 8);
    str_add(b, "|");
    for (i32 i = 0; i < width; i++) {
        i32 left = eighths - 8 * i;
        if (left >= 8) str_add(b, utf8 ? "█" : "#");
        else if (left > 0) str_add(b, utf8 ? part[left] : ">");
        else str_add(b, " ");
    }
    str_add(b, "|");
}

/* Adds one piece to the line if it fits into `room` columns, returns the room left. */
static i32 piece(struct str *b, i32 room, const char *text, const char *escape) {
    const i32 n = str_columns(text);
    if (n > room) return 0; /* later pieces must not be shown instead */
    str_addf(b, "%s%s%s", escape, text, *escape ? "\033[0m" : "");
    return room - n;
}

/* Builds the line from pieces in order of importance; drops whole pieces that do not fit. */
static void build_line(struct console *c, struct str *b, i32 room) {
    const struct event *e = &c->at;
    const bool best = !isnan(e->valid) && e->valid <= c->best;
    const char *dim = c->colour ? "\033[2m" : "";
    char text[64];
    struct str t = {0};
    if (e->members > 1) str_addf(&t, "member %d/%d ", e->member + 1, e->members);
    str_addf(&t, "%3d%%", (i32)(100 * done_share(e)));
    add_bar(&t, done_share(e), imin(BAR_MOST, imax(BAR_LEAST, room / 6)), c->utf8);
    str_addf(&t, " %lld/%lld [%s<%s]", (long long)e->step, (long long)e->steps, text_clock(e->seconds).s, text_clock(e->left).s);
    room = piece(b, room, str_text(&t), "");
    str_free(&t);
    snprintf(text, sizeof text, " loss %s", text_digits(e->train, 3).s);
    if (!isnan(e->train)) room = piece(b, room, text, "");
    snprintf(text, sizeof text, " val %s%s", text_digits(e->valid, 3).s, best ? "*" : " ");
    if (!isnan(e->valid)) room = piece(b, room, text, c->colour && best ? "\033[32m" : "");
    snprintf(text, sizeof text, " best %s", text_digits(c->best, 3).s);
    if (!isnan(c->best) && !best) room = piece(b, room, text, "");
    snprintf(text, sizeof text, " %s windows/s", text_si(e->windows_per_s).s);
    if (e->windows_per_s > 0) room = piece(b, room, text, dim);
    snprintf(text, sizeof text, " epoch %s", text_fixed(e->epoch, 1).s);
    if (!isnan(e->epoch)) piece(b, room, text, dim);
}

/* Writes the text of c->line. */
static void put_line(struct console *c) {
    if (!c->line.failed) fputs(str_text(&c->line), c->o.to);
    fflush(c->o.to);
}

static void draw(struct console *c, f64 now) {
    c->line.len = 0;
    str_add(&c->line, "\r");
    build_line(c, &c->line, width_of(c) - 1);
    str_add(&c->line, "\033[K");
    put_line(c);
    c->open = true;
    c->drawn = now;
}

static void plain_line(struct console *c, f64 now) {
    const struct event *e = &c->at;
    struct str *b = &c->line;
    b->len = 0;
    if (e->members > 1) str_addf(b, "member %d of %d  ", e->member + 1, e->members);
    str_addf(b, "step %lld of %lld", (long long)e->step, (long long)e->steps);
    if (!isnan(e->epoch)) str_addf(b, "  epoch %s", text_fixed(e->epoch, 1).s);
    if (!isnan(e->train)) str_addf(b, "  train %s", text_digits(e->train, 4).s);
    if (!isnan(e->valid)) str_addf(b, "  val %s%s", text_digits(e->valid, 4).s, e->valid <= c->best ? " (best)" : "");
    if (e->slices > 0)
        str_addf(b, "  %d slices %s rounds w %.0f efficiency %.0f%%", e->slices, text_fixed(e->rounds, 1).s, e->forgets,
                 100 * e->useful);
    if (!isnan(e->windows_per_s)) str_addf(b, "  %s windows/s", text_si(e->windows_per_s).s);
    str_addf(b, "  %s", text_seconds(e->seconds).s);
    if (e->left >= 0) str_addf(b, "  left %s", text_seconds(e->left).s);
    str_add(b, "\n");
    c->drawn = now;
    put_line(c);
}

static void end_line(struct console *c) {
    if (!c->open) return;
    fputs("\n", c->o.to);
    fflush(c->o.to);
    c->open = false;
}

/* Prints a separate line: erases the progress line and redraws it below. */
static void text_line(struct console *c, const struct event *e) {
    bool warn = e->kind == EVENT_WARNING, was_open = c->open;
    const char *text = e->text ? e->text : "", *rest = text;
    if (!warn && c->o.quiet) return;
    if (was_open) fputs("\r\033[K", c->o.to);
    if (warn) {
        size_t head = strncmp(text, "warning", 7) == 0 ? strcspn(text, " ") : 0;
        rest = text + head;
        fprintf(c->o.to, "%s%.*s%s", c->colour ? "\033[1;33m" : "", head ? (int)head : 8, head ? text : "warning:",
                c->colour ? "\033[0m" : "");
        if (!head) fputs(" ", c->o.to);
    }
    fprintf(c->o.to, "%s\n", rest);
    if (was_open && !c->working) draw(c, c->o.now(c->o.clock));
    if (c->working) c->open = c->working = false; /* a work line redraws itself */
    fflush(c->o.to);
}

/* Final line: duration, best result, reason of the stop. */
static void finish(struct console *c, const struct event *e) {
    if (!c->counted) c->total += c->at.step;
    if (!c->counted) c->spent += e->seconds > 0 ? e->seconds : c->at.seconds;
    c->counted = true;
    if (c->redraw && e->member + 1 >= e->members) draw(c, c->o.now(c->o.clock));
    if (e->member + 1 < e->members) return;
    end_line(c);
    struct str *b = &c->line;
    b->len = 0;
    str_add(b, "trained ");
    if (e->members > 1) str_addf(b, "%d members, ", e->members);
    str_addf(b, "%lld steps in %s", (long long)c->total, text_seconds(c->spent).s);
    if (!isnan(c->best)) {
        str_addf(b, "; best val %s at step %lld", text_digits(c->best, 4).s, (long long)c->best_step);
        if (e->members > 1) str_addf(b, " of member %d", c->best_member + 1);
    }
    if (e->text && *e->text) str_addf(b, "; %s", e->text);
    str_add(b, "\n");
    put_line(c);
}

static void keep_best(struct console *c, const struct event *e, i64 step) {
    c->best = e->valid;
    c->best_step = step;
    c->best_member = e->member;
}

static void progress(struct console *c, const struct event *e) {
    f64 valid = isnan(e->valid) && e->member == c->at.member ? c->at.valid : e->valid;
    f64 train = isnan(e->train) && e->member == c->at.member ? c->at.train : e->train;
    c->at = *e;
    c->at.text = NULL;
    c->at.valid = valid;
    c->at.train = train;
    if (e->kind == EVENT_VALID && (e->best || isnan(c->best) || e->valid < c->best) && !(e->valid >= c->best))
        keep_best(c, e, e->step);
    f64 now = c->o.now(c->o.clock);
    if (c->o.mode == CONSOLE_NONE) return;
    if (c->redraw && now - c->drawn >= REDRAW_EVERY) draw(c, now);
    if (!c->redraw && now - c->drawn >= c->o.interval && e->kind != EVENT_BEGIN) plain_line(c, now);
}

static void work_line(struct console *c, const struct event *e) {
    const f64 share = dmin(1, (f64)e->step / (f64)lmax(1, e->steps));
    struct str *b = &c->line;
    b->len = 0;
    str_addf(b, "%s%s %3d%%", c->redraw ? "\r" : "", e->text, (i32)(100 * share));
    if (c->redraw) {
        add_bar(b, share, imin(BAR_MOST, imax(BAR_LEAST, width_of(c) / 6)), c->utf8);
        str_addf(b, " [%s<%s]\033[K", text_clock(e->seconds).s, text_clock(e->left).s);
    } else {
        str_addf(b, "  %s  left %s\n", text_seconds(e->seconds).s, text_seconds(e->left).s);
    }
    put_line(c);
}

/* Progress of long work without training steps; its line is erased at the end. */
static void work(struct console *c, const struct event *e) {
    const f64 now = c->o.now(c->o.clock);
    const bool over = e->step >= e->steps;
    if (c->o.mode == CONSOLE_NONE) return;
    if (c->open && !c->working) end_line(c);
    if (over) {
        if (c->working && c->redraw) fputs("\r\033[K", c->o.to);
        c->open = c->working = false;
        return;
    }
    if (e->seconds < (c->redraw ? 1 : c->o.interval)) return;
    if (now - c->drawn < (c->redraw ? REDRAW_EVERY : c->o.interval)) return;
    c->drawn = now;
    c->open = c->working = c->redraw;
    work_line(c, e);
}

static void on_event(void *self, const struct event *e) {
    struct console *c = self;
    switch (e->kind) {
    case EVENT_DETAIL:
        if (c->o.verbose) text_line(c, e);
        break;
    case EVENT_NOTE:
    case EVENT_WARNING: text_line(c, e); break;
    case EVENT_BEGIN:
        c->counted = false;
        if (!isnan(e->valid) && !(e->valid >= c->best)) keep_best(c, e, e->best_step); /* of the run that is resumed */
        if (!c->redraw && isinf(c->drawn)) c->drawn = c->o.now(c->o.clock); /* first plain line after one interval */
        progress(c, e);
        break;
    case EVENT_STEP:
    case EVENT_VALID: progress(c, e); break;
    case EVENT_WORK: work(c, e); break;
    case EVENT_TICK:
    case EVENT_PHASE:
    case EVENT_SAVED: break; /* the command prints where its files are */
    case EVENT_END:
        if (c->o.mode != CONSOLE_NONE) finish(c, e);
        break;
    }
}

struct sink console_sink(struct console *c) { return (struct sink){on_event, c}; }

void console_close(struct console *c) {
    end_line(c);
    str_free(&c->line);
}
