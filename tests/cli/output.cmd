# What cannot be written is an error: a full device, a closed standard output, a missing folder.
uvmsim formats >/dev/full; status $?
uvmsim formats >&-; status $?
uvmsim formats --json /dev/full >"$T/out"; status $?
uvmsim formats --json "$T/missing/x.json"; status $?
uvmsim formats --json - >/dev/full; status $?
# Memory that is gone: one message, and nothing half-written.
for n in 1 10 100; do
  UVMSIM_FAIL_ALLOC=$n uvmsim replay traces/samples/pingpong.uvt --json "$T/r.json" --events "$T/e.csv" 2>&1 | cut -c 1-22
done
UVMSIM_FAIL_ALLOC=100 uvmsim replay traces/samples/pingpong.uvt --json "$T/r.json" 2>/dev/null; status $?
ls "$T"
