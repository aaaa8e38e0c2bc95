/* shared.c - what the verbs share: the error on stderr, events to the progress line, options of the config file, output. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* --- errors --- */
/* Gathered, then written at once: several processes may have something to say. */
static char shown[8192];
static size_t nshown;

static void PRINTF_LIKE(1, 2) show(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(shown + nshown, sizeof shown - nshown, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < sizeof shown - nshown) nshown += (size_t)n;
}

static void json_text(const char *s) {
    show("\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') show("\\%c", *s);
        else if ((unsigned char)*s < 0x20) show("\\u%04x", (unsigned)*s);
        else show("%c", *s);
    }
    show("\"");
}

static void show_json(void) {
    show("{\"error\": \"E%03d\", \"where\": ", stretto_errcode());
    json_text(stretto_errwhere());
    show(", \"text\": ");
    json_text(stretto_errmsg());
    show(", \"fix\": ");
    json_text(stretto_errfix());
    show("}\n");
}

/* Every line of a text, with something in front of it. */
static void show_lines(const char *first, const char *others, const char *text) {
    for (const char *p = text, *front = first; *p; front = others) {
        size_t n = strcspn(p, "\n");
        show("%s%.*s\n", front, (int)n, p);
        p += n + (p[n] ? 1 : 0);
    }
}

static void show_text(const struct cli *c) {
    bool colour = console_colours(stderr, strcmp(c->o.color, "always") == 0  ? COLOUR_ALWAYS
                                          : strcmp(c->o.color, "never") == 0 ? COLOUR_NEVER
                                                                             : COLOUR_AUTO);
    const char *where = stretto_errwhere();
    if (stretto_rank() > 0) show("rank %d: ", stretto_rank());
    show("%serror[E%03d]%s %s%s", colour ? "\033[1;31m" : "", stretto_errcode(), colour ? "\033[0m" : "", where,
         *where ? ": " : "");
    show_lines("", "  ", stretto_errmsg());
    show_lines("  fix: ", "  fix: ", stretto_errfix());
}

void cli_show_error(struct cli *c) {
    if (c->told) return;
    c->told = true;
    if (c->o.json) show_json();
    else show_text(c);
    fwrite(shown, 1, nshown, stderr);
}

/* --- shared by the verbs --- */
void cli_open_console(struct cli *c) {
    struct console_options o = {.to = stderr, .quiet = c->o.quiet};
    o.mode = strcmp(c->o.progress, "plain") == 0                ? CONSOLE_PLAIN
             : strcmp(c->o.progress, "none") == 0 || c->o.quiet ? CONSOLE_NONE
                                                                : CONSOLE_AUTO;
    o.colour = strcmp(c->o.color, "always") == 0 ? COLOUR_ALWAYS : strcmp(c->o.color, "never") == 0 ? COLOUR_NEVER : COLOUR_AUTO;
    console_open(&c->console, &o);
}

void cli_on_event(void *cli, const stretto_event *e) {
    struct cli *c = cli;
#define SAME(field) .field = e->field,
    struct event out = {.kind = (enum event_kind)e->kind, EVENT_SHARED(SAME)};
#undef SAME
    if (c->hushed) {
        c->hushed = false;
        c->o.quiet = c->quiet;
        console_close(&c->console);
        cli_open_console(c);
    }
    struct sink s = console_sink(&c->console);
    s.on(s.self, &out);
}

stretto_err cli_print(char *text) {
    err e = 0;
    if (text && (fputs(text, stdout) == EOF || fflush(stdout) != 0)) e = FAIL(E703, "cannot write to standard output");
    stretto_text_free(text);
    return e;
}

const char *cli_out(const struct cli *c, const char *otherwise) { return c->o.out && *c->o.out ? c->o.out : otherwise; }

void cli_warn(const struct cli *c, const char *fmt, ...) {
    va_list ap;
    (void)c;
    va_start(ap, fmt);
    fputs("warning: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

/* --- options --- */
stretto_err cli_config(struct cli *c) {
    c->config = stretto_config_new();
    if (!c->config) return -E601;
    if (c->o.config && *c->o.config) TRY(stretto_config_load(c->config, c->o.config));
    for (i32 i = 0; i < OPT_COUNT; i++)
        if (c->o.meta[i].rank == OPT_RANK_FLAG)
            TRY(stretto_config_flag(c->config, opt_info((enum opt_id)i)->name, c->o.meta[i].text));
    return 0;
}

stretto_err cli_take(struct cli *c, enum opt_id id) {
    static const struct opt_from file = {.rank = OPT_RANK_FILE};
    if (c->o.meta[id].rank >= OPT_RANK_FLAG) return 0;
    return opt_set_id(&c->o, id, stretto_config_get(c->config, opt_info(id)->name), &file);
}
