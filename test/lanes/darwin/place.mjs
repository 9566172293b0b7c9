/** A place that looks like macOS to a program: no /proc, /sys, nft or unshare, and programs that refuse what only GNU's take. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findProgram } from "../../../api/setup/programs.mjs";
import { addUser, asUser, removeUser } from "../accounts.mjs";
import { copyCheckout } from "../checkout.mjs";

/** Programs that macOS has too, and that are used here in a form that both take. No compiler: macOS comes without. */
const SAME =
  "sh bash cat mkdir rmdir rm cp mv ln chmod env node npm git grep awk tr head tail sleep touch id wc which true false basename dirname".split(
    " ",
  );
/** Programs of another family. What only GNU's take is refused, and told. */
const OTHER = ["readlink", "sed", "stat", "date", "ls", "mktemp", "du"];

const BSD = `#!/bin/sh
refuse() { echo "\${0##*/} $*" >> "$(dirname "$0")/../reaches"; echo "\${0##*/}: illegal option" >&2; exit 1; }
case "\${0##*/} $*" in
  *" --"[a-z]* | "readlink "*-[fem]* | "stat "*-c* | "date "*-d* | "date "*%N*) refuse "$@" ;;
esac
# BSD's takes the suffix as a word of its own.
[ "\${0##*/}" = sed ] && [ "$1" = -i ] && { [ -z "$2" ] || refuse "$@"; }
exec /usr/bin/"\${0##*/}" "$@"
`;

/** ps(1) of macOS asks the kernel, not /proc. `-o stat= -o lstart= -p PID` only. @param {string} folder */
const psOf = (folder) => `#!/bin/sh
[ "$1 $2 $3 $4 $5" = "-o stat= -o lstart= -p" ] || { echo "ps $*" >> ${folder}/reaches; exit 1; }
stat=$(/usr/bin/cat "${folder}/kernel/$6/stat" 2> /dev/null) || exit 1
set -- $(echo "$stat" | /usr/bin/sed 's/.*) //')
begin=$(/usr/bin/awk '/^btime/ { print $2 }' ${folder}/kernel/stat)
echo "$1 $(/usr/bin/date -d "@$((begin + \${20} / 100))" '+%a %b %e %T %Y')"
`;

/** launchd of a user who is logged in: 'print' of the domain answers, a service is loaded after 'bootstrap'. */
const LAUNCHCTL = `#!/bin/sh
loaded=$(dirname "$0")/../loaded
echo "$*" >> "$(dirname "$0")/../launchctl"
case "$1 $2" in
  "print "*/dev.substrate.broker) [ -e "$loaded" ] && echo "	pid = 1" ;;
  "print "*) ;;
  "bootstrap "*) touch "$loaded" ;;
  "bootout "*) rm -f "$loaded" ;;
esac
`;

/** In a mount namespace of its own, which ends with the command. The words after '--' are the command. */
const HIDING = `kernel=$1; shift
mount --bind /proc "$kernel" && mount --bind "$kernel/../bin/ps" /bin/ps && mount -t tmpfs none /proc && mount -t tmpfs none /sys || exit 1
for folder in /usr/sbin /usr/local/sbin /var/lib/substrate; do [ -d "$folder" ] && { mount -t tmpfs none "$folder" || exit 1; }; done
exec "$@"
`;

/** @typedef {{ code: number | null, out: string, err: string }} Ended */

export class MacPlace {
  /** @param {import("../accounts.mjs").Account} account */
  constructor(account) {
    this.account = account;
    this.folder = join(account.home, "lane");
    this.checkout = join(account.home, "substrate");
    this.project = join(account.home, "app");
  }

