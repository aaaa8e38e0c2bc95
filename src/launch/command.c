/* command.c - command lines of this host: ranks as threads of one process, or as processes under the launcher of an MPI. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "launch/launch.h"

enum { EXTRA = 16 }; /* words around those of the job */

struct flavour {
    const char *name;
    const char *program[3]; /* candidates; the first one in PATH is used */
    const char *word[4];
    const char *recovery;   /* lets the remaining ranks survive the death of one; NULL = impossible */
};
static const struct flavour flavours[] = {
    /* do not bind ranks to single cores: each has several threads and shares the allowed cores */
    {"openmpi", {"mpirun.openmpi", "mpirun"}, {"--oversubscribe", "--bind-to", "none"}, "--enable-recovery"},
    {"mpich", {"mpiexec.mpich", "mpiexec.hydra", "mpiexec"}, {NULL}, NULL},
};

static err find_launcher(const struct flavour *f, const char **out) {
    for (size_t i = 0; i < COUNT(f->program) && f->program[i]; i++)
        if (launch_on_path(f->program[i])) return *out = f->program[i], 0;
    return FAIL_AT(E803, "--mpi", "--mpi none   (ranks as threads of one process)", "--mpi %s, and there is no %s on the path",
                   f->name, f->program[0]);
}

struct words {
    char **word;
    i32 n;
    err e;
};

static void put(struct words *w, const char *word) {
    if (w->e < 0) return;
    w->word[w->n] = mem_strdup(word);
    if (!w->word[w->n++]) w->e = -E601;
}

static err put_launcher(struct words *w, const struct launch_job *job) {
    const char *program = NULL;
    char number[16];
    for (i32 i = 0; i < job->front.n; i++) put(w, job->front.word[i]);
    if (job->front.n > 0) return 0;
    for (size_t i = 0; i < COUNT(flavours); i++) {
        const struct flavour *f = &flavours[i];
        if (strcmp(f->name, job->mpi) != 0) continue;
        TRY(find_launcher(f, &program));
        put(w, program);
        for (size_t k = 0; k < COUNT(f->word) && f->word[k]; k++) put(w, f->word[k]);
        if (f->recovery && job->heals) put(w, f->recovery);
    }
    if (!program) return 0;
    snprintf(number, sizeof number, "%d", job->ranks);
    put(w, "-n");
    put(w, number);
    return 0;
}

err launch_command(const struct launch_job *job, bool again, char ***argv) {
    const struct launch_words *own = again ? &job->again : &job->first;
    struct words w = {0};
    char ranks[32];
    NEW(w.word, own->n + job->front.n + EXTRA);
    err e = put_launcher(&w, job);
    const bool threads = w.n == 0;
    put(&w, job->program);
    for (i32 i = 0; i < own->n; i++) put(&w, own->word[i]);
    snprintf(ranks, sizeof ranks, "--ranks=%d", job->ranks);
    if (threads) put(&w, ranks);
    if (e >= 0) e = w.e;
    if (e < 0) {
        launch_free_words(w.word);
        return e;
    }
    *argv = w.word;
    return 0;
}

void launch_free_words(char **argv) {
    for (i32 i = 0; argv && argv[i]; i++) mem_free(argv[i]);
    mem_free(argv);
}
