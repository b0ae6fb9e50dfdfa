# The manual page and the completion are what the tables say.
uvmsim help --man | diff docs/man/uvmsim.1 - ; status $?
uvmsim help --bash | diff completion/uvmsim.bash - ; status $?
bash -c '. completion/uvmsim.bash
COMP_WORDS=(uvmsim rep) COMP_CWORD=1; _uvmsim; echo "${COMPREPLY[@]}"
COMP_WORDS=(uvmsim replay --machine nvidia-tit) COMP_CWORD=3; _uvmsim; echo "${COMPREPLY[@]}"
COMP_WORDS=(uvmsim policies te) COMP_CWORD=2; _uvmsim; echo "${COMPREPLY[@]}"
COMP_WORDS=(uvmsim policies test --q) COMP_CWORD=3; _uvmsim; echo "${COMPREPLY[@]}"
COMP_WORDS=(uvmsim replay --policy policies/sk) COMP_CWORD=3; _uvmsim; echo "${COMPREPLY[@]}"
COMP_WORDS=(uvmsim diff --evict) COMP_CWORD=2; _uvmsim; echo "${COMPREPLY[@]}"'
