import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { needs } from "../support/run/needs.ts";

/** `H` stands for a folder of the home, which no world may write. */
const POLICY = `
id: default
name: Links
mode: enforce
fs:
  deny_read: ["link-to-key", "dangling", "later/key", "H/way/key", "H/nowhere/key", "keys", "H/.ssh"]
  deny_write: ["sealed", "H/cache/sealed", "later/sealed"]
  write: ["$PROJECT/**", "H/cache/**"]
commands:
  isolated: ["touch *"]
`;

describe.each(actors())("links and renames, as $kind", (actor) => {
  let home: HomeFolder;
  let broker: TestBroker;
  const at = (name: string): string => join(broker.project, name);
  beforeAll(async () => {
    home = new HomeFolder(actor);
    home.write("outside/key", "TOKEN outside");
    home.write(".ssh/key", "TOKEN ssh");
    home.write(".sshfoo/key", "neighbour");
    home.write("cache/sealed", "sealed");
    symlinkSync(join(home.path, "outside"), join(home.path, "way"));
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY.replaceAll("H/", `${home.path}/`) },
    });
    broker.write(at("real-key"), "TOKEN real");
    broker.write(at("keys/one"), "TOKEN keys");
    broker.write(at("keyss/one"), "neighbour");
    broker.write(at("sealed"), "sealed");
    symlinkSync("real-key", at("link-to-key"));
    symlinkSync("not-there-yet", at("dangling"));
  });
  afterAll(async () => {
    await broker.stop();
    home.remove();
  });

  test("a denied name that is a link hides what it leads to, also when its target comes later; other links lead on", async () => {
    const { stdout } = await broker.run(
      "cat link-to-key real-key; echo TOKEN > not-there-yet; cat dangling; rm not-there-yet; ln -s keyss/one fine; cat fine; rm fine",
    );
    expect(stdout).toBe("neighbour");
  });

  test("a link above a denied name hides it where it really is; the neighbours of that are read", async () => {
    home.write("outside/plain", "plain");
    const { stdout } = await broker.run(
      `cat ${home.path}/way/key ${home.path}/outside/key ${home.path}/way/plain; true`,
    );
    expect(stdout).toBe("plain");
  });

  test("a link that a command makes in the place of a missing parent opens nothing", async () => {
    await broker.run(
      `ln -s ${home.path}/outside later; cat later/key; echo x > later/sealed; rm later; true`,
    );
    expect(existsSync(join(home.path, "outside/sealed"))).toBe(false);
    const { stdout } = await broker.run(
      `ln -s ${home.path}/.ssh to; ln -s to/key leaf; cat to/key leaf; cat keyss/one; true`,
    );
    expect(stdout).toBe("neighbour");
    await broker.run("mkdir later && echo x > later/sealed && echo kept > later/kept; true");
    expect(readdirSync(at("later"))).toEqual(["kept"]);
  });

  test("neighbours of the same beginning are no denied names, and those are not their neighbours", async () => {
    const { stdout } = await broker.run(
      `cat keys/one keyss/one ${home.path}/.ssh/key ${home.path}/.sshfoo/key; true`,
    );
    expect(stdout).toBe("neighbourneighbour");
  });

  test("renames, exchanges and whiteouts by number move nothing onto or away from what is sealed; they work elsewhere", async () => {
    needs("python3");
    const script = [
      "import ctypes, os",
      "c = ctypes.CDLL(None)",
      "def move(a, b, flags): return c.renameat2(-100, a.encode(), -100, b.encode(), flags)",
      "open('mine', 'w').write('mine'); open('other', 'w').write('other')",
      `for name in ['sealed', '${home.path}/cache/sealed', 'keys', 'link-to-key']:`,
      "  for flags in [0, 1, 2, 4]:",
      "    for a, b in [('mine', name), (name, 'moved'), (name, 'mine')]: assert move(a, b, flags) != 0, (a, b, flags)",
      "  try: os.link(name, 'hard')",
      "  except OSError: pass",
      "  else: raise SystemExit('linked ' + name)",
      "assert move('mine', 'other', 2) == 0; print(open('mine').read())",
    ].join("\n");
    broker.write(at("move.py"), script);
    expect(await broker.run("python3 move.py")).toMatchObject({ stdout: "other\n", exit: 0 });
    expect(readFileSync(at("sealed"), "utf8")).toBe("sealed");
    expect(readFileSync(join(home.path, "cache/sealed"), "utf8")).toBe("sealed");
  });

  test("hard links into the project are not made from outside of it, and inside of it they are", async () => {
    await broker.run(
      `ln ${home.path}/outside/key hard; ln ${home.path}/cache/sealed hard2; echo x > hard; true`,
    );
    expect(readFileSync(join(home.path, "outside/key"), "utf8")).toBe("TOKEN outside");
    expect(lstatSync(join(home.path, "outside/key")).nlink).toBe(1);
    expect(
      (await broker.run("rm -f hard hard2; echo a > one; ln one two; echo b >> two; cat one")).stdout,
    ).toBe("a\nb\n");
  });

  test("nothing bound read-only is remounted writable, unmounted, or bound anew", async () => {
    const { stdout } = await broker.run(
      `for m in / /proc/sys /usr sealed ${home.path}; do mount -o remount,bind,rw $m; mount -o remount,rw $m; umount -l $m; mount --bind . $m; done 2>/dev/null; echo x > sealed; echo x > ${home.path}/stray; cat keys/one; echo go on`,
    );
    expect(stdout).toBe("go on\n");
    expect(readFileSync(at("sealed"), "utf8")).toBe("sealed");
    expect(existsSync(join(home.path, "stray"))).toBe(false);
  });

  test("the host's /tmp and /dev/shm are not the world's in either direction; each command of a world finds its own", async () => {
    const files = ["/tmp", "/var/tmp", "/dev/shm"].map(
      (folder) => `${folder}/substrate-test-${process.pid}-${actor.uid}`,
    );
    try {
      for (const file of files) writeFileSync(file, "TOKEN", { mode: 0o666 });
      const { stdout } = await broker.run(
        `cat ${files.join(" ")}; for f in ${files.join(" ")}; do echo own > $f; ln -s /etc/passwd $f.link; done; true`,
      );
      expect(stdout).toBe("");
      for (const file of files) expect(readFileSync(file, "utf8")).toBe("TOKEN");
      expect((await broker.run(`cat ${files.join(" ")}`)).stdout).toBe("own\nown\nown\n");
    } finally {
      for (const file of files) rmSync(file, { force: true });
    }
  });

  test("masking changes no inode, no time and no name in the person's trees, before, during and after a world", async () => {
    mkdirSync(at("quiet"), { recursive: true });
    const trees = (): readonly string[] => [...tree(broker.project), ...tree(home.path)];
    await broker.operator("POST", "/v1/world/restart", {
      agent_id: "test",
      cwd: broker.project,
      force: true,
    });
    const before = trees();
    const running = broker.run({ cmd: "cat keys/one sealed; sleep 0.5; true", agent_id: "quiet" });
    const held = await broker.run({
      cmd: "touch held; rm -rf keyss; echo x > keys/two; true",
      agent_id: "quiet",
    });
    expect(held.fs_diff?.writes).toEqual(["held"]);
    expect(trees()).toEqual(before);
    await running;
    await broker.operator("POST", "/v1/world/restart", {
      agent_id: "quiet",
      cwd: broker.project,
      force: true,
    });
    expect(trees()).toEqual(before);
  });
});

function tree(folder: string): readonly string[] {
  return ["", ...readdirSync(folder, { recursive: true }).map(String)].sort().map((name) => {
    const { mode, ino, mtimeNs, ctimeNs, nlink, size } = lstatSync(join(folder, name), { bigint: true });
    return `${name} ${mode} ${ino} ${mtimeNs} ${ctimeNs} ${nlink} ${size}`;
  });
}
