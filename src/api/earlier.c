/* earlier.c - what an earlier run left in the run folder, while a new run begins there.
 *
 *     RUN/.earlier/      run.json, config.json, data.json, metrics.jsonl, plan.txt, checkpoints of the earlier run
 *     APART.earlier/     its checkpoints, where they are in a folder APART of their own (base/checkpoints.h)
 *
 * A new run moves them there. If it ends before it has a checkpoint or a model, because it was refused or failed, they are put
 * back: the earlier run can still be resumed. Else they are deleted. A run that was killed in between leaves the folder: `resume`
 * begins that run anew, and the next `train` puts the earlier one back if there is still no checkpoint. */
#include "api/earlier.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checkpoints.h"
#include "base/file.h"
#include "base/hdfs.h"
#include "ckpt/checkpoint.h"

static const char folder[] = ".earlier", checkpoints[] = "checkpoints";
static const char *const files[] = {"run.json", "config.json", "data.json", "metrics.jsonl", "plan.txt"};
enum { ROOM = PATH_MAX + 64 };

/* RUN/NAME and RUN/.earlier/NAME. */
static void paths_of(const char *run_dir, const char *name, char now[ROOM], char before[ROOM]) {
    snprintf(now, ROOM, "%.*s/%s", PATH_MAX - 1, run_dir, name);
    snprintf(before, ROOM, "%.*s/%s/%s", PATH_MAX - 1, run_dir, folder, name);
}

static bool has_checkpoint(const char *run_dir) {
    char dir[4096], path[4096];
    i64 number;
    const bool found = checkpoints_of(run_dir, dir) >= 0 && ckpt_find(dir, 0, path, &number) >= 0;
    err_clear();
    return found;
}

/* The folder of the checkpoints, and where it is set aside: beside it, where it is not in the run folder. */
static void checkpoint_paths(const char *run_dir, char now[ROOM], char before[ROOM]) {
    const char *apart = checkpoints_apart();
    if (!apart) {
        paths_of(run_dir, checkpoints, now, before);
        return;
    }
    size_t n = strlen(apart);
    while (n > 1 && apart[n - 1] == '/') n--;
    snprintf(now, ROOM, "%.*s", (int)lmin((i64)n, PATH_MAX - 1), apart);
    snprintf(before, ROOM, "%.*s%s", PATH_MAX - 1, now, folder);
}

static void remove_checkpoints(const char *dir) {
    if ((hdfs_is(dir) ? hdfs_remove(dir) : ckpt_clear(dir)) < 0) err_clear();
    rmdir(dir);
}

/* Moves a file or folder; true if there was one. */
static bool moved(const char *from, const char *to) {
    if (!hdfs_is(from)) return rename(from, to) == 0;
    const bool done = hdfs_rename(from, to) >= 0;
    err_clear();
    return done;
}

/* RUN/.earlier, without a slash at the end. */
static void folder_of(const char *run_dir, char out[ROOM]) { snprintf(out, ROOM, "%.*s/%s", PATH_MAX - 1, run_dir, folder); }

/* Deletes RUN/.earlier. */
static void drop(const char *run_dir) {
    char now[ROOM], before[ROOM];
    for (size_t i = 0; i < COUNT(files); i++) {
        paths_of(run_dir, files[i], now, before);
        unlink(before);
    }
    checkpoint_paths(run_dir, now, before);
    remove_checkpoints(before);
    folder_of(run_dir, before);
    rmdir(before);
}

/* Files of the run that failed go, also those that the earlier run did not have. */
static void put_back(const char *run_dir) {
    char now[ROOM], before[ROOM], kept[ROOM + 16];
    for (size_t i = 0; i < COUNT(files); i++) {
        paths_of(run_dir, files[i], now, before);
        if (!moved(before, now)) unlink(now);
    }
    checkpoint_paths(run_dir, now, before);
    remove_checkpoints(now);
    moved(before, now);
    folder_of(run_dir, before);
    rmdir(before);
    paths_of(run_dir, "trained.model", now, before);
    snprintf(kept, sizeof kept, "%s.earlier", now); /* keep.c has set it aside */
    if (!file_exists(now)) moved(kept, now);
}

static bool is_aside(const char *run_dir) {
    char before[ROOM];
    struct stat st;
    folder_of(run_dir, before);
    return lstat(before, &st) == 0 && S_ISDIR(st.st_mode);
}

bool earlier_settle(const char *run_dir, bool trained, bool resumed) {
    if (!is_aside(run_dir)) return false;
    const bool keep = trained || has_checkpoint(run_dir);
    if (keep) drop(run_dir);
    else if (!resumed) put_back(run_dir);
    return !keep && !resumed;
}

static void recover(const char *run_dir) {
    char now[ROOM], before[ROOM];
    paths_of(run_dir, "trained.model", now, before);
    earlier_settle(run_dir, file_exists(now), false);
}

void earlier_recover(const char *run_dir) {
    char now[ROOM], before[ROOM];
    paths_of(run_dir, "run.json", now, before);
    if (!file_exists(now)) recover(run_dir);
}

err earlier_set_aside(const char *run_dir) {
    char now[ROOM], before[ROOM];
    recover(run_dir);
    paths_of(run_dir, "run.json", now, before);
    if (!file_exists(now) && !(checkpoints_apart() && has_checkpoint(run_dir))) return 0;
    folder_of(run_dir, before);
    if (mkdir(before, 0777) != 0) return FAIL(E702, "cannot write %s: %s", before, strerror(errno));
    for (size_t i = 0; i < COUNT(files); i++) {
        paths_of(run_dir, files[i], now, before);
        moved(now, before);
    }
    checkpoint_paths(run_dir, now, before);
    moved(now, before);
    return 0;
}
