#!/bin/sh
# Faults: outputs that cannot be written, signals, pipes without a reader, memory that is gone. Each ends with one clear message, the
# status that the manual gives, and no half-written file.
# Usage: tests/faults.sh PROGRAM [DETAIL]     of the n-th allocation on, every 1 + n / DETAIL-th is made to fail (default: each)
set -u
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
detail=${2:-1000000}
cd "$(dirname "$0")/.." || exit 1
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
passed=0 failed=0 samples=$PWD/traces/samples events=$PWD/tests/fuzz/corpus/events_csv/pingpong.csv

check() { # WHAT CONDITION...: one check
  what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "failed: $what: $*" && sed 's/^/  /' "$T/err" | head -n 5; fi
}
says() { # PATTERN: standard error is this one line
  [ "$(wc -l <"$T/err")" -eq 1 ] && grep -Eqx "uvmsim: $1" "$T/err"
}
only() { # NAME...: the folder of outputs holds nothing else
  [ "$(cd "$T/out" && ls)" = "$(for name; do echo "$name"; done)" ]
}

# Command lines that write; @ is where the file's name goes.
cat >"$T/writers" <<END
replay $samples/pingpong.uvt -q --json @
replay $samples/pingpong.uvt -q --events @
replay $samples/pingpong.uvt -q --events @.gz
validate $samples/pingpong.uvt --observed $events -q --json @
why $samples/pingpong.uvt --alloc 0 --page 0 -q --json @
diff $samples/pingpong.uvt --policy-b none -q --json @
trace info $samples/pingpong.uvt -q --json @
trace convert $samples/pingpong.uvt -q -o @.uvt
trace convert $samples/pingpong.uvt -q -o @.uvt.gz
trace convert $samples/pingpong.uvt -q -o @.uvt.zst
trace convert $samples/pingpong.uvt -q -o @.uvb
machines -q --json @
policies -q --json @
formats -q --json @
END

cannot_write() { # WHERE: every command fails to write there
  while read -r line; do
    mkdir "$T/out"
    # shellcheck disable=SC2086
    (cd "$T/out" && "$program" $(echo "$line" | sed "s,@[^ ]*,$1&,; s,@,x,") >/dev/null 2>"$T/err" </dev/null)
    check "$line to $1" [ $? -eq 4 ]
    check "$line to $1" says '.*: cannot be written: .*'
    check "$line to $1" only
    rm -rf "$T/out"
  done <"$T/writers"
}
cannot_write "$T/missing/"
cannot_write "$T/writers/"
cannot_write /proc/

# A full device. Whatever goes there is lost whole, so nothing can be left behind.
while read -r line; do
  # shellcheck disable=SC2086
  "$program" $(echo "$line" | sed "s,-q ,,; s,--json @,,; s,--events @[^ ]*,,; s,@[^ ]*,-,") >/dev/full 2>"$T/err" </dev/null
  check "$line to a full standard output" [ $? -eq 4 ]
  check "$line to a full standard output" says 'standard output: cannot be written: No space left on device'
done <"$T/writers"
grep -e '--json' "$T/writers" | while read -r line; do
  for to in - /dev/full; do
    # shellcheck disable=SC2086
    "$program" $(echo "$line" | sed "s,@,$to,") >/dev/full 2>"$T/err" </dev/null
    [ $? -eq 4 ] && says '.*: cannot be written: No space left on device' || echo "$line to $to"
  done
done >"$T/wrong"
check "--json to a full device" [ ! -s "$T/wrong" ]

# While the trace is still being read the folder vanishes, or a folder of the file's name appears. 256 KiB of comment are more than the
# pipe and a reader that has not begun to write would hold.
meanwhile() { # COMMAND...: done once the output has been opened
  mkdir "$T/out"
  "$program" trace convert "$T/pipe" -o "$T/out/x.uvb" 2>"$T/err" &
  exec 3>"$T/pipe"
  { printf 'uvmtrace 1\nprocessor cpu\n' && for i in $(seq 64); do printf '#%4095s\n' ' '; done; } >&3
  "$@"
  exec 3>&-
  wait $!
}
mkfifo "$T/pipe"
meanwhile rm -rf "$T/out"
check "a vanished folder" [ $? -eq 4 ]
check "a vanished folder" says '.*: cannot be written: No such file or directory'
meanwhile mkdir "$T/out/x.uvb"
check "a folder in the way" [ $? -eq 4 ]
check "a folder in the way" says '.*: cannot be written: Is a directory'
check "a folder in the way" only x.uvb
rm -rf "$T/out"

