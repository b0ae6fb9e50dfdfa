#!/bin/sh
# Lists the tests of a suite, a command line each: quick (default), asan, memcheck, fuzz, soak.
set -eu
cd "$(dirname "$0")/.."
suite=${1:-quick}
programs() { find "build/$1/tests/unit" "build/$1/tests/differential" -type f -executable 2>/dev/null | sort; }
in_asan() {
  programs asan
  echo build/asan/tests/conformance/conformance --quick traces/recorded/h200
}
in_memcheck() { # what replays at length runs under ASan only
  programs debug | grep -v 'property\|naive_driver\|/machines$\|model_hits\|/timeline$\|/causes$' | sed 's/^/valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite /'
}
in_corpus() {
  for target in tests/fuzz/corpus/*; do echo "build/asan/tests/fuzz/${target##*/} $target/*"; done
}
in_fuzz() {
  for target in tests/fuzz/corpus/*; do
    mkdir -p "build/corpus/${target##*/}"
    echo "build/fuzz/fuzz_${target##*/} -max_total_time=$FUZZ_SECONDS -timeout=10 -rss_limit_mb=2048 -artifact_prefix=build/fuzz/" \
      "build/corpus/${target##*/} $target"
  done
}
case $suite in
asan) in_asan ;;
memcheck) in_memcheck ;;
fuzz) in_fuzz ;;
soak)
  echo "build/asan/tests/unit/session_property $SOAK_SEED ${SOAK_SECONDS}s"
  echo tests/faults.sh build/asan/uvmsim
  in_fuzz
  ;;
quick)
  in_asan
  in_corpus
  in_memcheck
  echo build/tests/conformance/conformance traces/recorded/h200
  echo tests/cli/run.sh build/uvmsim
  echo tests/cli/run.sh build/asan/uvmsim policy_file policy_test
  echo tests/faults.sh build/asan/uvmsim 4
  echo tests/readme.sh build/uvmsim
  echo tests/lint/includes.sh
  echo tests/lint/size.sh
  ;;
esac
