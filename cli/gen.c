/* gen.c - manual page (man macros) and completion scripts for bash, zsh and fish, from the tables. */
#include "gen.h"

#include <string.h>

#include "help.h"

/* Text for troff: dashes stay dashes, backslashes are doubled, a dot in front is hidden. */
static void troff(FILE *f, const char *text) {
    if (*text == '.' || *text == '\'') fputs("\\&", f);
    for (; *text; text++) {
        if (*text == '-') fputs("\\-", f);
        else if (*text == '\\') fputs("\\e", f);
        else fputc(*text, f);
    }
}

static void man_options(FILE *f, const struct opt_list *lists) {
    for (i32 g = 0; g < OPT_HIDDEN; g++) {
        fprintf(f, ".SS %s\n", g == OPT_VERB ? "Options of single verbs" : opt_group_name((enum opt_group)g));
        for (i32 i = 0; i < OPT_COUNT; i++) {
            if ((i32)opt_info((enum opt_id)i)->group != g) continue;
            struct str flag = {0}, note = {0};
            help_flag(&flag, (enum opt_id)i, lists);
            help_note(&note, (enum opt_id)i, lists);
            fputs(".TP\n.B ", f);
            troff(f, str_text(&flag));
            fputc('\n', f);
            troff(f, str_text(&note));
            fputc('\n', f);
            str_free(&flag);
            str_free(&note);
        }
    }
}

/* An exit status and the errors that cause it. */
static void man_status(FILE *f, i32 status) {
    bool any = false;
    for (i32 i = 0; i < err_count(); i++) {
        if (err_at(i)->exit_status != status) continue;
        if (any) fputs(",\n", f);
        else fprintf(f, ".TP\n.B %d\n", (int)status);
        any = true;
        troff(f, err_at(i)->title);
        fprintf(f, " (E%03d)", err_at(i)->code);
    }
    if (any) fputc('\n', f);
}

void gen_man(FILE *f, const struct opt_list *lists) {
    fputs(".TH STRETTO 1 \"\" \"Stretto\" \"User Commands\"\n"
          ".SH NAME\nstretto \\- train recurrent forecasters and compare them with naive forecasts\n"
          ".SH SYNOPSIS\n.B stretto\n.I VERB ARGUMENTS\n[options]\n"
          ".SH DESCRIPTION\nFrom a file of time series to a trained, honestly evaluated, saved forecaster. "
          "Results go to standard output, everything else to standard error.\n.SH VERBS\n",
          f);
    for (i32 i = 0; i < VERB_COUNT; i++) {
        const struct verb_info *v = verb_info((enum verb)i);
        fprintf(f, ".TP\n.B %s ", v->name);
        troff(f, v->args);
        fputc('\n', f);
        troff(f, v->help);
        fputc('\n', f);
    }
    fputs(".SH OPTIONS\nRanges stand in parentheses, defaults in brackets. "
          "Every option may stand in a config file, as a line \\(lqname: value\\(rq.\n",
          f);
    man_options(f, lists);
    fputs(".SH EXIT STATUS\n", f);
    for (i32 status = 0; status < 100; status++) man_status(f, status);
    fputs(".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno colors, as \\-\\-color never\n"
          ".TP\n.B STRETTO_ISA\nhighest instruction set to use\n"
          ".TP\n.B STRETTO_WISDOM\nfile of measurements made on this machine (stretto/wisdom in $XDG_CACHE_HOME or ~/.cache), "
          "or off\n"
          ".SH FILES\n.TP\n.I MODEL\nsafetensors file with schema and options inside\n"
          ".TP\n.I MODEL.run\nrun directory: config.json, metrics.jsonl, report.html, checkpoints/\n"
          ".SH SEE ALSO\n.B stretto help\n.IR TOPIC ,\n.B stretto explain\n.I WHAT\n",
          f);
}

