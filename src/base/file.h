/* file.h - reading that notices a file that shrinks, writing that never leaves half a file, mapping, folders.
 *
 *     PATH.tmp  --write, write, ...--  fsync  --rename-->  PATH       (a reader sees the old file or the new one)
 *
 * Reading uses pread: a mapped file that shrinks kills the process (SIGBUS), a short pread is an error message (E213). */
#ifndef STRETTO_BASE_FILE_H
#define STRETTO_BASE_FILE_H

#include "base/err.h"

struct file_in {
    int fd;
    i64 size;         /* at the moment of opening; -1 for a pipe */
    const char *path; /* borrowed */
};

err file_open(const char *path, struct file_in *f);                  /* E701; a directory is E202 */
err file_read_at(const struct file_in *f, i64 offset, void *to,
                 i64 n); /* exactly n bytes or E213 / E701; safe from many threads */
err file_read_some(const struct file_in *f, void *to, i64 n, i64 *got); /* at the current position; *got 0 = end */
void file_close(struct file_in *f);

/* The whole file (a pipe too) plus a NUL that *size does not count.  The caller frees *data with mem_free. */
err file_load(const char *path, i64 max, char **data, i64 *size);

struct file_out {
    int fd;
    char *path, *tmp; /* tmp NULL: written in place (a device or a pipe) */
    char *buf;
    i64 fill, written;
};

err file_create(const char *path, struct file_out *f); /* begins PATH.tmp: E702, E703 */
err file_write(struct file_out *f, const void *p, i64 n);
err file_sync(struct file_out *f);                     /* flush and fsync: all of it is on the disk, under PATH.tmp */
err file_commit(struct file_out *f);                   /* flush, fsync, rename, sync of the folder; frees f in any case */
void file_abort(struct file_out *f);                   /* removes PATH.tmp, PATH stays as it was; harmless after commit */
err file_write_all(const char *path, const void *p, i64 n);
/* The same, with a place of fault.h between writing and renaming: that phase of rank 0, step 0. */
err file_write_phase(const char *path, const void *p, i64 n, const char *phase);

/* Read-only view of a whole file; for files of our own only (cache, model), which are replaced, never shortened in place. */
struct file_map {
    const void *p;
    i64 size;
};
err file_map(const char *path, struct file_map *m);
void file_unmap(struct file_map *m);

err file_make_dir(const char *path); /* with its parents; fine when it is there */
err file_rename(const char *from, const char *to);      /* a file or a folder, and sync of the folder it is in */
err file_remove_dir(const char *path);                 /* with the files in it, not with folders; fine when it is not there */
bool file_exists(const char *path);
/* For this process alone, within half a second: one that was killed gives a lock back a moment after it is gone. */
bool file_lock(int fd);

#endif
