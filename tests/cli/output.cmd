# What cannot be written is an error: a full device, a closed standard output, a missing folder.
uvmsim formats >/dev/full; status $?
uvmsim formats >&-; status $?
uvmsim formats --json /dev/full >"$T/out"; status $?
uvmsim formats --json "$T/missing/x.json"; status $?
uvmsim formats --json - >/dev/full; status $?
