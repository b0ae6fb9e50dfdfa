# One page's biography, without its times: the CPU's first touch, the GPU's fault, the CPU's again. Page 1 came along with page 0.
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 64K managed data\nw cpu a 0 64K\nkernel gpu0 lanes=1\nw a 0 8\ndone\nsync\nr cpu a 0 8\n' >"$T/t.uvt"
story() { sed -E 's/^ *[0-9]+  //; s/  [0-9.]+ [nu]s( |$)/  some\1/; s/ +$//'; }
uvmsim why "$T/t.uvt" --alloc 0 --page 0 | story
uvmsim why "$T/t.uvt" --alloc a --page 1 --json - | grep -E '"(label|page|what|resident|mapped|line)"'
uvmsim why "$T/t.uvt" --alloc data --page 0 | head -n 1
# An id goes before a label; an eviction's line stands before the copies it made.
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc x 2M managed y\nalloc y 2M managed x\nkernel gpu0 lanes=1\nw x 0 8\nw y 0 8\ndone\n' >"$T/two.uvt"
uvmsim why "$T/two.uvt" --alloc y --page 0 | head -n 1
uvmsim why "$T/two.uvt" --alloc x --page 0 --gpu-memory 2M | story
printf 'uvmtrace 1\nprocessor cpu\nalloc a 8K managed data\nw cpu a 0 4K\n' >"$T/one.uvt"
uvmsim why "$T/one.uvt" --alloc a --page 1 --policy none; status $?
# amdkfd tells faults when they are over; their lines still stand before what they did.
printf 'uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 8K managed data\nw cpu a 0 4K\nkernel gpu0 lanes=1\nw a 0 8\ndone\n' >"$T/amd.uvt"
uvmsim why "$T/amd.uvt" --alloc a --page 0 --machine amd-mi250x | story
