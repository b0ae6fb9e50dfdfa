#!/bin/sh
# A ratchet on size: no function over 60 lines, no file over 500 lines, no line over 140 columns.
set -eu
cd "$(dirname "$0")/../.."
find src sim policies traces tests -name '*.[ch]' | sort | xargs awk '
  length > 140 { print FILENAME ":" FNR ": over 140 columns"; bad = 1 }
  END { exit bad }'
find src sim policies traces -name '*.c' | sort | xargs awk '
  FNR == 1 { start = 0 }
  /^[a-zA-Z_].*[){]$/ && !/;$/ && !/^(struct|enum|static const|const|extern|typedef)[^(]*\{$/ { start = FNR; name = $0 }
  /^}/ { if (start && FNR - start > 60) { print FILENAME ":" start ": " FNR - start " lines: " name; bad = 1 } start = 0 }
  FNR == 501 { print FILENAME ": over 500 lines"; bad = 1 }
  END { exit bad }'