# A reader that has seen enough: quiet, and the status that a shell shows for SIGPIPE.
{ "$program" trace convert traces/recorded/h200/chase.uvt.gz -o - 2>"$T/err"; echo $? >"$T/status"; } | head -n 1 >/dev/null
check "a closed pipe" [ "$(cat "$T/status")" -eq 141 ]
check "a closed pipe" [ ! -s "$T/err" ]

# Signals in a run that would take days: one kernel whose single lane reads 64 GiB over the link, 8 bytes at a time.
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 64G pinned a\nalloc b 4K managed b\nw cpu b 0 4K\nkernel gpu0 lanes=1
r a 0 64G split=cyclic step=1 width=8\ndone\n' >"$T/days.uvt"
now() { date +%s%N; }
run_for_days() { # SIGNAL OPTION...: to be started with &, which must not make it ignore the signal; 20 s are enough
  signal=$1
  shift
  exec env --default-signal="$signal" timeout --foreground -s KILL 20 "$program" replay "$T/days.uvt" "$@" >"$T/report" 2>"$T/err"
}
for signal in INT TERM HUP; do
  mkdir "$T/out"
  run_for_days "$signal" --json "$T/out/r.json" --events "$T/out/e.csv" &
  sleep 0.5
  before=$(now)
  kill -s "$signal" $!
  wait $!
  check "SIG$signal" [ $? -eq 4 ]
  check "SIG$signal ends a run within a second" [ $((($(now) - before) / 1000000)) -lt 1000 ]
  check "SIG$signal" says '.*/days.uvt: interrupted; the report is partial'
  check "SIG$signal" only e.csv r.json
  check "SIG$signal" grep -q PARTIAL "$T/report"
  check "SIG$signal" grep -q '"partial":.*true' "$T/out/r.json"
  check "SIG$signal" grep -q '^[0-9]*,0,interrupted,-1,0,0,0x0,,$' "$T/out/e.csv"
  check "SIG$signal" grep -q ',cpu_fault,1,' "$T/out/e.csv"
  rm -rf "$T/out"
done

# The second signal kills at once, here while the report waits for somebody to read it.
mkdir "$T/out"
run_for_days TERM --events "$T/out/e.csv" --json "$T/pipe" &
sleep 0.5
kill -s TERM $!
while [ ! -e "$T/out/e.csv" ] && kill -0 $!; do sleep 0.05; done
sleep 0.1
kill -s TERM $!
wait $! 2>/dev/null
check "a second signal" [ $? -eq 143 ]
check "a second signal" only e.csv
rm -rf "$T/out"

# Memory that is gone, allocation by allocation: each file is there as it should be, or not at all.
cat >>"$T/writers" <<END
replay $samples/oversubscribed.uvt --oversubscribe 1.5 --evict random --deterministic --json @ --events @.csv.gz
replay $samples/pingpong.uvt -m amd-mi250x --deterministic --json @
END
whole() { # every file in the folder is what it is in $T/want
  for file in "$T"/out/*; do
    [ ! -e "$file" ] || cmp -s "$file" "$T/want/$(basename "$file")" || return 1
  done
}
while read -r line; do
  line=$(echo "$line" | sed 's,@,x,g; s,-q,--deterministic -q,; /^replay\|^validate\|^why\|^diff/!s,--deterministic ,,')
  mkdir "$T/want" "$T/out"
  # shellcheck disable=SC2086
  (cd "$T/want" && "$program" $line >/dev/null)
  want=$? n=1
  while :; do
    # shellcheck disable=SC2086
    (cd "$T/out" && UVMSIM_FAIL_ALLOC=$n "$program" $line >/dev/null 2>"$T/err")
    [ $? -eq 4 ] && says 'out of memory(: no room for another [0-9]+ bytes)?' && whole || break
    n=$((n + 1 + n / detail))
    rm -f "$T"/out/*
  done
  # shellcheck disable=SC2086
  (cd "$T/out" && UVMSIM_FAIL_ALLOC=$n "$program" $line >/dev/null 2>"$T/err")
  check "allocation $n of $line" [ $? -eq $want ]
  check "allocation $n of $line" whole
  check "more than the first allocation of $line" [ "$n" -gt 1 ]
  rm -rf "$T/want" "$T/out"
done <"$T/writers"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
