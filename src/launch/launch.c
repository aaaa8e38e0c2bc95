/* launch.c - the launchers of launchers.def, and words of command lines. */
#include "launch/launch.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/mem.h"
#include "launch/supervise.h"

#define LAUNCHER(name) extern const struct launcher launcher_##name;
#include "launch/launchers.def"
#undef LAUNCHER

static const struct launcher *const all[] = {
#define LAUNCHER(name) &launcher_##name,
#include "launch/launchers.def"
#undef LAUNCHER
};

const struct launcher *launcher_find(const char *name) {
    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}

/* Ranks under mpirun are its children, not the supervisor's: each ties itself to its parent.  A parent that was gone before is
 * found out by the mark, when the job is started again. */
void launch_join(void) {
    if (getenv(MARK)) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void launch_say(const struct launch_job *job, const char *fmt, ...) {
    char line[1024];
    va_list ap;
    if (!job->say) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    job->say(job->self, line);
}

void launch_quote(struct str *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        str_add(out, word);
        return;
    }
    str_add(out, "'");
    for (; *word; word++) str_addn(out, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    str_add(out, "'");
}

void launch_line(struct str *out, char *const *word) {
    for (i32 i = 0; word[i]; i++) {
        if (i) str_add(out, " ");
        launch_quote(out, word[i]);
    }
}

void launch_free_words(char **argv) {
    for (i32 i = 0; argv && argv[i]; i++) mem_free(argv[i]);
    mem_free(argv);
}
