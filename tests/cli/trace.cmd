# A trace's facts, and its other forms. 2 managed allocations of 8 KiB, one after the other: 16 KiB in all, 8 KiB at once.
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 8192 managed first\nw cpu a 0 8192\nfree a\nalloc a 8192 managed second\nbegin s/1\nkernel gpu0 lanes=1\nr a 0 8\ndone\nsync\nend\n' >"$T/t.uvt"
uvmsim trace info "$T/t.uvt"; status $?
uvmsim trace info - --json - <"$T/t.uvt"; status $?
uvmsim trace convert "$T/t.uvt" -o "$T/a.uvb"; status $?
uvmsim trace convert "$T/a.uvb" -o "$T/b.uvt.gz" --quiet; status $?
uvmsim trace convert "$T/b.uvt.gz" -o "$T/c.uvt.zst" --json -; status $?
uvmsim trace convert "$T/c.uvt.zst" -o - >"$T/d"; status $?
uvmsim trace convert "$T/t.uvt" -o - | cmp - "$T/d"; status $?
uvmsim trace convert "$T/t.uvt" -o "$T/x.txt"; status $?
echo 'uvmtrace 1
alloc a 4096 managed a
r cpu a 0 8192' >"$T/bad.uvt"
uvmsim trace convert "$T/bad.uvt" -o "$T/never.uvt"; status $?
ls "$T"
uvmsim trace info "$T/missing.uvt"; status $?
