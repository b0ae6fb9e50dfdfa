# What cannot be written is an error: a full device, a closed standard output, a missing folder.
uvmsim formats >/dev/full; status $?
uvmsim formats >&-; status $?
uvmsim formats --json /dev/full >"$T/out"; status $?
uvmsim formats --json "$T/missing/x.json"; status $?
uvmsim formats --json - >/dev/full; status $?
# Memory that is gone: one message, and nothing half-written.
for n in 1 10 100; do
  UVMSIM_FAIL_ALLOC=$n uvmsim replay traces/samples/pingpong.uvt --json "$T/r.json" --events "$T/e.csv" --timeline "$T/t.json" 2>&1 | cut -c 1-22
done
UVMSIM_FAIL_ALLOC=100 uvmsim replay traces/samples/pingpong.uvt --json "$T/r.json" 2>/dev/null; status $?
ls "$T"
# Outputs do not overwrite each other or what is read; standard input is read once; a closed stream fails when used.
cp traces/samples/pingpong.uvt "$T/t.uvt"
ln -s t.uvt "$T/link.uvt"
uvmsim replay "$T/t.uvt" --json "$T/link.uvt"; status $?
uvmsim replay "$T/t.uvt" --events "$T/t.uvt"; status $?
uvmsim trace convert "$T/t.uvt" --output "$T/link.uvt"; status $?
uvmsim replay "$T/t.uvt" --json - --events -; status $?
uvmsim trace convert "$T/t.uvt" --output - --json -; status $?
uvmsim validate - --observed - <"$T/t.uvt"; status $?
uvmsim replay - <&-; status $?
uvmsim replay "$T/t.uvt" >&-; status $?
uvmsim replay "$T/t.uvt" --json /dev/null --events /dev/null --quiet 2>&- >&- <&-; status $?
cmp traces/samples/pingpong.uvt "$T/t.uvt"; status $?