  /** Root only: makes a user, whose home holds the checkout, the programs and a project. */
  static make() {
    const place = new MacPlace(addUser());
    for (const each of ["bin", "kernel", "coverage", "tmp"])
      mkdirSync(join(place.folder, each), { recursive: true });
    copyCheckout(place.checkout);
    packagesOfMacOs(place.checkout);
    mkdirSync(place.project);
    execFileSync("git", ["init", "--quiet", place.project]);
    copyFileSync(fileURLToPath(new URL("preload.cjs", import.meta.url)), join(place.folder, "preload.cjs"));
    place.#programs();
    const { name, home } = place.account;
    execFileSync("chown", ["-Rh", `${name}:`, home]);
    return place;
  }

  #programs() {
    const at = (/** @type {string} */ name) => join(this.folder, "bin", name);
    for (const name of SAME) {
      const found = name === "node" ? process.execPath : findProgram(name);
      if (found !== undefined) symlinkSync(found, at(name));
    }
    const substrate = `#!/bin/sh\nexec node "${join(this.checkout, "api/bin/substrate.mjs")}" "$@"\n`;
    const texts = {
      substrate,
      ps: psOf(this.folder),
      launchctl: LAUNCHCTL,
      uname: "#!/bin/sh\necho Darwin\n",
    };
    for (const name of OTHER) writeFileSync(at(name), BSD, { mode: 0o755 });
    for (const [name, text] of Object.entries(texts)) writeFileSync(at(name), text, { mode: 0o755 });
  }

  /**
   * Runs a script with sh as the user.
   * @param {string} script
   * @param {string} [cwd]
   * @returns {Ended}
   */
  run(script, cwd = this.project) {
    const variables = {
      PATH: join(this.folder, "bin"),
      TMPDIR: join(this.folder, "tmp"),
      NODE_OPTIONS: `--require=${join(this.folder, "preload.cjs")}`,
      NODE_V8_COVERAGE: join(this.folder, "coverage"),
    };
    const words = [...asUser(this.account, variables), "/bin/sh", "-c", script];
    const hiding = [
      ..."--mount --propagation private -- /bin/sh -c".split(" "),
      HIDING,
      "sh",
      join(this.folder, "kernel"),
    ];
    const { status, stdout, stderr } = spawnSync("unshare", [...hiding, ...words], {
      cwd,
      encoding: "utf8",
      timeout: 120_000,
    });
    return { code: status, out: stdout, err: stderr };
  }

  /** @param {string} name of a file that the place's programs write @returns {string} */
  told(name) {
    const path = join(this.folder, name);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  /** @param {string} name @param {string} text what stays of it */
  forget(name, text) {
    writeFileSync(join(this.folder, name), text);
  }

  /** The sources in the bundle's parts that any of the place's Nodes loaded. @returns {ReadonlySet<string>} */
  loaded() {
    const reports = readdirSync(join(this.folder, "coverage")).map((name) =>
      JSON.parse(readFileSync(join(this.folder, "coverage", name), "utf8")),
    );
    const urls = reports.flatMap(({ result }) => result.map((/** @type {{ url: string }} */ { url }) => url));
    const parts = new Set(urls.filter((url) => url.startsWith(`file://${this.checkout}/.build/`)));
    const texts = [...parts].map((url) => readFileSync(fileURLToPath(url), "utf8"));
    return new Set(
      texts.flatMap((text) => [...text.matchAll(/^\/\/ (\S+\.ts)$/gm)].map(([, path]) => path ?? "")),
    );
  }

  remove() {
    removeUser(this.account);
  }
}

/** node_modules as npm installs it on macOS, but with Linux's programs inside: nothing else runs here. @param {string} checkout */
function packagesOfMacOs(checkout) {
  const folder = join(checkout, "node_modules");
  const file = join(folder, ".package-lock.json");
  const lock = JSON.parse(readFileSync(file, "utf8"));
  const onMac = (/** @type {string} */ text) => text.replace("linux", "darwin").replace(/-(gnu|musl)$/, "");
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (!entry.os?.includes("linux")) continue;
    delete lock.packages[path];
    lock.packages[onMac(path)] = { ...entry, os: ["darwin"], libc: undefined };
    renameSync(join(checkout, path), join(checkout, onMac(path)));
  }
  writeFileSync(file, JSON.stringify(lock));
}
