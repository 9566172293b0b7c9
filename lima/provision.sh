#!/bin/bash
# Makes the virtual machine ready for worlds, as root, at each of its starts and after an upgrade on the host: what is there already is left.
#   provision.sh [USER [FOLDER]]   the user whose worlds these are (default: who called sudo); the host's installation (/mnt/substrate)
set -euo pipefail
user=${1:-${SUDO_USER:?which user}}
from=${2:-/mnt/substrate}
into=/opt/substrate
unit=substrate-agent.service
export DEBIAN_FRONTEND=noninteractive

# install PROGRAM:PACKAGE…
install_missing() {
  local packages=() need
  for need in "$@"; do
    command -v "${need%%:*}" > /dev/null || packages+=("${need#*:}")
  done
  [ "${#packages[@]}" -gt 0 ] || return 0
  apt-get update -qq
  apt-get install -y -qq "${packages[@]}"
}

pack() {
  tar -C "$from" --sort=name --mtime=@0 --exclude=./node_modules --exclude=./.git --exclude=./.build/machine -c .
}

# Node runs the agent; nft and ip make the networks of worlds.
install_missing node:nodejs nft:nftables ip:iproute2

# The host's files are copied: a world needs an installation that its user cannot write, and that stays whole while npm replaces the host's.
# The name changes with the content, so there is one copy of each.
stamp=$(pack | sha256sum | cut -c1-16)
if ! test -d "$into/$stamp"; then
  rm -rf "$into/new"
  mkdir -p "$into/new"
  pack | tar -x -C "$into/new" --no-same-owner
  # The native parts of a package that was made on another kind of machine are compiled here.
  node "$into/new/api/setup/setup.mjs" --is-made-for-here || install_missing cc:build-essential
  node "$into/new/api/setup/setup.mjs" --agent
  mv "$into/new" "$into/$stamp"
fi
ln -sfn "$stamp" "$into/current"
# The front starts the Node that was found here, whatever PATH the unit has.
ln -sfn "$(command -v node)" "$into/current/.build/node"

# As the user whose files the mounts show. The front opens systemd's socket for Node, which cannot say READY=1 itself.
mkdir -p "/etc/systemd/system/$unit.d"
cat > "/etc/systemd/system/$unit.d/here.conf" << END
[Service]
User=$user
ExecStart=
ExecStart=$into/current/.build/substrate agent --socket /run/substrate-agent/agent.sock
END
install -m 0644 "$into/current/systemd/system/$unit" "/etc/systemd/system/$unit"
systemctl daemon-reload
systemctl enable --quiet "$unit"
# An agent of another copy is replaced; its worlds end with it.
if [ "$(cat /run/substrate-agent.stamp 2> /dev/null)" != "$stamp" ] || ! systemctl is-active --quiet "$unit"; then
  # What the agent said is what a person needs of a start that failed; systemctl names two more commands instead.
  systemctl restart "$unit" || { journalctl --quiet --no-pager --unit "$unit" --lines 20 >&2; exit 1; }
  echo "$stamp" > /run/substrate-agent.stamp
fi

# Older copies are of no use to anybody.
find "$into" -mindepth 1 -maxdepth 1 -type d ! -name "$stamp" -exec rm -rf {} +
