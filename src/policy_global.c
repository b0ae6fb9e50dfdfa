/* Which variables of a shared object can be written: its symbols in writable sections. Those of the compiler's own start-up files do not
 * count, nor what only the loader writes (.data.rel.ro: constants that hold addresses). A file without symbols tells nothing. */
#include <elf.h>
#include <link.h>
#include "policy_file.h"

typedef struct {
  const char *v;
  size_t n;
} bytes;

/* `count` items of `size` at `offset` of the file, NULL where it ends before them. */
static const void *at(bytes file, uint64_t offset, uint64_t count, uint64_t size) {
  if (offset > file.n || count > (file.n - offset) / size || offset % 8) return NULL;
  return file.v + offset;
}

static const char *text_at(bytes file, const ElfW(Shdr) * strings, uint64_t i) {
  uint64_t from = strings->sh_offset, room = from < file.n ? file.n - from : 0;
  return i < strings->sh_size && i < room && memchr(file.v + from + i, 0, room - i) ? file.v + from + i : "";
}

static bool is_writable(bytes file, const ElfW(Shdr) * sections, unsigned n, const ElfW(Shdr) * names, const ElfW(Sym) * s) {
  int type = ELF64_ST_TYPE(s->st_info);
  if ((type != STT_OBJECT && type != STT_TLS) || !s->st_size || !s->st_shndx || s->st_shndx >= n) return false;
  const ElfW(Shdr) *in = &sections[s->st_shndx];
  return in->sh_flags & SHF_WRITE && strncmp(text_at(file, names, in->sh_name), ".data.rel.ro", 12);
}

static bool of_the_compiler(const char *name) { return !strncmp(name, "completed.", 10) || !strncmp(name, "__", 2); }

static void find(bytes file, char *name, size_t size) {
  const ElfW(Ehdr) *head = at(file, 0, 1, sizeof *head);
  const ElfW(Shdr) *sections = head ? at(file, head->e_shoff, head->e_shnum, sizeof *sections) : NULL;
  if (!sections || head->e_shstrndx >= head->e_shnum) return;
  for (unsigned i = 0; i < head->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= head->e_shnum) continue;
    uint64_t n = sections[i].sh_size / sizeof(ElfW(Sym));
    const ElfW(Sym) *symbols = at(file, sections[i].sh_offset, n, sizeof *symbols);
    for (uint64_t k = 0; symbols && k < n; k++) {
      const char *symbol = text_at(file, &sections[sections[i].sh_link], symbols[k].st_name);
      if (!is_writable(file, sections, head->e_shnum, &sections[head->e_shstrndx], &symbols[k]) || of_the_compiler(symbol)) continue;
      snprintf(name, size, "%s", symbol);
      return;
    }
  }
}

void uvm_policy_global(const char *library, char *name, size_t size) {
  *name = 0;
  FILE *f = fopen(library, "rb");
  if (!f) return;
  long n = fseek(f, 0, SEEK_END) ? -1 : ftell(f);
  if (n > 0) {
    char *v = uvm_mem((size_t)n);
    rewind(f);
    find((bytes){v, fread(v, 1, (size_t)n, f)}, name, size);
    uvm_mem_free(v);
  }
  fclose(f);
}
