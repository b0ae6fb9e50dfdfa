# Mistakes on the command line: exit 2, and what is known.
for line in "" "replya x" "trace" "trace inf x" "replay" "replay a b" "replay t --polcy x" "replay t -Z" "replay t --json" \
  "replay t --gpu-memory 1G --oversubscribe 2" "replay t --gpu-memory 0" "replay t -o foo" "machines nvidia-h20" "policies densty" \
  "formats uvx" "validate t" "why t" "why t --alloc 1" "diff -" "diff a b --observed c" "trace convert t" "help replya"; do
  echo "\$ uvmsim $line"
  # shellcheck disable=SC2086
  uvmsim $line 2>&1 | head -n 1
  uvmsim $line >/dev/null 2>&1; status $?
done
