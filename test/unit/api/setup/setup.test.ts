import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireNode } from "../../../../api/setup/node-version.mjs";
import { isInstalled } from "../../../../api/setup/packages.mjs";
import { run as runProgram } from "../../../../api/setup/programs.mjs";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
let checkout: string;

beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), "substrate-setup-"));
  cpSync(join(ROOT, "api/setup"), join(checkout, "api/setup"), { recursive: true });
  cpSync(join(ROOT, "api/bin"), join(checkout, "api/bin"), { recursive: true });
});

afterEach(() => {
  rmSync(checkout, { recursive: true, force: true });
});

test.each(["20.19.0", "20.20.2", "22.0.0", "24.1.0"])("Node %s is new enough", (version) => {
  expect(() => requireNode(version)).not.toThrow();
});

test.each(["20.18.3", "18.20.0", "4.9.1"])(
  "Node %s is refused with the version that is wanted",
  (version) => {
    expect(() => requireNode(version)).toThrow(`Substrate needs Node 20.19 or newer, this is '${version}'`);
  },
);

describe("packages that something else installed", () => {
  const WANTED = {
    "": {},
    "node_modules/a": { version: "1.0.0" },
    "node_modules/b": { version: "2.0.0", optional: true },
  };

  test("are used when every version is the lockfile's", () => {
    expect(isInstalled(WANTED, { "node_modules/a": { version: "1.0.0" } })).toBe(true);
  });

  test.each([
    ["one is missing", {}],
    ["one has another version", { "node_modules/a": { version: "1.0.1" } }],
    ["one is for another machine", { "node_modules/a": { version: "1.0.0", os: ["plan9"] } }],
  ])("are not used when %s", (_, installed) => {
    expect(isInstalled(WANTED, installed)).toBe(false);
  });
});

describe("a lock of a checkout", () => {
  const HOLDER = `
    import { withLock } from "./api/setup/lock.mjs";
    await withLock(async () => { console.log("held"); await new Promise(() => setInterval(() => {}, 1000)); });`;
  const NEXT =
    'import { withLock } from "./api/setup/lock.mjs"; await withLock(async () => console.log("mine"));';

  test("is waited for, and is free at once when its holder is killed", async () => {
    const holder = script(HOLDER);
    await once(holder.stdout, "data");
    const next = script(NEXT);
    let said = "";
    next.stdout.on("data", (bytes: Buffer) => {
      said += bytes.toString();
      if (said.includes("waiting")) holder.kill("SIGKILL");
    });
    await once(next, "close");
    expect(said).toBe("set-up: waiting for another set-up of this checkout to end\nmine\n");
  });
});

describe("what is left for a person to do", () => {
  const steps = (others: string) => `
    import { setUp } from "./api/setup/set-up.mjs";
    const tools = { isCurrent: () => true, make: async () => {}, advice: () => "nftables missing; run: apt" };
    await setUp([tools, ${others}]);`;

  test("is said in one line after a set-up that had other things to do", () => {
    const other = '{ isCurrent: () => false, make: async () => console.log("made") }';
    expect(run(steps(other))).toBe("made\nset-up: nftables missing; run: apt\n");
  });

  test("is said in one line by a set-up that had nothing to do", () => {
    const other = "{ isCurrent: () => true, make: async () => {} }";
    expect(run(steps(other))).toBe("set-up: nothing to do, but nftables missing; run: apt\n");
  });
});

test("a program that takes too long is asked with SIGTERM where that is wanted, and may put things in order", async () => {
  const tidy = "trap 'echo in order; exit 3' TERM; while :; do sleep 0.05; done";
  const ended = await runProgram(["sh", "-c", tidy], { timeoutMs: 500, killSignal: "SIGTERM" });
  expect(ended).toEqual({ ok: false, ending: "exit code 3", tail: "in order\n" });
});

test("a checkout that is not built answers 125 and says what to run", () => {
  const launched = spawnSync(process.execPath, [join(checkout, "api/bin/substrate.mjs"), "exec"], {
    encoding: "utf8",
  });
  expect(launched.status).toBe(125);
  expect(launched.stderr).toBe(`Substrate is not built yet. Run 'npm start' in '${checkout}'\n`);
});

test("a second build does nothing and says so", () => {
  mkdirSync(join(checkout, "world/native"), { recursive: true });
  writeFileSync(join(checkout, "world/native/main.c"), "int main(void) { return 0; }\n");
  const steps = `
    import { setUp } from "./api/setup/set-up.mjs";
    import { init } from "./api/setup/native.mjs";
    await setUp([init]);`;
  expect(run(steps)).toBe("set-up: built .build/substrate-init\n");
  expect(run(steps)).toBe("set-up: nothing to do\n");
  writeFileSync(join(checkout, "world/native/main.c"), "int main(void) { return 1; }\n");
  expect(run(steps)).toBe("set-up: built .build/substrate-init\n");
});

function run(code: string): string {
  return spawnSync(process.execPath, ["--input-type=module", "-e", code], { cwd: checkout, encoding: "utf8" })
    .stdout;
}

function script(code: string) {
  return spawn(process.execPath, ["--input-type=module", "-e", code], {
    cwd: checkout,
    stdio: ["ignore", "pipe", "inherit"],
  });
}
