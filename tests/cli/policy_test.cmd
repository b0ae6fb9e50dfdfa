# The contract: a policy is tried on random traces; each wrong answer is refused with the policy's and the hook's name, and what would
# make two runs of it differ is found.
root=$PWD
cd "$T" || exit
uvmsim policies new mine -q
uvmsim policies test ./mine.c >out; status $?
sed 's/^\([a-z-]*\) *\([a-z]*\)  .*/\1 \2/' out
ls
try() { # NAME EDIT...: the skeleton, edited
  sed "$2" mine.c >"$1.c"
  uvmsim policies test "./$1.c" -q >err 2>&1; status $?
  grep '^uvmsim' err
}
hook() { # NAME PARAMETERS ANSWER: a further hook
  try "$1" "s/\.prefetch =/.$1 = $1, .prefetch =/; s/^static const struct uvm_opt/static void $1(void *s, const uvm_view *v, const struct uvm_fault *f, $2) { (void)s, (void)v, (void)f, *out = $3; }\n&/"
}
place='const struct uvm_thrash *h, struct uvm_place *out' thrash='struct uvm_thrash *out'
try busy 's/return !backing->busy/return true/'
try incoming 's/== k) return false/== k) continue/'
try nowhere 's/out\[n++\] = k;/out[n++] = k + 100000;/'
try many 's/return n;/return max + 1;/'
try outside 's/a < begin ? begin : a, z > end ? end : z/a, z/'
hook place "$place" '(struct uvm_place){UVM_REMOTE, h != NULL ? 0 : 1, 0}'
hook place "$place" '(struct uvm_place){UVM_MIGRATE, h != NULL ? 99 : 1, 0}'
hook thrash "$thrash" '(struct uvm_thrash){UVM_HINT_PIN, 77, 1, 0}'
# Held for ever, and nobody to leave: the run cannot go on.
hook thrash "$thrash" '(struct uvm_thrash){UVM_HINT_THROTTLE, 0, 0, uvm_now(v) + 1000000}'
try nobody 's/return n;/return 0;/'
# The trace that fails does so again.
sed 's/return n;/return max + 1;/' mine.c >many.c
uvmsim policies test ./many.c 2>&1 | sed 's/.*again: //' >again
sh ./again; status $?
# Not a function of the run alone.
try random 's/#include/#include <stdlib.h>\n#include/; s/    int a = /    if (rand() % 2)\n      continue;\n    int a = /'
try static 's/  size_t n = 0;/  static uint64_t calls;\n  size_t n = calls++ % 1;/' | sed 's/calls\.[0-9]*/calls.N/'
try global 's/^static const struct uvm_opt opts/static struct uvm_opt opts/'
try self 's/^const struct uvm_policy/struct uvm_policy/'
try perthread 's/  size_t n = 0;/  static _Thread_local uint64_t calls;\n  size_t n = calls++ % 1;/' | sed 's/calls\.[0-9]*/calls.N/'
# A shared object is tested as well; what is no policy is an error.
cc -shared -fPIC -I "$root/src/include" -o self.so self.c
uvmsim policies test ./self.so; status $?
uvmsim policies test ./missing.c; status $?
uvmsim policies test nvidia; status $?
