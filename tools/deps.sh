#!/bin/sh
# Installs what building and testing need and is missing, with the system's package manager; quick when all is there.
set -eu
packages="build-essential pkg-config libuv1-dev libjemalloc-dev libzstd-dev zlib1g-dev libcjson-dev libinih-dev libcmocka-dev
valgrind zstd"

missing() {
  for p in $packages; do
    dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null | grep -q '^install ok installed' || echo "$p"
  done
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "This system has no apt. Install the equivalents of these Debian packages, then build again with DEPS=skip:" >&2
  echo "  "$packages >&2
  exit 1
fi
need=$(missing | tr '\n' ' ')
[ -n "$need" ] || exit 0
echo "installing: $need"
as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "That takes root and there is no sudo; as root: apt-get install $need" >&2; exit 1; }
  as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $need >/dev/null
