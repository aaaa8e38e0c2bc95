/* shared.c - what the verbs share: the error on stderr, events to the progress line, options of the config file, output. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli.h"
#include "remedy.h"

/* --- errors --- */
static void json_text(FILE *f, const char *name, const char *s) {
    fprintf(f, ", \"%s\": \"", name);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') fprintf(f, "\\%c", *s);
        else if ((unsigned char)*s < 0x20) fprintf(f, "\\u%04x", (unsigned)*s);
        else fputc(*s, f);
    }
    fputc('"', f);
}

static void show_json(FILE *f, const char *fix) {
    fprintf(f, "{\"error\": \"E%03d\"", stretto_errcode());
    json_text(f, "where", stretto_errwhere());
    json_text(f, "text", stretto_errmsg());
    json_text(f, "fix", fix);
    fputs("}\n", f);
}

/* Prints every line of a text after a prefix. */
static void show_lines(FILE *f, const char *first, const char *others, const char *text) {
    for (const char *p = text, *front = first; *p; front = others) {
        size_t n = strcspn(p, "\n");
        fprintf(f, "%s%.*s\n", front, (int)n, p);
        p += n + (p[n] ? 1 : 0);
    }
}

static enum console_colour wants_colour(const struct cli *c) {
    return strcmp(c->o.color, "always") == 0 ? COLOUR_ALWAYS : strcmp(c->o.color, "never") == 0 ? COLOUR_NEVER : COLOUR_AUTO;
}

static void show_text(FILE *f, const struct cli *c, const char *fix) {
    const bool colour = console_colours(stderr, wants_colour(c));
    const char *where = stretto_errwhere();
    if (stretto_rank() > 0) fprintf(f, "rank %d: ", stretto_rank());
    fprintf(f, "%serror[E%03d]%s %s%s", colour ? "\033[1;31m" : "", stretto_errcode(), colour ? "\033[0m" : "", where,
            *where ? ": " : "");
    show_lines(f, "", "  ", stretto_errmsg());
    show_lines(f, "  fix: ", "  fix: ", fix);
}

/* Builds the text and writes it at once, since several processes may print an error at the same time. */
void cli_show_error(struct cli *c) {
    static char text[8192];
    if (c->shown) return;
    c->shown = true;
    struct str fix = {0};
    if (c->args.verb < 0) str_add(&fix, stretto_errfix());
    else cli_fit_remedy((enum verb)c->args.verb, stretto_errfix(), &fix);
    FILE *gathered = fmemopen(text, sizeof text, "w"), *f = gathered ? gathered : stderr;
    if (c->o.json) show_json(f, str_text(&fix));
    else show_text(f, c, str_text(&fix));
    str_free(&fix);
    if (gathered) fclose(gathered);
    fputs(text, stderr);
}

/* --- shared by the verbs --- */
void cli_open_console(struct cli *c) {
    struct console_options o = {.to = stderr, .quiet = c->o.quiet, .verbose = c->o.verbose, .colour = wants_colour(c)};
    o.mode = strcmp(c->o.progress, "plain") == 0                ? CONSOLE_PLAIN
             : strcmp(c->o.progress, "none") == 0 || c->o.quiet ? CONSOLE_NONE
                                                                : CONSOLE_AUTO;
    console_open(&c->console, &o);
}

void cli_on_event(void *cli, const stretto_event *e) {
    struct cli *c = cli;
#define SAME(field) .field = e->field,
    struct event out = {.kind = (enum event_kind)e->kind, EVENT_SHARED(SAME)};
#undef SAME
    if (c->silent) {
        c->silent = false;
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

stretto_err cli_print_out(const struct cli *c, char *text) {
    const char *out = cli_out(c, "-");
    if (strcmp(out, "-") == 0) return cli_print(text);
    const err e = file_write_all(out, text, (i64)strlen(text));
    stretto_text_free(text);
    return file_option(e, "--out");
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
