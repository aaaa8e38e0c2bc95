/* outputs.c - checks output paths before a command starts its work: the folder exists, the path is no directory, and it is no
 * input file of the command. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

static bool same_file(const struct stat *written, const char *read) {
    struct stat st;
    return read && *read && stat(read, &st) == 0 && st.st_dev == written->st_dev && st.st_ino == written->st_ino;
}

static bool is_read(const struct cli *c, const struct stat *written) {
    for (i32 i = 0; i < c->args.narg; i++)
        if (same_file(written, c->args.arg[i])) return true;
    return same_file(written, c->o.config) || same_file(written, c->o.plan);
}

/* E702 if the parent folder of a new file is missing: the program does not create it. */
static stretto_err need_folder(const char *option, const char *path) {
    struct stat st;
    char folder[CLI_PATH], fix[CLI_PATH + 64];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(slash ? slash - path : 0), path);
    if (!folder[0] || stat(folder, &st) == 0 || errno != ENOENT) return 0; /* whatever else is wrong is said when it is written */
    snprintf(fix, sizeof fix, "mkdir -p %.4000s   or   another place: %s OTHER/NAME", folder, option);
    return FAIL_AT(E702, path, fix, "cannot write: there is no folder %.4000s", folder);
}

static stretto_err look(const struct cli *c, const char *option, const char *path) {
    struct stat st;
    char fix[CLI_PATH];
    if (!path || !*path || strcmp(path, "-") == 0) return 0;
    if (stat(path, &st) != 0) return need_folder(option, path);
    snprintf(fix, sizeof fix, "%s %.4000s/NAME", option, path);
    if (S_ISDIR(st.st_mode)) return FAIL_AT(E702, path, fix, "cannot write: this is a directory");
    if (!S_ISREG(st.st_mode) || !is_read(c, &st)) return 0;
    snprintf(fix, sizeof fix, "%s OTHER", option);
    return FAIL_AT(E702, path, fix, "%s would overwrite what is read from", option);
}

stretto_err cli_outputs(const struct cli *c) {
    const struct options *o = &c->o;
    TRY(look(c, "--out", o->out));
    TRY(look(c, "--log", o->log));
    TRY(look(c, "--trace", o->trace));
    TRY(look(c, "--plot", o->plot));
    TRY(look(c, "--write-config", o->write_config));
    return look(c, "--save", o->save);
}
