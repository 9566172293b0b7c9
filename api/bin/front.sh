#!/bin/sh
# npm's `substrate` and `substrate-sh`: becomes the native program of that name, because Node takes longer to start than most commands
# take; the CLI in Node where the native programs are missing or for another machine.
fail() {
  echo "substrate: $1" >&2
  # A coding agent runs its tool after any other exit code of a hook.
  if [ "$2" = hook ]; then exit 2; else exit 125; fi
}

case $0 in
  *-sh) name=substrate-sh ;;
  *) name=substrate ;;
esac
# A project's folder may be first on PATH.
self=$(PATH=/usr/bin:/bin:$PATH readlink -f -- "$0") || fail "cannot find its own folder from '$0'" "$1"
root=${self%/api/bin/*}
# Only a package has this file: a checkout is built where it is used.
target=
if [ -r "$root/.build/target.json" ]; then IFS= read -r target <"$root/.build/target.json"; fi
case "$target $(PATH=/usr/bin:/bin:$PATH uname -sm)" in
  '{"platform":"linux","arch":"x64",'*' Linux x86_64' | '{"platform":"linux","arch":"arm64",'*' Linux aarch64' | ' Linux '*)
    if [ -x "$root/.build/$name" ]; then exec "$root/.build/$name" "$@"; fi
    ;;
esac
command -v node >/dev/null || fail "cannot find 'node' on PATH" "$1"
exec node "$root/api/bin/$name.mjs" "$@"
