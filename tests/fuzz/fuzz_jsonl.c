/* fuzz_jsonl.c - libFuzzer target: bytes -> JSON lines -> series (fuzz_table.h). */
#include "fuzz_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return size < 1 ? 0 : fuzz_table(data, size, (struct fuzz_names){.cat = "y", .time = "ds", .ignore = "a", .times = "ds,w"});
}
