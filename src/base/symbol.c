/* symbol.c - address -> file that holds it -> its ELF symbol table -> the function that covers the address. */
#define _GNU_SOURCE
#include "base/symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* An ELF file in memory. It may be any file, so every offset is checked against its size. */
struct elf {
    const unsigned char *at;
    u64 size;
};

static const void *part(const struct elf *e, u64 from, u64 bytes) {
    return from <= e->size && bytes <= e->size - from ? e->at + from : NULL;
}

static const Elf64_Shdr *section(const struct elf *e, u64 index) {
    const Elf64_Ehdr *h = part(e, 0, sizeof *h);
    return part(e, h->e_shoff + index * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
}

static bool is_elf(const struct elf *e) {
    const Elf64_Ehdr *h = part(e, 0, sizeof *h);
    return h && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_shoff % 8 == 0 &&
           h->e_shoff < e->size && h->e_shentsize == sizeof(Elf64_Shdr);
}

static bool covers(const Elf64_Sym *s, u64 place) {
    return ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_value <= place && place < s->st_value + s->st_size;
}

static bool search(const struct elf *e, const Elf64_Shdr *table, u64 place, char *name, size_t size, u64 *begins) {
    const Elf64_Shdr *words = section(e, table->sh_link);
    const Elf64_Sym *sym = part(e, table->sh_offset, table->sh_size);
    const char *text = words ? part(e, words->sh_offset, words->sh_size) : NULL;
    if (!sym || !text || words->sh_size == 0 || text[words->sh_size - 1] != 0) return false;
    for (u64 i = 0; i < table->sh_size / sizeof *sym; i++) {
        if (!covers(&sym[i], place) || sym[i].st_name >= words->sh_size) continue;
        snprintf(name, size, "%s", text + sym[i].st_name);
        *begins = sym[i].st_value;
        return true;
    }
    return false;
}

static bool find(const struct elf *e, u64 place, char *name, size_t size, u64 *begins) {
    if (!is_elf(e)) return false;
    const Elf64_Ehdr *h = part(e, 0, sizeof *h);
    for (u64 k = 0; k < h->e_shnum; k++) {
        const Elf64_Shdr *s = section(e, k);
        if (!s) return false;
        if (s->sh_type == SHT_SYMTAB && s->sh_offset % 8 == 0) return search(e, s, place, name, size, begins);
    }
    return false;
}

/* Position-dependent executables have symbols by address, all others relative to their load address. */
static u64 place_in(const struct elf *e, const Dl_info *d, const void *address) {
    const Elf64_Ehdr *h = part(e, 0, sizeof *h);
    const u64 at = (u64)(uintptr_t)address;
    return h && h->e_type == ET_EXEC ? at : at - (u64)(uintptr_t)d->dli_fbase;
}

void symbol_name(const void *address, char out[SYMBOL]) {
    Dl_info d = {0};
    char name[96] = "";
    u64 begins = 0;
    struct file_map m;
    if (!dladdr(address, &d) || !d.dli_fname) {
        snprintf(out, SYMBOL, "?");
        return;
    }
    const char *slash = strrchr(d.dli_fname, '/'), *file = slash ? slash + 1 : d.dli_fname;
    u64 place = (u64)((uintptr_t)address - (uintptr_t)d.dli_fbase);
    if (d.dli_sname) {
        snprintf(name, sizeof name, "%s", d.dli_sname);
        begins = (u64)((uintptr_t)d.dli_saddr - (uintptr_t)d.dli_fbase);
    } else if (file_map(slash ? d.dli_fname : "/proc/self/exe", &m) >= 0) {
        const struct elf e = {m.p, (u64)m.size};
        place = place_in(&e, &d, address);
        if (!find(&e, place, name, sizeof name, &begins)) begins = 0;
        file_unmap(&m);
    }
    snprintf(out, SYMBOL, "%s+0x%llx %.24s", name, (unsigned long long)(place - begins), file);
}
