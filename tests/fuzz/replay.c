/* replay.c - runs a fuzz target over the files of folders, where there is no libFuzzer. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 22 };

static int replay(const char *path) {
    static uint8_t data[INPUT_MAX];
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    size_t n = fread(data, 1, sizeof data, f);
    fclose(f);
    uint8_t *copy = malloc(n ? n : 1); /* of the exact size, so that a read past the end is seen */
    if (!copy) return 0;
    for (size_t i = 0; i < n; i++) copy[i] = data[i];
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    return 1;
}

int main(int argc, char **argv) {
    int count = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (!dir) continue;
        for (struct dirent *entry; (entry = readdir(dir));) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (entry->d_name[0] != '.') count += replay(path);
        }
        closedir(dir);
    }
    printf("%d inputs\n", count);
    return count ? 0 : 1;
}
