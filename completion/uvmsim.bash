# Completion of uvmsim for bash; printed by `uvmsim help --bash`.
_uvmsim() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words= options= files=
  ((COMP_CWORD > 2)) && case "$command ${COMP_WORDS[2]}" in trace*|policies\ new|policies\ test) command+=" ${COMP_WORDS[2]}" ;; esac
  case $command in
    'replay') options=" --machine --policy --driver --engine --gpu-memory --oversubscribe --place --prefetch --evict --thrash --costs --seed --option --events --timeline --json --deterministic --quiet --help" files=-f ;;
    'validate') options=" --machine --policy --driver --engine --gpu-memory --oversubscribe --place --prefetch --evict --thrash --costs --seed --option --observed --sections --workload --tolerance --json --deterministic --quiet --help" files=-f ;;
    'why') options=" --machine --policy --driver --engine --gpu-memory --oversubscribe --place --prefetch --evict --thrash --costs --seed --option --alloc --page --json --deterministic --quiet --help" files=-f ;;
    'diff') options=" --machine --machine-b --policy --policy-b --driver --driver-b --engine --engine-b --gpu-memory --gpu-memory-b --oversubscribe --oversubscribe-b --place --place-b --prefetch --prefetch-b --evict --evict-b --thrash --thrash-b --costs --costs-b --seed --seed-b --option --option-b --observed --json --deterministic --quiet --help" files=-f ;;
    'trace info') options=" --json --quiet --help" files=-f ;;
    'trace convert') options=" --output --json --quiet --help" files=-f ;;
    'policies new') options=" --quiet --help" files=-f ;;
    'policies test') options=" --quiet --help" files=-f ;;
    'policies') options=" --json --quiet --help" words="$(uvmsim policies --quiet 2>/dev/null) new test" ;;
    'machines') options=" --json --quiet --help" words="$(uvmsim machines --quiet 2>/dev/null)" ;;
    'formats') options=" --json --quiet --help" words="$(uvmsim formats --quiet 2>/dev/null)" ;;
    'help') options=" --man --bash --help" words=" replay validate why diff trace policies machines formats help" ;;
    trace) words=" info convert" ;;
  esac
  if ((COMP_CWORD == 1)); then words=" replay validate why diff trace policies machines formats help" options=" --help --version" files=; fi
  case $before in
    --machine|--machine-b|-m) files= words="$(uvmsim machines --quiet 2>/dev/null)" ;;
    --policy|--policy-b|-p) files= words="$(uvmsim policies --quiet 2>/dev/null)" ;;
    --driver|--driver-b) files= words=" nvidia amdkfd" ;;
    --engine|--engine-b) files= words="model" ;;
    --place|--place-b) files= words=" none" ;;
    --prefetch|--prefetch-b) files= words=" none density" ;;
    --evict|--evict-b) files= words=" lru-service lru fifo clock sieve lfu s3fifo arc random" ;;
    --thrash|--thrash-b) files= words=" none nvidia" ;;
    --costs|--costs-b) files= words="measured traced" ;;
  esac
  [[ $word == */* ]] && files=-f
  [[ $word == -* ]] && words=$options files=
  COMPREPLY=($(compgen $files -W "$words" -- "$word"))
}
complete -o filenames -F _uvmsim uvmsim
