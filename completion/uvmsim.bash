# Completion of uvmsim for bash; printed by `uvmsim help --bash`.
_uvmsim() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=
  COMPREPLY=()
  case $before in
    --machine) COMPREPLY=($(compgen -W "$(uvmsim machines --quiet 2>/dev/null)" -- "$word")); return ;;
    --policy) COMPREPLY=($(compgen -W "$(uvmsim policies --quiet 2>/dev/null)" -- "$word")); return ;;
  esac
  case $command in
    replay) words=" --machine --policy --driver --engine --gpu-memory --oversubscribe --place --prefetch --evict --thrash --costs --seed --option --events --json --deterministic --quiet --help" ;;
    validate) words=" --machine --policy --driver --engine --gpu-memory --oversubscribe --place --prefetch --evict --thrash --costs --seed --option --observed --sections --workload --tolerance --json --deterministic --quiet --help" ;;
    why) words=" --machine --policy --driver --engine --gpu-memory --oversubscribe --place --prefetch --evict --thrash --costs --seed --option --alloc --page --json --deterministic --quiet --help" ;;
    diff) words=" --machine --machine-b --policy --policy-b --driver --driver-b --engine --engine-b --gpu-memory --gpu-memory-b --oversubscribe --oversubscribe-b --place --place-b --prefetch --prefetch-b --evict --evict-b --thrash --thrash-b --costs --costs-b --seed --seed-b --option --option-b --observed --json --deterministic --quiet --help" ;;
    policies) words=" --json --quiet --help" ;;
    machines) words=" --json --quiet --help" ;;
    formats) words=" --json --quiet --help" ;;
    help) words=" --man --bash --help" ;;
    trace) words=" info --json --quiet --help convert --output --json --quiet --help" ;;
  esac
  if ((COMP_CWORD == 1)); then words=" replay validate why diff trace policies machines formats help"; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ $word == -* ]] || COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o filenames -F _uvmsim uvmsim
