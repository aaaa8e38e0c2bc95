/* scratch.c - a folder for files that an MPI library creates: shared memory segments, sockets.
 *
 * Open MPI deletes them when it exits normally.  A killed launcher leaves them behind, and they occupy memory.  So a supervised
 * job gets its own folder in /dev/shm, named after the run, and the supervisor deletes it after every attempt. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "launch/supervise.h"

enum { DEEPEST = 8 };

void scratch_path(const char *mark, char out[SCRATCH_PATH]) {
    const u64 h = hash_bytes(HASH_SEED, mark, strlen(mark));
    snprintf(out, SCRATCH_PATH, "/dev/shm/stretto-%d-%016llx", (int)geteuid(), (unsigned long long)h);
}

/* True for a folder of this user that is no link: everyone may write to /dev/shm. */
static bool is_ours(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static void remove_tree(const char *path, i32 depth) {
    char inner[4096];
    DIR *dir = is_ours(path) && depth < DEEPEST ? opendir(path) : NULL;
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, d->d_name) >= (int)sizeof inner) continue;
        if (is_ours(inner)) remove_tree(inner, depth + 1);
        else unlink(inner);
    }
    if (!dir) return;
    closedir(dir);
    rmdir(path);
}

void scratch_remove(const char *mark) {
    char path[SCRATCH_PATH];
    scratch_path(mark, path);
    remove_tree(path, 0);
}

void scratch_use(const char *mark) {
    char path[SCRATCH_PATH];
    scratch_path(mark, path);
    mkdir(path, 0700);
    if (!is_ours(path)) return; /* then MPI uses its default place */
    setenv("OMPI_MCA_btl_vader_backing_directory", path, 0);
    setenv("OMPI_MCA_orte_tmpdir_base", path, 0);
}
