#!/bin/sh
# Lists the tests of a suite, a command line each: quick (default), asan, memcheck.
set -eu
cd "$(dirname "$0")/.."
suite=${1:-quick}
programs() { find "build/$1/tests/unit" "build/$1/tests/differential" -type f -executable 2>/dev/null | sort; }
in_asan() {
  programs asan
  echo build/asan/tests/conformance/conformance --quick traces/recorded/h200
}
in_memcheck() {
  programs debug | grep -v property | sed 's/^/valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite /'
}
case $suite in
asan) in_asan ;;
memcheck) in_memcheck ;;
quick)
  in_asan
  in_memcheck
  echo build/tests/conformance/conformance traces/recorded/h200
  echo tests/cli/run.sh build/uvmsim
  echo tests/readme.sh build/uvmsim
  echo tests/lint/includes.sh
  echo tests/lint/size.sh
  ;;
esac
