# Section times beside a recorded spread: judged only with --tolerance. delay makes the host wait for just its time: 1 ms, then 3 ms.
printf 'uvmtrace 1\nprocessor cpu\nbegin s/0\ndelay cpu 1000000\nend\nbegin s/1\ndelay cpu 3000000\nend\n' >"$T/w.uvt"
printf 'workload,section,part,iterations,runs,min,median,max\nw,s,first,1,9,0.0005,0.001,0.002\nw,s,rest,1,9,0.001,0.0015,0.002\nw,gone,all,1,9,1,1,1\n' >"$T/s.csv"
uvmsim validate "$T/w.uvt" --sections "$T/s.csv"; status $?
uvmsim validate "$T/w.uvt" --sections "$T/s.csv" --tolerance 40 --quiet; status $?
uvmsim validate "$T/w.uvt" --sections "$T/s.csv" --tolerance 60 --quiet; status $?
cp "$T/w.uvt" "$T/other.uvt"
uvmsim validate "$T/other.uvt" --sections "$T/s.csv" --workload w --json - | grep -E '"(ok|part|predicted_ns|outside_percent|largest_cause|host)"'
# The same section twice, recorded once: the faster one stands for it.
printf 'workload,section,part,iterations,runs,min,median,max\nw,s,all,1,9,0.0005,0.001,0.002\n' >"$T/s.csv"
uvmsim validate "$T/w.uvt" --sections "$T/s.csv" --json - | grep -E '"predicted_ns"'
