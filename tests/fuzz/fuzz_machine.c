/* fuzz_machine.c - any text as a machine: refused with E103, or what it prints reads back as the same machine. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/machine.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    static struct machine m, again;
    char *text = mem_alloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    err e = machine_parse(text, &m);
    if (e == 0) {
        struct str a = {0}, b = {0};
        machine_print(&m, &a);
        if (machine_parse(str_text(&a), &again) < 0) abort();
        machine_print(&again, &b);
        if (strcmp(str_text(&a), str_text(&b)) != 0 || m.ndevice != again.ndevice) abort();
        str_free(&a);
        str_free(&b);
    } else if (e != -E103) {
        abort();
    }
    mem_free(text);
    return 0;
}
