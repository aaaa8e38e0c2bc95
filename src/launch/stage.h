/* stage.h - what a job needs on other hosts, put into HDFS once per content: the program as an archive, files that it reads.
 *
 *     hdfs://NN:9870/user/NAME/.stretto/program-HASH.tar     bin/stretto, lib/stretto/stretto-mpi-mpich.so, lib/libjansson.so.4,
 * .. /HASH-sales.csv       a file named on the command line
 *
 * A name holds the hash of the content, so a file that is there is the right one and is not sent again.  The C library and MPI
 * are those of the host that runs the program: they fit its kernel and its network. */
#ifndef STRETTO_LAUNCH_STAGE_H
#define STRETTO_LAUNCH_STAGE_H

#include "base/str.h"

enum { STAGE_PATH = 4096 };

/* The folder for a wish: hdfs://NN:9870 is completed with /user/NAME/.stretto.  E103 where it is not in HDFS. */
err stage_folder(const char *wish, char out[STAGE_PATH]);
/* The path of a file of HDFS without scheme and address; a part of url. */
const char *stage_path(const char *url);

/* Packs the program, its plug-in and the libraries that it has loaded beside those of the system into an archive.  *tar: bytes,
 * freed by the caller with str_free.  url: its place in folder.  E701 for a file that cannot be read. */
err stage_pack(const char *folder, const char *program, const char *plugin, struct str *tar, char url[STAGE_PATH]);
/* The place in folder of a file of this host, by its content.  E202 for a folder, E701 for a file that cannot be read. */
err stage_name(const char *folder, const char *local, i64 *bytes, char url[STAGE_PATH]);

/* Sends bytes, or a file of this host, unless a file of that length is at its place.  *sent: it was sent.  E702, E703, E706. */
err stage_send(const char *url, const void *p, i64 n, bool *sent);
err stage_send_file(const char *url, const char *local, bool *sent);

#endif
