# SIGTERM ends a run at its next event: the report is written, says that it is partial, and the exit status is 4. The trace comes from a
# named pipe, so the run is certainly under way and waiting when the signal comes.
mkfifo "$T/pipe"
uvmsim replay "$T/pipe" --json "$T/r.json" --events "$T/e.csv" >"$T/out" &
exec 3>"$T/pipe"
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 4K managed a\nw cpu a 0 4K\n' >&3
kill -TERM $!
exec 3>&-
wait $!; status $?
grep -c PARTIAL "$T/out"
grep '"partial"' "$T/r.json"
head -n 1 "$T/e.csv"
# Anything else is ended at once, and leaves nothing half-written (4 KiB of blanks make sure that the output has been opened).
mkfifo "$T/pipe2"
uvmsim trace convert "$T/pipe2" -o "$T/x.uvt" &
exec 3>"$T/pipe2"
printf 'uvmtrace 1\nprocessor cpu\n#%4096s\n' ' ' >&3
kill -TERM $!
exec 3>&-
{ wait $!; } 2>/dev/null; status $?
ls "$T"
