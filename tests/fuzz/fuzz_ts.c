/* fuzz_ts.c - libFuzzer target: bytes -> .ts file -> table -> series (fuzz_table.h). */
#include "fuzz_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return size < 1 ? 0 : fuzz_table(data, size, (struct fuzz_names){.cat = "class", .time = "channel1", .ignore = "sequence"});
}
