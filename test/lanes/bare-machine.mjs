// npm run test:bare-machine [FILE…]: the tests that name python3, perl, nft, podman or docker, on a machine without them.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CHECKOUT } from "../../api/setup/checkout.mjs";
import { journey } from "../../api/setup/journey.mjs";
import { findProgram } from "../../api/setup/programs.mjs";
import { EVERYTHING, setUp } from "../../api/setup/set-up.mjs";
import { VITEST } from "../../api/setup/vitest.mjs";
import { filesOf } from "../check/tree.mjs";

const FOLDERS = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/** python3.11 and perl5.36.0 are programs too. */
const HIDDEN = /^(python3(\.\d+)?|perl(\d[\d.]*)?|nft|podman|docker)$/;
/** What names one, or stands on the tests' internet, whose clients are Python. */
const CONCERNED = /\b(python3|perl|nft|podman|docker)\b|NetworkPlace|TestInternet/;

/** Tests of the reader have the programs' names in texts alone, and a virtual machine is no barer for what is hidden here. */
const UNCONCERNED = [
  "test/machine/",
  "test/unit/broker/policy/",
  "test/unit/broker/policy-cases/",
  "test/pins/",
];

/** Minutes each, of which one row or two stand on a python3 or perl. */
const LEFT_OUT = ["integration/screens", "security/clones-at-once", "security/exec-gate"].map(
  (name) => `test/${name}.test.ts`,
);

const files = process.argv.slice(2);

await journey(async () => {
  if (process.getuid?.() !== 0 || findProgram("unshare") === undefined) {
    console.log("SKIP lane: a bare machine — hiding programs takes root and unshare(1)");
    return 0;
  }
  // Before anything is hidden: what is missing afterwards was not to be installed.
  await setUp(EVERYTHING);
  const programs = hidden();
  console.log(`lane: without ${programs.join(" ")}`);
  const folder = mkdtempSync(join(tmpdir(), "substrate-bare-"));
  try {
    const nothing = join(folder, "nothing");
    writeFileSync(nothing, "", { mode: 0o644 });
    return run(nothing, programs, files.length > 0 ? files : concerned());
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** An empty file that nobody may run lies over each of them, in a mount namespace that ends with the tests. */
function run(/** @type {string} */ nothing, /** @type {string[]} */ programs, /** @type {string[]} */ tests) {
  const script =
    'nothing=$1; shift; while [ "$1" != -- ]; do mount --bind "$nothing" "$1" || exit; shift; done; shift; exec "$@"';
  const hiding = ["--mount", "--propagation", "private", "--", "/bin/sh", "-c", script, "sh", nothing];
  const words = [...hiding, ...programs, "--", process.execPath, ...VITEST, ...tests];
  // A person's own python3 (pyenv, conda) lies elsewhere on PATH.
  const path = [dirname(process.execPath), ...FOLDERS].join(":");
  const env = { ...process.env, PATH: path, SUBSTRATE_TEST_ACTORS: "self" };
  return spawnSync("unshare", words, { cwd: CHECKOUT, env, stdio: "inherit" }).status ?? 1;
}

/** @returns {string[]} the programs themselves, behind all links */
function hidden() {
  const paths = FOLDERS.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => HIDDEN.test(name))
      .map((name) => realpathSync(join(folder, name))),
  );
  return [...new Set(paths)];
}

function concerned() {
  return filesOf(CHECKOUT, [".test.ts"]).filter(
    (path) =>
      !UNCONCERNED.some((folder) => path.startsWith(folder)) &&
      !LEFT_OUT.includes(path) &&
      CONCERNED.test(readFileSync(join(CHECKOUT, path), "utf8")),
  );
}
