#!/bin/sh
# Command-line tests: each NAME.cmd is a shell script that runs uvmsim; what it prints (both streams) and each command's exit status,
# as `status $?` shows it, must be what NAME.out says. $T is an empty folder; its name appears as T in the output.
# Usage: tests/cli/run.sh PROGRAM [--update] [NAME...]     --update writes the .out files: read the difference before committing it.
set -u
program=$1
shift
PATH=$(cd "$(dirname "$program")" && pwd):$PATH
cd "$(dirname "$0")/../.." || exit 1
update=no
[ "${1:-}" = --update ] && update=yes && shift
[ $# -gt 0 ] || set -- $(cd tests/cli && ls ./*.cmd | sed 's,^\./,,; s,\.cmd$,,')
found=$(mktemp)
trap 'rm -rf "$found" "${T:-}"' EXIT
passed=0 failed=0
for name in "$@"; do
  T=$(mktemp -d)
  export T PATH
  { echo 'status() { echo "-> $1"; }'; cat "tests/cli/$name.cmd"; } | sh 2>&1 | sed "s,$T,T,g" >"$found"
  rm -rf "$T"
  if [ $update = yes ]; then
    cp "$found" "tests/cli/$name.out"
  elif diff "tests/cli/$name.out" "$found" >/dev/null 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "tests/cli/$name: expected <, found >"
    diff "tests/cli/$name.out" "$found" | head -n 30
  fi
done
[ $update = yes ] && exit 0
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
