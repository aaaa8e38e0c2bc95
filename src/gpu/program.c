/* program.c - the text of the kernels, and the cache of what a driver compiled from it.
 *
 *     $STRETTO_CACHE/kernels/<hash of key and text>     else $XDG_CACHE_HOME/stretto, ~/.cache/stretto
 *     hash of what follows | program                    a damaged file is ignored, and written anew
 *
 * The key names device, driver and options, so a program is never offered to another device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "gpu/gpu.h"

extern const char kernel_text[]; /* made by the build from text/ */

const char *const gpu_kernel_name[GPU_NKERNEL] = {
#define GPU_KERNEL(name, args) #name,
#include "gpu/kernels.def"
#undef GPU_KERNEL
};

const char *gpu_text(void) { return kernel_text; }

static bool path_of(const char *key, char out[512]) {
    const char *wish = getenv("STRETTO_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const u64 h = hash_bytes(hash_bytes(HASH_SEED, key, strlen(key)), kernel_text, strlen(kernel_text));
    const char *base = NULL, *below = "";
    if (wish && strcmp(wish, "off") == 0) return false;
    if (wish && *wish)
        base = wish;
    else if (cache && *cache == '/')
        base = cache, below = "/stretto";
    else if (home && *home == '/')
        base = home, below = "/.cache/stretto";
    if (!base) return false;
    return snprintf(out, 512, "%s%s/kernels/%016llx", base, below, (unsigned long long)h) < 512;
}

void *gpu_program_load(const char *key, size_t *size) {
    enum { MOST = 64 << 20 };
    char path[512], *data;
    i64 n;
    u64 sum;
    *size = 0;
    if (!path_of(key, path) || !file_exists(path)) return NULL;
    if (file_load(path, MOST, &data, &n) < 0) {
        err_clear();
        return NULL;
    }
    const bool whole = n > (i64)sizeof sum && (memcpy(&sum, data, sizeof sum), true) &&
                       sum == hash_bytes(HASH_SEED, data + sizeof sum, (size_t)n - sizeof sum);
    if (!whole) {
        mem_free(data);
        return NULL;
    }
    *size = (size_t)n - sizeof sum;
    memmove(data, data + sizeof sum, *size);
    return data;
}

void gpu_program_save(const char *key, const void *program, size_t size) {
    char path[512];
    const u64 sum = hash_bytes(HASH_SEED, program, size);
    if (!path_of(key, path)) return;
    char *all = mem_alloc(sizeof sum + size);
    if (all) {
        memcpy(all, &sum, sizeof sum);
        memcpy(all + sizeof sum, program, size);
        if (file_make_parent(path) < 0 || file_write_all(path, all, (i64)(sizeof sum + size)) < 0) err_clear();
    }
    mem_free(all);
}
