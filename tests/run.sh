#!/bin/sh
# Runs each command line of its standard input (one test a line), shows the output of those that fail, and ends with
# "N passed, N failed". WRAP is put in front of each (valgrind ...).
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
while read -r line; do
  [ -n "$line" ] || continue
  start=$(date +%s)
  # shellcheck disable=SC2086
  if ${WRAP:-} $line >"$log" 2>&1 </dev/null; then
    passed=$((passed + 1))
    printf 'ok    %4ss  %s\n' $(($(date +%s) - start)) "$line"
  else
    status=$?
    failed=$((failed + 1))
    printf 'FAIL  %4ss  %s (status %s)\n' $(($(date +%s) - start)) "$line" "$status"
    sed 's/^/      /' "$log" | tail -n 40
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
