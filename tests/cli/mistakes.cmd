# Mistakes in what the options name, and in the input.
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nprocessor gpu1\nalloc a 4K managed a\nw cpu a 0 4K\n' >"$T/two.uvt"
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 4K managed a\nw cpu a 0 4K\nbegin s\n' >"$T/open.uvt"
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 4K managed a\nw cpu a 0 4K\n' >"$T/t.uvt"
for o in "--machine nvidia" "--policy nvidai" "--driver amd" "--driver nvidia-0000000000000000000595" "--engine uffd" "--evict mru" "--prefetch dense" "--costs cheap" "-o x.y=1" \
  "-o nvidia.nothing=1" "-o density.threshold=lots"; do
  # shellcheck disable=SC2086
  uvmsim replay "$T/t.uvt" $o; status $?
done
uvmsim replay "$T/two.uvt"; status $?
uvmsim replay "$T/open.uvt" --json "$T/never.json" --events "$T/never.csv"; status $?
uvmsim replay "$T/none.uvt"; status $?
uvmsim why "$T/t.uvt" --alloc b --page 0; status $?
uvmsim why "$T/t.uvt" --alloc a --page 1; status $?
uvmsim validate "$T/t.uvt" --observed "$T/t.uvt"; status $?
printf 'workload,section,part,iterations,runs,min,median,max\nx,s,all,1,1,2,2.5,3\n' >"$T/s.csv"
sed 's/,2,2.5,3/,2,3/' "$T/s.csv" >"$T/cut.csv"
uvmsim validate "$T/t.uvt" --sections "$T/s.csv"; status $?
uvmsim validate "$T/t.uvt" --sections "$T/cut.csv"; status $?
ls "$T"
