# SIGTERM ends a run at its next event: the report is written, says that it is partial, and the exit status is 4. The trace comes from a
# named pipe that stays open, so the run is under way and waits when the signal comes; 256 KiB of comment, more than a pipe holds, are
# written after the records to make sure that these have been read.
blanks() { for i in $(seq 64); do printf '#%4095s\n' ' '; done; }
mkfifo "$T/pipe"
uvmsim replay "$T/pipe" --json "$T/r.json" --events "$T/e.csv" >"$T/out" &
exec 3>"$T/pipe"
{ printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 4K managed a\nw cpu a 0 4K\n'; blanks; } >&3
kill -TERM $!
wait $!; status $?
exec 3>&-
grep -c PARTIAL "$T/out"
grep '"partial"' "$T/r.json"
cut -d , -f 3 "$T/e.csv"
# Anything else is ended at once, and leaves nothing half-written (the comment makes sure that the output has been opened).
mkfifo "$T/pipe2"
uvmsim trace convert "$T/pipe2" -o "$T/x.uvt" &
exec 3>"$T/pipe2"
{ printf 'uvmtrace 1\nprocessor cpu\n'; blanks; } >&3
kill -TERM $!
exec 3>&-
{ wait $!; } 2>/dev/null; status $?
uvmsim diff "$T/pipe2"; status $?
ls "$T"
