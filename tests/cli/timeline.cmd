# A timeline: sections of known length (a delay takes just its time), one slice a kernel, one process each, the memories' counters.
printf 'uvmtrace 1\nprocessor cpu\nbegin "s"/2\ndelay cpu 1500\nend\n' >"$T/t.uvt"
uvmsim replay "$T/t.uvt" --timeline - --quiet; status $?
uvmsim replay traces/samples/vecadd.uvt --timeline "$T/v.json" --quiet; status $?
grep -o '"process_name","args":{.*}' "$T/v.json"
grep -o '"capacity hbm0".*' "$T/v.json"
# Compressed by its name; the same bytes again.
uvmsim replay traces/samples/vecadd.uvt --timeline "$T/v.json.gz" --quiet; status $?
gzip -dc "$T/v.json.gz" | cmp - "$T/v.json"; status $?
# No other file is overwritten, and none is left when the run fails.
uvmsim replay "$T/t.uvt" --timeline "$T/t.uvt"; status $?
uvmsim replay "$T/t.uvt" --timeline "$T/x" --json "$T/x"; status $?
uvmsim replay "$T/t.uvt" --timeline "$T/missing/x.json"; status $?
printf 'uvmtrace 1\nprocessor cpu\nbegin s\n' >"$T/open.uvt"
uvmsim replay "$T/open.uvt" --timeline "$T/open.json"; status $?
ls "$T"
