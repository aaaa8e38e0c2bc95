/* local.c - the launcher of this host: a supervisor, in the foreground or background, runs the command lines of command.c. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/file.h"
#include "launch/launch.h"
#include "launch/supervise.h"

static err render_line(const struct launch_job *job, bool again, struct str *out) {
    char **argv = NULL;
    TRY(launch_command(job, again, &argv));
    launch_line(out, argv);
    str_add(out, "\n");
    launch_free_words(argv);
    return 0;
}

static err render(const struct launch_job *job, struct str *out) {
    str_add(out, "# first\n");
    TRY(render_line(job, false, out));
    str_addf(out, "# after a death or a stop, once there is a checkpoint in ");
    launch_quote(out, job->run_dir);
    str_addf(out, "/checkpoints; at most %d times without a newer one\n", job->max_restarts);
    TRY(render_line(job, true, out));
    return str_ok(out);
}

/* Starts the supervisor in a session of its own; its output goes to RUN/supervisor.out. */
static err in_background(const struct launch_job *job, struct launch_ticket *out) {
    TRY(file_make_dir(job->run_dir));
    snprintf(out->log, sizeof out->log, "%.4300s/supervisor.out", job->run_dir);
    const pid_t child = fork();
    if (child < 0) return FAIL(E601, "no process could be made for the supervisor");
    if (child > 0) {
        launch_say(job, "supervisor: process %d, its output is in %s", (int)child, out->log);
        return 0;
    }
    setsid();
    const int null = open("/dev/null", O_RDONLY), to = open(out->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (null >= 0) dup2(null, 0);
    if (to >= 0 && dup2(to, 1) >= 0) dup2(to, 2);
    out->here = true;
    return 0;
}

static err submit(const struct launch_job *job, struct launch_ticket *out) {
    out->here = job->wait;
    return job->wait ? 0 : in_background(job, out);
}

static err wait_for_end(const struct launch_job *job, struct launch_ticket *t, i32 *exit_status) {
    (void)t;
    return supervise(job, exit_status);
}

extern const struct launcher launcher_local;
const struct launcher launcher_local = {
    .name = "local",
    .help = "this host, with a supervisor that starts again what died",
    .example = "stretto submit --ranks 2 -- train DATA --target COLUMN -o MODEL",
    .takes = 1u << REQUEST_RANKS,
    .render = render,
    .submit = submit,
    .wait = wait_for_end,
};
