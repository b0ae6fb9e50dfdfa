# Which machines there are, and what one is made of: memories, who reaches them, links. One may be like another.
uvmsim machines
for m in nvidia-v100 nvidia-gtx1080ti amd-mi250x amd-mi300a cxl-host; do
  uvmsim machines $m --quiet; status $?
done
uvmsim machines nvidia-h200x2 | sed -n '/^The profile/,/^like/p'
printf '[machine]\nlike = nvidia-v100\n[node hbm0]\ncapacity = 32G\n' >"$T/v100-32.ini"
uvmsim machines "$T/v100-32.ini" --quiet | sed -n '/^hbm0/p'
printf '[machine]\nlike = nvidia-h20\n' >"$T/bad.ini"
uvmsim machines "$T/bad.ini"; status $?
