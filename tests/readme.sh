#!/bin/sh
# Runs every command that stands behind "$ " in a ```console block of README.md and docs/*.md, and compares what it prints with what
# stands below it there. A page's commands run in a folder of their own, in which the source tree can be seen. How long a run took is no
# part of the comparison. Commands that build or test are only checked to exist.
# Usage: tests/readme.sh PROGRAM [--update]      --update rewrites what stands below the commands
set -u
cd "$(dirname "$0")/.." || exit 1
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
export PATH
update=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A fresh copy of FILE with each command's present output, in $work/new.
rewrite() {
  rm -rf "$work/here"
  mkdir "$work/here"
  ln -s "$PWD"/* "$work/here"
  (cd "$work/here" && awk '
    /^```/ { shown = 0; on = !on && $0 == "```console" }
    on && /^\$ / { print; shown = 1
      cmd = substr($0, 3)
      if (cmd !~ /^(make|git|cd) /) { system("(" cmd ") 2>&1"); fflush() } else shown = 0
      next }
    !(on && shown) { print; fflush() }' "$1" >"$work/new")
}

failed=0 passed=0
for doc in README.md docs/*.md; do
  for target in $(sed -n 's/^\$ make \([a-z]*\).*/\1/p' "$doc"); do
    grep -q "^$target:" Makefile || { echo "$doc: no such target: make $target"; failed=$((failed + 1)); }
  done
  rewrite "$doc"
  if [ "$update" = --update ]; then
    cp "$work/new" "$doc"
    continue
  fi
  sed 's/simulated in [0-9.]* [a-z]*/simulated in a moment/' "$doc" >"$work/a"
  sed 's/simulated in [0-9.]* [a-z]*/simulated in a moment/' "$work/new" >"$work/b"
  if diff -u "$work/a" "$work/b" >"$work/diff"; then
    passed=$((passed + $(grep -c '^\$ ' "$doc")))
  else
    failed=$((failed + 1))
    echo "$doc: says otherwise than the program:"
    head -n 60 "$work/diff"
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
