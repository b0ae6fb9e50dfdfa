# One block: the CPU writes all of 2 MiB, one GPU thread reads 8 bytes, the CPU reads them back. Recorded on an H200: the CPU's first touches
# are 6 faults (16, 16, 32, 64, 128, 256 pages); a GPU fault brings 64 KiB in copies of 4 and 60 KiB; so does the CPU's.
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 2M managed data\nw cpu a 0 2M\nbegin walk/3\nkernel gpu0 lanes=1\nr a 0 8\ndone\nsync\nend\nbegin back\nr cpu a 0 8\nend\n' >"$T/t.uvt"
counters() { grep -E '"(schema|machine|partial|sim_ns|accesses|gpu_faults|fault_batches|cpu_faults|[hd]2[hd]_(bytes|copies)|prefetched_bytes|prefetch_used_bytes|peak_gpu_bytes|host|wall_ns)"' | sed 's/"sim_ns":.*[1-9].*/"sim_ns": some/; s/"wall_ns":.*[1-9].*/"wall_ns": some/'; }
uvmsim replay "$T/t.uvt" --json - >"$T/out.json" 2>"$T/err"; status $?
cat "$T/err"
sed '/"processors"/,$d' "$T/out.json" | counters
echo "sections"
sed -n '/"sections"/,/"allocations"/p' "$T/out.json" | grep -E '"(name|iteration|gpu_faults|cpu_faults|h2d_bytes|d2h_bytes)"'
echo "the recorder's view"
uvmsim replay "$T/t.uvt" --events "$T/e.csv" --quiet; status $?
grep -E '^t_ns|,(h2d|d2h|gpu_fault|cpu_fault|section),' "$T/e.csv" | cut -d, -f3-
echo "the same again, byte for byte"
uvmsim replay "$T/t.uvt" --deterministic --json "$T/1.json" --quiet; status $?
uvmsim replay - --deterministic --json "$T/2.json" --quiet <"$T/t.uvt"; status $?
sed -i 's,"trace":.*,,' "$T/1.json" "$T/2.json"
cmp "$T/1.json" "$T/2.json"; status $?
grep -c '"host"' "$T/1.json" "$T/out.json" | sed "s,$T,T,"
echo "compared with itself, and with another prefetcher"
uvmsim validate "$T/t.uvt" --observed "$T/e.csv"; status $?
uvmsim diff "$T/t.uvt" --observed "$T/e.csv" | tail -n 1; uvmsim diff "$T/t.uvt" --observed "$T/e.csv" --quiet; status $?
uvmsim diff "$T/e.csv" "$T/e.csv" --quiet; status $?
uvmsim diff "$T/t.uvt" --prefetch-b none | sed -n '/^the first/p'; uvmsim diff "$T/t.uvt" --prefetch-b none --quiet; status $?
echo "two traces, and a trace beside an event file"
sed 's/^kernel/prefetch gpu0 a 0 4K\nkernel/' "$T/t.uvt" >"$T/ahead.uvt"
uvmsim diff "$T/t.uvt" "$T/ahead.uvt" --quiet; status $?
uvmsim diff "$T/t.uvt" "$T/e.csv" | tail -n 1
