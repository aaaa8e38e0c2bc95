/* fuzz_parquet.c - libFuzzer target: bytes -> Parquet table -> series (fuzz_table.h). */
#include "fuzz_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 5 || memcmp(data + 1, "PAR1", 4) != 0) return 0; /* fuzz_csv has them */
    return fuzz_table(data, size, (struct fuzz_names){.cat = "n,b,d", .time = "ds", .ignore = "v,s,t", .times = "ds,w"});
}
