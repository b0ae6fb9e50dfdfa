# Help goes to standard output and is no error.
uvmsim --help; status $?
uvmsim help replay > "$T/a"; status $?
uvmsim replay --help > "$T/b"; status $?
cmp "$T/a" "$T/b"; status $?
uvmsim trace convert --help; status $?
uvmsim diff -h | head -n 8
for c in replay validate why diff "trace info" "trace convert" "policies new" "policies test" policies machines formats help; do
  # shellcheck disable=SC2086
  uvmsim $c --help | grep -c '^example: uvmsim'
done
uvmsim --version; status $?
