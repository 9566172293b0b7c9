#!/bin/bash
# Makes the virtual machine ready for worlds, as root, at each of its starts and after an upgrade on the host: what is there already is left.
#   provision.sh USER [FOLDER]   the user whose worlds these are; the host's installation (default /mnt/substrate)
set -euo pipefail
user=$1
from=${2:-/mnt/substrate}
into=/opt/substrate
export DEBIAN_FRONTEND=noninteractive

# Node runs the agent, nft and ip make the networks of worlds, the compiler builds the native parts for this machine.
packages=()
for need in node:nodejs nft:nftables ip:iproute2 gcc:gcc; do
  command -v "${need%%:*}" > /dev/null || packages+=("${need#*:}")
done
test -e /usr/include/linux/seccomp.h || packages+=(linux-libc-dev)
test -e /usr/include/stdio.h || packages+=(libc6-dev)
if [ "${#packages[@]}" -gt 0 ]; then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${packages[@]}"
fi

# The host's files are copied: a world needs an installation that its user cannot write, and that stays whole while npm replaces the host's.
# The name changes with the content, so a copy is made once for each.
stamp=$(cd "$from" && tar -c --mtime=@0 --exclude=./node_modules --exclude=./.git --exclude=./.build/machine . | sha256sum | cut -c1-16)
if ! test -d "$into/$stamp"; then
  rm -rf "$into/new"
  mkdir -p "$into/new"
  tar -c -C "$from" --exclude=./node_modules --exclude=./.git --exclude=./.build/machine . | tar -x -C "$into/new" --no-same-owner
  node "$into/new/api/setup/setup.mjs" --agent
  mv "$into/new" "$into/$stamp"
fi
ln -sfn "$stamp" "$into/current"

# The unit runs as the user whose files the mounts show.
units=/etc/systemd/system
mkdir -p "$units/substrate-agent.service.d"
printf '[Service]\nUser=%s\n' "$user" > "$units/substrate-agent.service.d/user.conf"
install -m 0644 "$into/current/systemd/system/substrate-agent.service" "$units/substrate-agent.service"
systemctl daemon-reload
systemctl enable --quiet substrate-agent.service
# An agent that runs another copy is replaced; its worlds end with it.
if [ "$(cat /run/substrate-agent.stamp 2> /dev/null)" != "$stamp" ] || ! systemctl is-active --quiet substrate-agent.service; then
  systemctl restart substrate-agent.service
  echo "$stamp" > /run/substrate-agent.stamp
fi

# Older copies are of no use to anybody.
find "$into" -mindepth 1 -maxdepth 1 -type d ! -name "$stamp" -exec rm -rf {} +
