# What is well formed but cannot be run: time without end, memory without room.
begin() { printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 4M managed a\n'; }
{ begin; printf 'delay cpu 9007199254740992\ndelay cpu 1\n'; } >"$T/late.uvt"
{ begin; printf 'w gpu0 a 0 4M\nprefetch gpu0 a 0 4M\n'; } >"$T/touch.uvt"
{ begin; printf 'prefetch gpu0 a 0 4M\n'; } >"$T/prefetch.uvt"
uvmsim replay "$T/late.uvt" --json "$T/never.json" --events "$T/never.csv"; status $?
for trace in touch prefetch; do
  uvmsim replay "$T/$trace.uvt" --gpu-memory 1 --json "$T/never.json" --events "$T/never.csv"; status $?
  uvmsim replay "$T/$trace.uvt" --gpu-memory 2097151 --quiet; status $?
  uvmsim replay "$T/$trace.uvt" --gpu-memory 2M --quiet; status $?
done
ls "$T"
