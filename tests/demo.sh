#!/bin/sh
# Replays bundled recordings of a real H200 and prints what the simulation and the driver did, side by side.
set -eu
program=$1
dir=traces/recorded/h200
for name in chase prefetch cpufan; do
  "$program" validate "$dir/$name.uvt.gz" --observed "$dir/$name.events.csv.gz"
  echo
done
cat <<'TEXT'
What this means: `chase` walks memory with one GPU thread in four orders, `prefetch` moves allocations of 4 KiB to 1 GiB back and
forth on request, `cpufan` makes the CPU pull pages back from the GPU. Every row marked exact is the same faults, in the same
order, and the same transfers that driver 580.159.04 made on an H200; the simulation got the trace and nothing else. `alloc` is the
allocation's number in the trace, `pages` counts the 4 KiB pages that moved, `sizes` the copies of each size.

Next:
  build/uvmsim replay traces/samples/oversubscribed.uvt --gpu-memory 8M       what a GPU that is too small does
  build/uvmsim why traces/recorded/h200/chase.uvt.gz --alloc 3 --page 100     why one page moved
  build/uvmsim replay --help
TEXT
