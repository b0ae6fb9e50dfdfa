# A policy of one's own: written, compiled on the spot, tried; as a whole and for one question; on either side of diff.
samples=$PWD/traces/samples over="--oversubscribe 2 --deterministic"
export TMPDIR="$T/tmp"
mkdir "$TMPDIR"
cd "$T" || exit
uvmsim policies new mine; status $?
uvmsim replay "$samples/oversubscribed.uvt" --oversubscribe 2 --policy ./mine.c | grep -o 'policy mine, engine model'
uvmsim policies ./mine.c; status $?
# Nothing is answered in the driver's way but what the file leaves open: with pages on their own and victims by service order, as `none`.
none="$samples/oversubscribed.uvt $over --policy none"
uvmsim diff $none --policy-b mine.c --thrash-b none --option-b mine.around=1 -q; status $?
sed 's/"nvidia"/NULL/' mine.c >bare.c
uvmsim diff $none --policy-b ./bare.c --option-b mine.around=1 -q; status $?
uvmsim diff $none --policy-b ./bare.c --prefetch-b none -q; status $?
uvmsim diff $none --policy-b ./bare.c --evict-b fifo -q; status $?
uvmsim diff $none --prefetch ./mine.c --prefetch-b ./mine.c -q; status $?
uvmsim diff $none --evict-b ./mine.c -q; status $?
uvmsim diff $none --prefetch-b ./mine.c -q; status $?
uvmsim replay "$samples/pingpong.uvt" --place ./mine.c; status $?
uvmsim replay "$samples/pingpong.uvt" --policy ./mine.c -o mine.around=513; status $?
uvmsim replay "$samples/pingpong.uvt" --policy ./mine.c -o mine.size=1; status $?
# Its own names for what it decides outlive the run.
cat >place.c <<'END'
#include "uvmsim/policy.h"
static void place(void *s, const uvm_view *v, const struct uvm_fault *f, const struct uvm_thrash *h, struct uvm_place *out) {
  (void)s, (void)h;
  *out = (struct uvm_place){UVM_MIGRATE, uvm_topology(v)->procs[f->proc].home, 1};
}
static const char *const why[] = {"never", "always home", NULL};
const struct uvm_policy uvm_policy = {.abi = UVM_POLICY_ABI, .name = "home", .help = "home", .why = why, .place = place};
END
uvmsim why "$samples/first_touch.uvt" --alloc out --page 20 --place ./place.c | grep -o 'gpu0 write fault.*always home'
# A shared object is loaded as it is; whatever the compiler is called.
cc -shared -fPIC -I "$OLDPWD/src/include" -o mine.so mine.c
uvmsim diff "$samples/oversubscribed.uvt" $over --policy mine.so --policy-b ./mine.c -q; status $?
CC="cc -DUNUSED" uvmsim policies ./place.c; status $?
CC=/missing/cc uvmsim policies ./mine.c; status $?
TMPDIR=/missing uvmsim policies ./mine.c; status $?
# What is no policy. The compiler's words come first.
try() { uvmsim replay "$samples/pingpong.uvt" --policy "$1" 2>err; status $?; grep '^uvmsim' err; }
variant() { sed "$2" mine.c >"$1.c" && try "./$1.c"; }
variant broken 's/int around/int/'; grep -q 'broken.c:[0-9]*:.*error:' err; status $?
variant undefined 's/uvm_newer/newer/'
variant unnamed 's/uvm_policy =/other =/'
variant abi 's/abi = .*/abi = 7,/'
variant name 's/name = "mine"/name = "my mine"/'
variant help 's/\.help = .*"/.help = 0/'
variant needs 's/\.help/.needs = 24, .help/'
variant future 's/\.help/.needs = UVM_NEEDS_FUTURE, .help/'
variant base 's/"nvidia"/"nvidai"/'
variant state 's/\.state_size = [^,]*/.state_size = 3/'
variant type 's/UVM_U32/99/'
variant default 's/UVM_BLOCK_PAGES, 16/UVM_BLOCK_PAGES, 0/'
variant option 's/{"around"/{"a.b"/'
variant text 's/"pages that come[^"]*"/0/'
echo text >text.so
try ./text.so
try ./missing.c
try ./missing.so
try ./mine.txt
try ./mine
# Out of memory or stopped: nothing stays behind. The signal comes while a compiler works that takes its time.
n=1
while UVMSIM_FAIL_ALLOC=$n uvmsim policies ./mine.c 2>&1 | grep -q 'out of memory'; do n=$((n + 1)); done
[ $n -gt 5 ]; status $?
printf '#!/bin/sh\necho >"%s/begun"\nsleep 0.5\nexec cc "$@"\n' "$T" >slow && chmod +x slow
stop() { # COMMAND...: started, and ended when the compiler runs
  rm -f begun
  CC="$T/slow" "$@" 2>err &
  while [ ! -e begun ]; do sleep 0.02; done
  kill -TERM $!
  { wait $!; } 2>/dev/null; status $?
  grep '^uvmsim' err
  sleep 0.6
}
stop uvmsim policies ./mine.c
stop uvmsim replay "$samples/pingpong.uvt" --policy ./mine.c
ls "$TMPDIR"
# A new policy takes no file's place.
echo kept >kept.c
uvmsim policies new kept; status $?
cat kept.c
uvmsim policies new ../escape; status $?
uvmsim policies new 2nd; status $?
(mkdir shut && cd shut && rmdir ../shut && uvmsim policies new mine); status $?
