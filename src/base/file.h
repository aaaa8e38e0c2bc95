/* file.h - file input that detects truncation, atomic file output, mappings, folders and locks.
 *
 *     PATH.tmp  --write, write, ...--  fsync  --rename-->  PATH       (a reader sees the old file or the new one)
 *
 * The path "-" is standard input (input.h).  A path hdfs://.. is a file of HDFS (hdfs.h): what is written goes to a temporary
 * file of this host and is sent at the commit.
 *
 * Reading uses pread: a mapped file that shrinks kills the process (SIGBUS), a short pread is an error (E213). */
#ifndef STRETTO_BASE_FILE_H
#define STRETTO_BASE_FILE_H

#include "base/str.h"

struct file_in {
    int fd;
    i64 size;         /* at open time; -1 for a pipe */
    const char *path; /* borrowed */
    struct hdfs_in *remote; /* NULL for a file of this host */
};

err file_open(const char *path, struct file_in *f);                  /* E701; a directory is E202 */
err file_read_at(const struct file_in *f, i64 offset, void *to,
                 i64 n); /* exactly n bytes, else E213 / E701; thread-safe */
err file_read_some(const struct file_in *f, void *to, i64 n, i64 *got); /* at the current position; *got 0 = end */
void file_close(struct file_in *f);

/* The whole file (a pipe too) plus a NUL that *size does not count.  The caller frees *data with mem_free. */
err file_load(const char *path, i64 max, char **data, i64 *size);

struct file_out {
    int fd;
    char *path, *tmp; /* tmp NULL: writes in place */
    bool remote;      /* path is in HDFS; tmp has lost its name already */
    char *buf;
    i64 fill, written;
};

err file_create(const char *path, struct file_out *f); /* opens PATH.tmp: E702, E703 */
err file_write(struct file_out *f, const void *p, i64 n);
err file_sync(struct file_out *f);                     /* flush and fsync of PATH.tmp */
err file_commit(struct file_out *f);                   /* flush, fsync, rename, fsync of the folder; always frees f */
void file_abort(struct file_out *f);                   /* removes PATH.tmp and keeps PATH; no effect after commit */
err file_write_all(const char *path, const void *p, i64 n);
err file_write_text(const char *path, struct str *text); /* writes a text and frees it; E601 if the text is incomplete */
/* Writes a whole file, with a fault injection point (`phase`, rank 0, step 0) between writing and renaming. */
err file_write_phase(const char *path, const void *p, i64 n, const char *phase);

/* E702, or E703 where there is no room, from errno. */
err file_failed(const char *path);
/* Returns e; where it is E702 or E703 without a remedy, the remedy is another value of this option. */
err file_option(err e, const char *option);

/* Where a file would be written. */
struct file_room {
    u64 device;
    f64 bytes; /* free */
    f64 most;  /* of one file, by the limit of the process (ulimit -f) */
};
bool file_room(const char *path, struct file_room *out); /* false: nothing is known */
/* A file of so many bytes that hold its place on the disk: E702, E703.  Where the file system reserves nothing, an empty one. */
err file_reserve(const char *path, i64 bytes);

/* Read-only mapping of a whole file; of a remote file, a copy in memory.
 * Only for the program's own files (cache, model): they are replaced, never truncated. */
struct file_map {
    const void *p;
    i64 size;
};
err file_map(const char *path, struct file_map *m);
void file_unmap(struct file_map *m);

err file_make_dir(const char *path); /* with its parents; succeeds if it exists */
err file_make_parent(const char *path); /* the folder of a file */
/* First line of a small file, without the newline; false, and "", if there is none. */
bool file_first_line(const char *path, char *out, size_t size);
err file_rename(const char *from, const char *to);      /* renames a file or folder and syncs its parent */
err file_remove_dir(const char *path);                 /* with its files but not subfolders; succeeds if it does not exist */
bool file_exists(const char *path);
bool file_is_remote(const char *path);    /* NULL is allowed */
err file_remote_writable(const char *path); /* E702 if the folder of a remote file is absent or may not be written to */
/* Exclusive lock; retries for half a second, because a killed process releases its locks with a delay. */
bool file_lock(int fd);

#endif