/* The values of a WORD option, separated by `between`; nothing for other options. */
static void words(FILE *f, enum opt_id id, const struct opt_list *lists, const char *between) {
    struct str out = {0};
    opt_words_text(&out, lists, opt_info(id), between);
    fputs(str_text(&out), f);
    str_free(&out);
}

static bool takes(enum opt_id id, i32 verb) { return opt_info(id)->group != OPT_HIDDEN && (opt_info(id)->verbs >> verb & 1); }

static bool on(enum opt_id id) { return opt_info(id)->type == OPT_BOOL && strcmp(opt_info(id)->def, "yes") == 0; }

static void all_verbs(FILE *f) {
    for (i32 i = 0; i < VERB_COUNT; i++) fprintf(f, "%s%s", i ? " " : "", verb_info((enum verb)i)->name);
}

static void all_topics(FILE *f) {
    for (i32 i = 0; help_topic_name(i); i++) fprintf(f, "%s%s", i ? " " : "", help_topic_name(i));
}

/* The values of options, as branches of a shell case. */
static void bash_values(FILE *f, const struct opt_list *lists) {
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const struct opt_info *info = opt_info((enum opt_id)i);
        if (info->type == OPT_BOOL) continue;
        char letter = opt_letter((enum opt_id)i);
        fprintf(f, "    --%s", info->name);
        if (letter) fprintf(f, "|-%c", letter);
        if (info->type == OPT_PATH) {
            fputs(") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", f);
        } else if (info->type == OPT_WORD) {
            fputs(") COMPREPLY=($(compgen -W \"", f);
            words(f, (enum opt_id)i, lists, " ");
            fputs("\" -- \"$cur\")); return ;;\n", f);
        } else {
            fputs(") return ;;\n", f);
        }
    }
}

static void gen_bash(FILE *f, const struct opt_list *lists) {
    fputs("# bash completion of stretto, made by `stretto help --completion bash`\n"
          "_stretto() {\n"
          "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} opts=\n"
          "  COMPREPLY=()\n"
          "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"",
          f);
    all_verbs(f);
    fputs(" --help --version\" -- \"$cur\")); return\n  fi\n  case $prev in\n", f);
    bash_values(f, lists);
    fputs("  esac\n  case $verb in\n", f);
    for (i32 v = 0; v < VERB_COUNT; v++) {
        fprintf(f, "    %s) opts=\"--help", verb_info((enum verb)v)->name);
        for (i32 i = 0; i < OPT_COUNT; i++)
            if (takes((enum opt_id)i, v)) fprintf(f, " --%s%s", on((enum opt_id)i) ? "no-" : "", opt_info((enum opt_id)i)->name);
        fputs("\" ;;\n", f);
    }
    fputs("  esac\n"
          "  case $cur in\n"
          "    -*) COMPREPLY=($(compgen -W \"$opts\" -- \"$cur\")) ;;\n"
          "    *) if [ \"$verb\" = help ]; then COMPREPLY=($(compgen -W \"",
          f);
    all_topics(f);
    fputs("\" -- \"$cur\")); else COMPREPLY=($(compgen -f -- \"$cur\")); fi ;;\n"
          "  esac\n}\ncomplete -o filenames -F _stretto stretto\n",
          f);
}

/* Text inside single quotes of a zsh specification or a fish description. */
static void quoted(FILE *f, const char *text, const char *escape) {
    for (; *text; text++) {
        if (*text == '\'') fputs("'\\''", f);
        else if (strchr(escape, *text)) fprintf(f, "\\%c", *text);
        else fputc(*text, f);
    }
}

/* One option as a line of _arguments: '--gaps=[what a missing step means]:word:(error mask)'. */
static void zsh_option(FILE *f, enum opt_id id, bool brief, const struct opt_list *lists) {
    const struct opt_info *info = opt_info(id);
    bool flag = info->type == OPT_BOOL;
    if (brief) fprintf(f, " \\\n      '-%c%s[", opt_letter(id), flag ? "" : "+");
    else fprintf(f, " \\\n      '--%s%s%s[", on(id) ? "no-" : "", info->name, flag ? "" : "=");
    quoted(f, info->help, "[]:");
    fputc(']', f);
    if (info->type == OPT_WORD) {
        fputs(":word:(", f);
        words(f, id, lists, " ");
        fputc(')', f);
    } else if (!flag) {
        fputs(info->type == OPT_PATH ? ":file:_files" : ":value: ", f);
    }
    fputc('\'', f);
}

