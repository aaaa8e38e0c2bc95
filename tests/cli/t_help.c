/* t_help.c - help, error texts, manual page and completion say everything the tables hold. */
#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen.h"
#include "help.h"

static const struct opt_list lists[] = {{"cells", " lstm gru rnn"},
                                       {"heads", "direct parallel autoregressive"},
                                       {"losses", " mse mae"}, {"optims", " sgd adam"}, {0}};

/* The text that a call prints to `f`; valid until the next one. */
static char *text;
static FILE *f;
static size_t size;
#define PRINTED(call)                                                                                                            \
    do {                                                                                                                         \
        free(text);                                                                                                              \
        text = NULL;                                                                                                             \
        f = open_memstream(&text, &size);                                                                                        \
        assert_non_null(f);                                                                                                      \
        call;                                                                                                                    \
        fclose(f);                                                                                                               \
    } while (0)

static void has(const char *what) {
    if (!strstr(text, what)) fail_msg("\"%s\" is not in\n%.3000s", what, text);
}

static void lines_fit(i32 width) {
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, "\n");
        if ((i32)n > width) fail_msg("a line of %zu columns: %.*s", n, (int)n, s);
        s += n + (s[n] != 0);
    }
}

TEST(overview_names_every_verb_and_topic) {
    PRINTED(help_overview(f));
    for (i32 v = 0; v < VERB_COUNT; v++) has(verb_info((enum verb)v)->help);
    for (i32 t = 0; help_topic_name(t); t++) has(help_topic_name(t));
    lines_fit(120);
}

TEST(verb_help_names_exactly_its_options) {
    for (i32 v = 0; v < VERB_COUNT; v++) {
        PRINTED(help_verb(f, (enum verb)v, lists));
        lines_fit(120);
        for (i32 i = 0; i < OPT_COUNT; i++) {
            const struct opt_info *info = opt_info((enum opt_id)i);
            struct str flag = {0}, line = {0};
            help_flag(&flag, (enum opt_id)i, lists);
            str_addf(&line, "\n%s%s", opt_letter((enum opt_id)i) ? "  " : "      ", str_text(&flag));
            const char *at = strstr(text, str_text(&line));
            bool listed = at && (at[line.len] == ' ' || at[line.len] == '\n');
            bool wanted = (info->verbs >> v & 1) && info->group != OPT_HIDDEN;
            if (listed != wanted) fail_msg("%s %s %s", verb_info((enum verb)v)->name, wanted ? "lacks" : "shows", info->name);
            str_free(&flag);
            str_free(&line);
        }
    }
    PRINTED(help_verb(f, VERB_train, lists));
    has("  -o, --out FILE");
    has("      --cell lstm|gru|rnn         recurrent cell [lstm]\n");
    has("      --layers N                  number of recurrent layers (1 to 8) [1]\n");
    has("      --[no-]guard ");
    has("usage: stretto train DATA [-o MODEL] [options]\n");
}

TEST(topics_all_print_and_unknown_ones_are_refused) {
    static const char *const lines[] = {
#define TOPIC(name, line, group, text) line,
#include "topics.def"
#undef TOPIC
    };
    for (i32 t = 0; help_topic_name(t); t++) {
        PRINTED(T_OK(help_topic(f, help_topic_name(t), lists)));
        assert_true(size > 100);
        has(lines[t]);
        lines_fit(120);
    }
    PRINTED(T_OK(help_topic(f, "train", lists)));
    has("usage: stretto train");
    PRINTED(T_OK(help_topic(f, "presets", lists)));
    for (i32 i = 0; i < preset_count(); i++) has(preset_at(i)->name);
    PRINTED(T_FAILS(help_topic(f, "trainin", lists), E101));
    assert_string_equal(err_last()->fix, "stretto help training   (did you mean this?)");
}

TEST(explain_knows_every_code) {
    char code[16];
    for (i32 i = 0; i < err_count(); i++) {
        snprintf(code, sizeof code, "E%03d", err_at(i)->code);
        PRINTED(T_OK(help_explain(f, code)));
        has(err_at(i)->title);
        has("exit status");
        lines_fit(120);
    }
    PRINTED(T_OK(help_explain(f, "204")));
    has("E204 not a number");
    PRINTED(T_OK(help_explain(f, "w034")));
    has("W034 ");
    T_FAILS(help_explain(stderr, "E999"), E101);
    T_FAILS(help_explain(stderr, "W204"), E101);
    T_FAILS(help_explain(stderr, "banana"), E101);
    T_FAILS(help_explain(stderr, ""), E101);
}

TEST(man_page_has_every_verb_option_and_status) {
    static const char *const request[] = {".TP\n", ".B ", ".SH ", ".SS ", ".I ", ".IR ", ".TH "};
    PRINTED(gen_man(f, lists));
    for (i32 v = 0; v < VERB_COUNT; v++) has(verb_info((enum verb)v)->name);
    has("\\-\\-print\\-config");
    has("\\-\\-gaps error|mask|interpolate|zero");
    has(".B 75\nstopped, checkpoint written (E802)");
    for (const char *s = text; (s = strchr(s, '\n')) && s[1]; s++) { /* a line of text must not look like a request */
        if (s[1] != '.') continue;
        bool known = false;
        for (size_t i = 0; i < COUNT(request); i++) known |= strncmp(s + 1, request[i], strlen(request[i])) == 0;
        if (!known) fail_msg("a request of its own: %.20s", s + 1);
    }
}

TEST(completion_has_every_option_and_parses) {
    static const char *const shell[] = {"bash", "zsh", "fish"};
    for (size_t k = 0; k < COUNT(shell); k++) {
        PRINTED(T_OK(gen_completion(f, shell[k], lists)));
        for (i32 i = 0; i < OPT_COUNT; i++)
            if (opt_info((enum opt_id)i)->group != OPT_HIDDEN) has(opt_info((enum opt_id)i)->name);
        char command[5000];
        const char *path = t_file("completion", text);
        snprintf(command, sizeof command, "command -v %s >/dev/null || exit 0; %s -n '%s'", shell[k], shell[k], path);
        assert_int_equal(system(command), 0);
    }
    T_FAILS(gen_completion(stderr, "tcsh", lists), E103);
}

/* What bash offers at the end of a few lines. */
TEST(completion_of_bash_offers_options_and_words) {
    if (system("command -v bash >/dev/null") != 0) skip();
    PRINTED(T_OK(gen_completion(f, "bash", lists)));
    const char *script = t_file("stretto.bash", text);
    static const struct {
        const char *words, *want;
    } cases[] = {{"stretto tr", "train"},
                 {"stretto train --gap", "--gaps"},
                 {"stretto train a.csv --gaps in", "interpolate"},
                 {"stretto predict --targ", ""},
                 {"stretto help exi", "exit-codes"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char command[5000];
        snprintf(command, sizeof command,
                 "bash -c '. %s; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _stretto; "
                 "[ \"${COMPREPLY[*]}\" = \"%s\" ]'",
                 script, cases[i].words, cases[i].want);
        if (system(command) != 0) fail_msg("%s: not \"%s\"", cases[i].words, cases[i].want);
    }
}

T_MAIN(cmocka_unit_test(overview_names_every_verb_and_topic), cmocka_unit_test(verb_help_names_exactly_its_options),
       cmocka_unit_test(topics_all_print_and_unknown_ones_are_refused), cmocka_unit_test(explain_knows_every_code),
       cmocka_unit_test(man_page_has_every_verb_option_and_status), cmocka_unit_test(completion_has_every_option_and_parses),
       cmocka_unit_test(completion_of_bash_offers_options_and_words))
