/* fuzz_arrow.c - libFuzzer target: bytes -> Arrow table -> series (fuzz_table.h). */
#include "fuzz_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const u8 marker[4] = {0xFF, 0xFF, 0xFF, 0xFF};
    if (size < 9 || (memcmp(data + 1, marker, 4) != 0 && memcmp(data + 1, "ARROW1\0", 8) != 0)) return 0; /* fuzz_csv has them */
    return fuzz_table(data, size, (struct fuzz_names){.cat = "2", .time = "1", .ignore = "2", .times = "1,last"});
}