static void gen_zsh(FILE *f, const struct opt_list *lists) {
    fputs("#compdef stretto\n# zsh completion of stretto, made by `stretto help --completion zsh`\n"
          "_stretto() {\n  if (( CURRENT == 2 )); then\n    local -a verbs=(\n",
          f);
    for (i32 v = 0; v < VERB_COUNT; v++) {
        fprintf(f, "      '%s:", verb_info((enum verb)v)->name);
        quoted(f, verb_info((enum verb)v)->help, ":");
        fputs("'\n", f);
    }
    fputs("    )\n    _describe verb verbs; return\n  fi\n"
          "  local verb=$words[2]\n  shift words; (( CURRENT-- ))\n  case $verb in\n",
          f);
    for (i32 v = 0; v < VERB_COUNT; v++) {
        fprintf(f, "    %s) _arguments", verb_info((enum verb)v)->name);
        for (i32 i = 0; i < OPT_COUNT; i++) {
            if (!takes((enum opt_id)i, v)) continue;
            if (opt_letter((enum opt_id)i)) zsh_option(f, (enum opt_id)i, true, lists);
            zsh_option(f, (enum opt_id)i, false, lists);
        }
        if (v == VERB_help) {
            fputs(" \\\n      '*:topic:(", f);
            all_topics(f);
            fputs(")' ;;\n", f);
        } else {
            fputs(" \\\n      '*:file:_files' ;;\n", f);
        }
    }
    fputs("  esac\n}\n_stretto \"$@\"\n", f);
}

static void gen_fish(FILE *f, const struct opt_list *lists) {
    fputs("# fish completion of stretto, made by `stretto help --completion fish`\n", f);
    for (i32 v = 0; v < VERB_COUNT; v++) {
        fprintf(f, "complete -c stretto -f -n __fish_use_subcommand -a %s -d '", verb_info((enum verb)v)->name);
        quoted(f, verb_info((enum verb)v)->help, "");
        fputs("'\n", f);
    }
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const struct opt_info *info = opt_info((enum opt_id)i);
        char letter = opt_letter((enum opt_id)i);
        if (info->group == OPT_HIDDEN) continue;
        fputs("complete -c stretto -n '__fish_seen_subcommand_from", f);
        for (i32 v = 0; v < VERB_COUNT; v++)
            if (takes((enum opt_id)i, v)) fprintf(f, " %s", verb_info((enum verb)v)->name);
        fprintf(f, "' -l %s%s", on((enum opt_id)i) ? "no-" : "", info->name);
        if (letter) fprintf(f, " -s %c", letter);
        if (info->type == OPT_PATH) fputs(" -r -F", f);
        else if (info->type != OPT_BOOL) fputs(" -x", f);
        if (info->type == OPT_WORD) {
            fputs(" -a '", f);
            words(f, (enum opt_id)i, lists, " ");
            fputs("'", f);
        }
        fputs(" -d '", f);
        quoted(f, info->help, "");
        fputs("'\n", f);
    }
    fputs("complete -c stretto -f -n '__fish_seen_subcommand_from help' -a '", f);
    all_topics(f);
    fputs("'\n", f);
}

err gen_completion(FILE *f, const char *shell, const struct opt_list *lists) {
    if (strcmp(shell, "bash") == 0) gen_bash(f, lists);
    else if (strcmp(shell, "zsh") == 0) gen_zsh(f, lists);
    else if (strcmp(shell, "fish") == 0) gen_fish(f, lists);
    else return FAIL_AT(E103, NULL, "--completion bash   or   zsh   or   fish", "no completion for the shell \"%.40s\"", shell);
    return 0;
}
