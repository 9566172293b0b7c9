import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { HomeFolder } from "../support/users/folders.ts";

function policyFor(folder: string, mode: string): string {
  return `
id: default
name: Fresh
mode: ${mode}
fs:
  deny_read: ["${folder}/.ssh", "${folder}/later/key"]
  scratch: ["${folder}/scratch/**"]
`;
}

/** Names in one folder that a world has looked up before the host changes each of them. */
const NAMES = ["in-place", "replaced", "removed", "made", "linked", "folder/file", "newfolder/file"];

const CASES = actors().flatMap((actor) => [
  { actor, kind: actor.kind, mode: "enforce", below: "" },
  { actor, kind: actor.kind, mode: "enforce", below: "scratch" },
  { actor, kind: actor.kind, mode: "observe", below: "deep/er" },
]);

describe.each(CASES)("a warm world, as $kind in $mode mode, below '$below'", ({ actor, mode, below }) => {
  let home: HomeFolder;
  let broker: TestBroker;
  let world: string;
  beforeAll(async () => {
    home = new HomeFolder(actor);
    home.write(".ssh/id", "private key");
    for (const name of ["in-place", "replaced", "removed", "linked", "folder/file"])
      home.write(join(below, name), "old");
    broker = await TestBroker.start(actor, {
      policies: { default: policyFor(home.path, mode) },
      // The project lies in the same tree: the folders above it are in use as long as the world lives.
      folder: join(home.path),
    });
    world = (await broker.run("true")).world_id;
  });
  afterAll(async () => {
    await broker.stop();
    home.remove();
  });

  function path(name: string): string {
    return join(home.path, below, name);
  }

  /** What a command sees, and that it is still the same world. */
  async function seen(): Promise<Readonly<Record<string, string>>> {
    const files = NAMES.map((name) => `echo "${name}=$(cat ${path(name)} 2>/dev/null)"`).join("; ");
    const ran = await broker.run(`${files}; echo "names=$(ls ${path(".")} | tr '\\n' ' ')"`);
    expect(ran.world_id).toBe(world);
    return Object.fromEntries(
      ran.stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.split("=") as [string, string]),
    );
  }

  function change(): void {
    writeFileSync(path("in-place"), "new");
    replace("replaced", "new");
    unlinkSync(path("removed"));
    writeFileSync(path("made"), "new");
    unlinkSync(path("linked"));
    symlinkSync("in-place", path("linked"));
    mkdirSync(path("other"));
    writeFileSync(path("other/file"), "new");
    renameSync(path("folder"), path("aside"));
    renameSync(path("other"), path("folder"));
    mkdirSync(path("newfolder"));
    writeFileSync(path("newfolder/file"), "new");
  }

  function replace(name: string, text: string): void {
    writeFileSync(path(`${name}.new`), text);
    renameSync(path(`${name}.new`), path(name));
  }

  test("shows what the host has changed in any way to its next command", async () => {
    expect(await seen()).toMatchObject({ "in-place": "old", replaced: "old", removed: "old", made: "" });
    change();
    const after = await seen();
    expect(after).toMatchObject({
      "in-place": "new",
      replaced: "new",
      removed: "",
      made: "new",
      linked: "new",
      "folder/file": "new",
      "newfolder/file": "new",
    });
    expect(after["names"]?.trim().split(" ")).toEqual(expect.arrayContaining(["aside", "made", "newfolder"]));
    expect(after["names"]?.split(" ")).not.toContain("removed");
  });

  test("does so while another command of it runs, and hides what is denied all the same", async () => {
    const kept = await broker.run({
      cmd: `cd ${home.path} && (while :; do cat ${path("in-place")} later/key; ls . .ssh; sleep 0.05; done >/dev/null 2>&1 &)`,
      background: "keep",
    });
    expect(kept.world_id).toBe(world);
    for (const text of ["once", "twice", "thrice"]) {
      replace("replaced", text);
      home.write("later/key", `key ${text}`);
      const ran = await broker.run(
        `cat ${path("replaced")} ${home.path}/.ssh/id ${home.path}/later/key; true`,
      );
      expect(ran).toMatchObject({ world_id: world, stdout: text });
      rmSync(join(home.path, "later"), { recursive: true });
    }
  });
});

/** The mount points, other than the root, of a process. */
function mountPoints(pid: number | undefined): readonly string[] {
  const rows = readFileSync(`/proc/${pid}/mountinfo`, "utf8").trimEnd().split("\n");
  return rows.map((row) => row.split(" ")[4] ?? "/").filter((place) => place !== "/");
}

/** The kernel makes no overlay over an ordinary user's root: there each tree is a file system of its own. */
describe.each(actors().filter(({ uid }) => uid === 0))(
  "trees in the mount of the host's root, as $kind",
  (actor) => {
    test("are one file system, so that one is refreshed after each command", async () => {
      // In a mount namespace of its own: files that run meanwhile mount folders of the same disk.
      const broker = await TestBroker.start(actor, { within: ["unshare", "--mount"] });
      try {
        const others = mountPoints(broker.process.pid);
        const { stdout } = await broker.run("cat /proc/self/mountinfo");
        const rows = stdout
          .split("\n")
          .map((row) => row.split(" "))
          .filter((row) => row.includes("overlay") && row[5]?.startsWith("ro,") === true)
          .map(([, , device, , target = ""]) => ({ device, target }))
          .filter(({ target }) => !others.some((place) => `${target}/`.startsWith(`${place}/`)));
        expect(rows.length).toBeGreaterThan(1);
        expect(new Set(rows.map(({ device }) => device)).size).toBe(1);
      } finally {
        await broker.stop();
      }
    });
  },
);
