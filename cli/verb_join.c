/* verb_join.c - `join`: what a container runs that a scheduler started for a job (`submit --on yarn`).
 *
 *     join --session S --member 1 --nodes 2 --ranks-per-node 2 -- train DATA .. -o MODEL     a member; 0 has the supervisor
 *     join --session S --member -1 .. -- PROGRAM train ..                                    one attempt, started by the
 * supervisor */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checkpoints.h"
#include "base/mem.h"
#include "job.h"
#include "launch/join.h"
#include "launch/yarn.h"

enum { START = -1, NUMBER = 32 };

/* The words by which the supervisor starts an attempt: this program, as member -1. */
struct front {
    char session[300], nodes[NUMBER], ranks[NUMBER], patience[NUMBER], run[CLI_PATH + NUMBER];
    const char *word[12];
    i32 n;
};

static void make_front(struct front *f, const struct options *o, const struct launch_job *job) {
    snprintf(f->session, sizeof f->session, "--session=%s", o->session);
    snprintf(f->nodes, sizeof f->nodes, "--nodes=%d", job->nodes);
    snprintf(f->ranks, sizeof f->ranks, "--ranks-per-node=%d", job->ranks_per_node);
    snprintf(f->patience, sizeof f->patience, "--gather-time=%.0fs", o->gather_time);
    snprintf(f->run, sizeof f->run, "--run-dir=%s", job->meeting);
    const char *const words[] = {job->program, "join", "--member=-1", f->session, f->nodes, f->ranks, f->patience, f->run, "--"};
    f->n = (i32)COUNT(words);
    memcpy(f->word, words, sizeof words);
}

static void keep_output(const struct launch_job *job, const struct join *j) { yarn_keep_output(job, j->session, j->member); }

static struct join join_of(const struct options *o) {
    return (struct join){.session = o->session,
                         .member = (i32)o->member,
                         .members = (i32)o->nodes,
                         .ranks_per_member = (i32)o->ranks_per_node,
                         .patience = o->gather_time,
                         .again = yarn_is_here(),
                         .closing = keep_output,
                         .out = STDOUT_FILENO};
}

/* For the supervisor and the ranks of this member. */
static void name_checkpoints(const struct launch_job *job) {
    char folder[CLI_PATH + NUMBER];
    snprintf(folder, sizeof folder, "%s/checkpoints", job->meeting);
    setenv(CHECKPOINTS_VARIABLE, folder, 1);
}

static stretto_err member(struct cli *c, const struct join *j) {
    const struct launcher *l = launcher_find("yarn");
    struct launch_job job;
    struct front front;
    struct inner *in;
    NEW(in, 1);
    stretto_err e = job_parse(&c->args, l, in);
    if (e >= 0) e = job_fill(c, l, in, &job);
    if (e >= 0 && job.apart) name_checkpoints(&job);
    if (e >= 0) e = yarn_enter(&job, j->session, j->member);
    if (e >= 0) {
        make_front(&front, &c->o, &job);
        job.front = (struct launch_words){front.word, front.n};
        e = join_member(&job, j, &c->status);
    }
    if (e >= 0) c->status = yarn_leave(&job, c->status);
    job_free(in);
    return e;
}

stretto_err cmd_join(struct cli *c) {
    const struct options *o = &c->o;
    const struct join j = join_of(o);
    if (c->args.nrest == 0 || !o->session || !*o->session)
        return FAIL_AT(E105, NULL, "stretto submit --on yarn .. -- train ..   (it starts join in every container)",
                       "join needs --session, and a command line after --");
    if (o->workdir && *o->workdir && chdir(o->workdir) != 0)
        return FAIL_AT(E701, "--workdir", "submit from a folder that every node has, as on a shared file system",
                       "the folder %s is not on this node", o->workdir);
    if (j.member >= j.members) return FAIL_AT(E103, "--member", "--member 0", "member %d of %d members", j.member, j.members);
    if (j.member != START) return member(c, &j);
    return join_start(o->run_dir, &j, (struct launch_words){(const char *const *)c->args.rest, c->args.nrest}, &c->status);
}
