# What a report proposes. Its commands are about the run that it reports: they repeat the options that were given for it.
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 8M managed big\nalloc b 4M managed small\nw cpu a 0 8M\nw cpu b 0 4M\n' >"$T/t.uvt"
printf 'kernel gpu0 lanes=1\nr a 0 8M\ndone\nkernel gpu0 lanes=1\nr b 0 4M\ndone\n' >"$T/kernels"
cat "$T/kernels" >>"$T/t.uvt"
next() { sed '1,/^Next/d'; }
uvmsim replay "$T/t.uvt" | next
uvmsim replay "$T/t.uvt" --deterministic --gpu-memory 8M -m nvidia-v100 --evict=fifo -o density.threshold=40 | next
uvmsim replay "$T/t.uvt" --machine amd-mi250x | next
uvmsim replay - <"$T/t.uvt" | next
# The allocation with the most faults is worth a prefetch, unless the trace has it already; then the other one.
proposed() { tr -s '\n ' ' ' | grep -o '`prefetch gpu[^`]*`'; }
uvmsim replay "$T/t.uvt" | proposed
{ sed '/^kernel/,$d' "$T/t.uvt"; echo "prefetch gpu0 a 0 8388608"; cat "$T/kernels"; } >"$T/ahead.uvt"
uvmsim replay "$T/ahead.uvt" | proposed
# One of two GPUs is full: 12 MiB go through 8 MiB, so two of its 2 MiB chunks leave.
uvmsim replay "$T/t.uvt" --machine nvidia-h200x2 --gpu-memory 8M | grep -E '^GPU memory|was full'
