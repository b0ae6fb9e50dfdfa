#!/bin/sh
# Runs every command of README.md and docs/*.md that stands in a ```console block behind "$ " and compares what it prints with what
# stands below it. A line "..." stands for any lines. Commands that build or test everything are only checked to exist.
# Usage: tests/readme.sh PROGRAM [FILE...]
set -u
cd "$(dirname "$0")/.." || exit 1
program=$1
shift
[ $# -gt 0 ] || set -- README.md docs/*.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$(cd "$(dirname "$program")" && pwd):$PATH
export PATH

# Splits FILE into $work/N.cmd and $work/N.out.
split() {
  awk -v dir="$work" '
    /^```console/ { on = 1; next }
    /^```/ { on = 0; next }
    on && /^\$ / { n++; print substr($0, 3) > (dir "/" n ".cmd"); printf "" > (dir "/" n ".out"); next }
    on && n { print > (dir "/" n ".out") }
    END { print n + 0 }' "$1"
}

# Expected lines against found lines; "..." skips.
matches() {
  awk -v found="$2" '
    function next_found() { have = (getline line < found) > 0; return have }
    { want[++n] = $0 }
    END {
      while (next_found()) got[++m] = line
      i = j = 1; star = 0; mark = 0
      while (j <= m) {
        if (i <= n && want[i] == "...") { star = i++; mark = j }
        else if (i <= n && want[i] == got[j]) { i++; j++ }
        else if (star) { i = star + 1; j = ++mark }
        else exit 1
      }
      while (i <= n && want[i] == "...") i++
      exit i <= n
    }' "$1"
}

failed=0 passed=0
for doc in "$@"; do
  rm -f "$work"/*.cmd "$work"/*.out
  count=$(split "$doc")
  n=1
  while [ "$n" -le "$count" ]; do
    cmd=$(cat "$work/$n.cmd")
    case $cmd in
    make\ * | git\ * | cd\ *)
      target=$(echo "$cmd" | sed -n 's/^make \([a-z]*\).*/\1/p')
      if [ -z "$target" ] || grep -q "^$target:" Makefile; then passed=$((passed + 1)); else echo "$doc: no such target: $cmd"; failed=$((failed + 1)); fi
      ;;
    *)
      sh -c "$cmd" >"$work/found" 2>&1
      if matches "$work/$n.out" "$work/found"; then
        passed=$((passed + 1))
      else
        failed=$((failed + 1))
        echo "$doc: \$ $cmd"
        diff "$work/$n.out" "$work/found" | sed 's/^/  /' | head -n 30
      fi
      ;;
    esac
    n=$((n + 1))
  done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
