/* t.c - the helpers of t.h. */
#define _GNU_SOURCE
#include "t.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void t_begin(void) { setenv("STRETTO_WISDOM", "off", 1); }

void t_ok(err e, const char *call, const char *file, int line) {
    if (e >= 0) return;
    const struct err_record *r = err_last();
    print_error("%s failed: error[E%03d] %s: %s\n  fix: %s\n", call, r->code, r->where, r->text, r->fix);
    _fail(file, line);
}

void t_fails(err e, int code, const char *call, const char *file, int line) {
    if (e == -code) return;
    print_error("%s returned %d, want -%d (last record: %s)\n", call, e, code, err_last()->text);
    _fail(file, line);
}

void t_near64(const char *what, const f32 *got, const f64 *want, i64 n, f64 tol) {
    f64 scale = 0, worst = 0;
    i64 at = -1, bad = 0;
    for (i64 i = 0; i < n; i++) scale = fmax(scale, fabs(want[i]));
    if (scale == 0) scale = 1;
    for (i64 i = 0; i < n; i++) {
        f64 d = fabs((f64)got[i] - want[i]) / scale;
        if (d <= tol) continue;
        bad++;
        if (!(d <= worst)) {
            worst = d;
            at = i;
        }
    }
    if (!bad) return;
    print_error("%s: %lld of %lld entries off; worst at [%lld]: got %.9g want %.9g  rel %.3g > %.3g\n", what, (long long)bad,
                (long long)n, (long long)at, (f64)got[at < 0 ? 0 : at], want[at < 0 ? 0 : at], worst, tol);
    fail();
}

void t_near(const char *what, const f32 *got, const f32 *want, i64 n, f64 tol) {
    f64 *w = malloc(sizeof(f64) * (size_t)(n ? n : 1));
    for (i64 i = 0; i < n; i++) w[i] = (f64)want[i];
    t_near64(what, got, w, n, tol);
    free(w);
}

bool t_few(void) { return getenv("STRETTO_TEST_FEW") != NULL; }

const char *t_shared(const char *name) {
    static char path[4096];
    const char *root = getenv("STRETTO_SHARED");
    snprintf(path, sizeof path, "%s/%s", root ? root : "../shared", name);
    if (access(path, R_OK) == 0) return path;
    print_message("skipped: the shared data file %s is not here\n", name);
    skip();
    return NULL;
}

static char dir[64];

static void remove_dir(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command) != 0) fprintf(stderr, "could not remove %s\n", dir);
}

const char *t_dir(void) {
    if (!dir[0]) {
        snprintf(dir, sizeof dir, "/tmp/stretto_test_XXXXXX");
        if (!mkdtemp(dir)) abort();
        atexit(remove_dir);
    }
    return dir;
}

const char *t_file(const char *name, const char *text) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", t_dir(), name);
    FILE *f = fopen(path, "wb");
    if (!f) abort();
    fwrite(text, 1, strlen(text), f);
    fclose(f);
    return path;
}

bool t_comma_locale(void) {
    static const u8 numeric[] = {0x14, 0x11, 0x03, 0x20, 6,   0, 0, 0, 0x20, 0, 0, 0, 0x22, 0,   0,   0,   0x23,
                                 0,    0,    0,    0x24, 0,   0, 0, 0x28, 0, 0, 0, 0x2c, 0,   0,   0,   ',',
                                 0,    0,    0,    0,    0,   0, 0, ',',  0, 0, 0, 'U',  'T', 'F', '-', '8',
                                 0};
    char path[600];
    snprintf(path, sizeof path, "%s/comma", t_dir());
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return false;
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", t_dir());
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    const bool written = fwrite(numeric, sizeof numeric, 1, f) == 1;
    fclose(f);
    return written && setenv("LOCPATH", t_dir(), 1) == 0 && setlocale(LC_NUMERIC, "comma");
}
