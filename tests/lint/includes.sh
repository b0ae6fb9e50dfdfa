#!/bin/sh
# Fails on an include that includes.table does not allow. Only src/session.c joins the parts and is not listed.
set -eu
cd "$(dirname "$0")/../.."
bad=0

# Folder of an include as written: the part of the tree it belongs to.
part_of() {
  case $1 in
  uvmsim/*) echo uvmsim ;;
  base/*) echo base ;;
  core/*) echo core ;;
  machine/*) echo machine ;;
  model/*) echo model ;;
  report/*) echo report ;;
  cli/*) echo cli ;;
  session.h | engine.h | parts.h) echo "${1%.h}" ;;
  *) if [ -e "traces/$1" ]; then echo traces; elif [ -e "policies/$1" ]; then echo policies; else echo self; fi ;;
  esac
}

own_name() {
  case $1 in
  src/include/uvmsim) echo uvmsim ;;
  *) basename "$1" ;;
  esac
}

while IFS=: read -r folder allowed; do
  case $folder in '#'* | '') continue ;; esac
  for f in $(find "$folder" -name '*.[ch]'); do
    for inc in $(sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' "$f"); do
      part=$(part_of "$inc")
      case " $allowed $(own_name "$folder") self " in
      *" $part "*) ;;
      *) echo "$f: includes \"$inc\" ($part); $folder may include only:$allowed"; bad=1 ;;
      esac
    done
  done
done <tests/lint/includes.table
exit $bad
