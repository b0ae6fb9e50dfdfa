/* Input: what every reader reads from. It decompresses, counts lines and formats messages, so all formats behave alike. */
#ifndef UVM_TRACES_INPUT_H
#define UVM_TRACES_INPUT_H
#include "base/base.h"

#define UVM_LINE_MAX (1u << 20)                 /* bytes in a line */

struct uvm_input;
/* path "-": standard input. again: it will be rewound. */
int uvm_input_open(const char *path, bool again, struct uvm_input **out, struct uvm_error *e);
int uvm_input_open_memory(const void *data, size_t n, struct uvm_input **out, struct uvm_error *e);   /* data is borrowed */
int uvm_input_rewind(struct uvm_input *in, struct uvm_error *e);
void uvm_input_close(struct uvm_input *in);

/* The next line, without its end (LF or CR LF), NUL-terminated; the caller may change it; valid until the next call. Lines are
 * UTF-8 without NUL bytes. 1, 0 at the end, < 0. */
int uvm_input_line(struct uvm_input *in, char **line, struct uvm_error *e);
/* Exactly n bytes into buf. 1; 0 if the input ends before (*got bytes are there); < 0. */
int uvm_input_bytes(struct uvm_input *in, void *buf, size_t n, size_t *got, struct uvm_error *e);
/* The first bytes ahead, at most n (<= 64); returns how many, or < 0. Nothing is consumed. */
int uvm_input_peek(struct uvm_input *in, size_t n, const uint8_t **p, struct uvm_error *e);

const char *uvm_input_path(const struct uvm_input *in);          /* as given */
int64_t uvm_input_lineno(const struct uvm_input *in);            /* of the line last read, from 1 */
void uvm_input_count_records(struct uvm_input *in);              /* a binary format: positions in messages are record numbers */
const char *uvm_input_unit(const struct uvm_input *in);          /* "line", or "record" after that */
uint64_t uvm_input_position(const struct uvm_input *in, uint64_t *total);   /* stored bytes read, of total (0 unknown) */

/* Fills e with "name:line: <message>" (line 0: "name: <message>") and returns UVM_EINPUT. */
int uvm_input_fail(const struct uvm_input *in, int64_t line, struct uvm_error *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* For messages: text from the input in double quotes, shortened, made printable. */
const char *uvm_quote(const char *s, char buf[static 80]);
#endif
