#include "report/table.h"
#include <assert.h>
#include <sys/ioctl.h>
#include <unistd.h>

void uvm_table_init(struct uvm_table *t, const char *align, const char *const *header) {
  *t = (struct uvm_table){.align = align};
  if (!header) return;
  for (size_t i = 0; align[i]; i++) uvm_table_cell(t, "%s", header[i]);
}

void uvm_table_cell(struct uvm_table *t, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  UVM_PUSH(&t->cells) = uvm_copy_string(text);
}

/* Columns on the terminal: UTF-8 continuation bytes take none. */
static int width(const char *s) {
  int n = 0;
  for (; *s; s++) n += ((unsigned char)*s & 0xc0) != 0x80;
  return n;
}

static void print_row(FILE *f, const char *align, char *const *cells, const int *widths, size_t columns, bool wrap) {
  int at = 0;
  size_t last = columns;
  while (last && !*cells[last - 1]) last--;
  for (size_t i = 0; i < last; i++) {
    int pad = widths[i] - width(cells[i]);
    bool right = align[i] == 'r';
    if (wrap && i + 1 == columns) {
      fputs("  ", f);
      uvm_wrap(f, cells[i], at + 2, at + 2);
      return;
    }
    at += widths[i] + (i ? 2 : 0);
    fprintf(f, "%s%*s%s", i ? "  " : "", right ? pad : 0, "", cells[i]);
    if (!right && i + 1 < last) fprintf(f, "%*s", pad, "");
  }
  fputc('\n', f);
}

void uvm_table_print(struct uvm_table *t, FILE *f) {
  size_t columns = strlen(t->align);
  assert(columns && t->cells.n % columns == 0);
  int *widths = uvm_mem(columns * sizeof *widths);
  for (size_t i = 0; i < t->cells.n; i++) {
    int w = width(t->cells.v[i]);
    if (w > widths[i % columns]) widths[i % columns] = w;
  }
  for (size_t i = 0; i < t->cells.n; i += columns) print_row(f, t->align, &t->cells.v[i], widths, columns, t->wrap);
  for (size_t i = 0; i < t->cells.n; i++) uvm_mem_free(t->cells.v[i]);
  uvm_mem_free(t->cells.v), uvm_mem_free(widths);
  *t = (struct uvm_table){0};
}

void uvm_table_rest(size_t rows, FILE *f) {
  if (rows > UVM_TABLE_ROWS) fprintf(f, "... and %zu more: --json has all\n", rows - UVM_TABLE_ROWS);
}

/* A narrow terminal is served down to 60 columns. */
static int line_width(FILE *f) {
  enum { WIDTH = 100, LEAST = 60 };
  struct winsize w;
  if (!isatty(fileno(f)) || ioctl(fileno(f), TIOCGWINSZ, &w) || !w.ws_col || w.ws_col >= WIDTH) return WIDTH;
  return w.ws_col < LEAST ? LEAST : w.ws_col;
}

void uvm_wrap(FILE *f, const char *text, int indent, int column) {
  int least = indent + 20, line = line_width(f), most = line > least ? line : least;
  for (bool first = true; *text; first = false) {
    int n = (int)strcspn(text, " ");
    bool fits = first || column + 1 + n <= most;
    if (!fits)
      fprintf(f, "\n%*s", indent, ""), column = indent;
    else if (!first)
      fputc(' ', f), column++;
    fwrite(text, 1, (size_t)n, f);
    column += n;
    text += n;
    text += strspn(text, " ");
  }
  fputc('\n', f);
}

const char *uvm_count_text(uint64_t n, char buf[static 32]) {
  char digits[24];
  int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
  char *p = buf;
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0) *p++ = ',';
    *p++ = digits[i];
  }
  *p = 0;
  return buf;
}
