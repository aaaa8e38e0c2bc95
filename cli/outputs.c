/* outputs.c - checks output paths before a command starts its work: the folder exists and may be written to, the path is no
 * directory, and it is no input file of the command. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli.h"

static bool same_file(const struct stat *written, const char *read) {
    struct stat st;
    return read && *read && stat(read, &st) == 0 && st.st_dev == written->st_dev && st.st_ino == written->st_ino;
}

static bool is_read(const struct cli *c, const struct stat *written) {
    for (i32 i = 0; i < c->args.narg; i++)
        if (same_file(written, c->args.arg[i])) return true;
    return same_file(written, c->o.config) || same_file(written, c->o.plan) || same_file(written, c->o.check);
}

/* E702 if the folder of a file is missing, which the program does not create, or may not be written to. */
static stretto_err need_folder(const char *option, const char *path) {
    char folder[CLI_PATH], fix[CLI_PATH + 64];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(!slash ? 1 : slash == path ? 1 : slash - path), slash ? path : ".");
    if (access(folder, W_OK) == 0) return 0;
    const int why = errno;
    const char *make = why == ENOENT ? "mkdir -p " : "";
    snprintf(fix, sizeof fix, "%s%.4000s%sanother place: %s OTHER/NAME", make, *make ? folder : "", *make ? "   or   " : "",
             option);
    if (why == ENOENT) return FAIL_AT(E702, path, fix, "cannot write: there is no folder %.4000s", folder);
    return FAIL_AT(E702, path, fix, "cannot write into the folder %.4000s: %s", folder, strerror(why));
}

static stretto_err look_remote(const struct cli *c, const char *option, const char *path) {
    char fix[CLI_PATH];
    bool read = (c->o.config && strcmp(c->o.config, path) == 0) || (c->o.plan && strcmp(c->o.plan, path) == 0);
    for (i32 i = 0; i < c->args.narg; i++) read = read || strcmp(c->args.arg[i], path) == 0;
    if (!read) return file_option(file_remote_writable(path), option);
    snprintf(fix, sizeof fix, "%s OTHER", option);
    return FAIL_AT(E702, path, fix, "%s would overwrite what is read from", option);
}

static stretto_err look(const struct cli *c, const char *option, const char *path) {
    struct stat st;
    char fix[CLI_PATH];
    if (!path || !*path || strcmp(path, "-") == 0) return 0;
    if (file_is_remote(path)) return look_remote(c, option, path);
    if (stat(path, &st) != 0) return need_folder(option, path);
    snprintf(fix, sizeof fix, "%s %.4000s/NAME", option, path);
    if (S_ISDIR(st.st_mode)) return FAIL_AT(E702, path, fix, "cannot write: this is a directory");
    if (!S_ISREG(st.st_mode)) return 0;
    if (!is_read(c, &st)) return need_folder(option, path);
    snprintf(fix, sizeof fix, "%s OTHER", option);
    return FAIL_AT(E702, path, fix, "%s would overwrite what is read from", option);
}

stretto_err cli_outputs(const struct cli *c) {
    const struct options *o = &c->o;
    TRY(look(c, "--out", o->out));
    TRY(look(c, "--log", o->log));
    TRY(look(c, "--onnx", o->onnx));
    TRY(look(c, "--trace", o->trace));
    TRY(look(c, "--plot", o->plot));
    TRY(look(c, "--scores", o->scores));
    TRY(look(c, "--pdf", o->pdf));
    TRY(look(c, "--write-config", o->write_config));
    return look(c, "--save", o->save);
}
