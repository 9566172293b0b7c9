# npm's `substrate` and `substrate-sh`, read by their first lines: becomes the native program of that name, because Node takes longer to
# start than most commands take; the CLI in Node where the native programs are missing or for another machine. `self`: the file that was
# started, found without a process where npm links to it from its own folders. A coding agent runs its tool after any exit code of a
# hook but 2.
fail() {
  echo "substrate: $1" >&2
  if [ "$hook" = yes ]; then exit 2; else exit 125; fi
}

become() {
  if [ "$hook" != yes ]; then exec "$@"; fi
  trap 'exit 2' HUP INT QUIT TERM
  "$@" || exit 2
  exit 0
}

hook=
if [ "$1" = hook ]; then hook=yes; fi
root=${self%/api/bin/*}
name=${self##*/}
name=${name%.mjs}
# Only a package has this file: a checkout is built where it is used.
target=
if [ -r "$root/.build/target.json" ]; then IFS= read -r target <"$root/.build/target.json"; fi
# A process fewer, from Linux 6.1 on. For uname, a project's folder may be first on PATH.
if [ -r /proc/sys/kernel/arch ]; then
  IFS= read -r system </proc/sys/kernel/arch
  system="Linux $system"
else
  system=$(PATH=/usr/bin:/bin:$PATH uname -sm)
fi
case "$target $system" in
  '{"platform":"linux","arch":"x64",'*' Linux x86_64' | '{"platform":"linux","arch":"arm64",'*' Linux aarch64' | ' Linux '*)
    if [ -x "$root/.build/$name" ]; then become "$root/.build/$name" "$@"; fi
    ;;
esac
command -v node >/dev/null || fail "cannot find 'node' on PATH"
become node "$self" "$@"
