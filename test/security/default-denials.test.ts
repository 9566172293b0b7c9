import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Actor, actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { GIT, hostGit } from "../support/git/git.ts";

const SECRETS = [
  ".ssh/id_ed25519",
  ".netrc",
  ".config/gh/hosts.yml",
  ".git-credentials",
  ".kube/config",
] as const;

/** Neighbours of what is denied: by their prefix, by their folder. */
const PLAIN = [".sshfoo/id", ".netrcx", ".config/ghost/file", ".cargo/config.toml"] as const;

function shadowNames(): number {
  return readdirSync("/etc").filter((name) => name.includes("shadow")).length;
}

/** The user id that a user namespace shows for every id without a mapping, root among them. */
function overflowUid(): string {
  return readFileSync("/proc/sys/fs/overflowuid", "utf8").trim();
}

async function withRepository(
  actor: Actor,
  policy: string,
  use: (broker: TestBroker) => Promise<void>,
): Promise<void> {
  const broker = await TestBroker.start(actor, { policies: { default: `id: default\nname: x\n${policy}` } });
  try {
    hostGit(actor, broker.project, "init", "-q");
    broker.write(
      join(broker.project, "package.json"),
      '{"name":"x","scripts":{"test":"echo tested > result"}}',
    );
    hostGit(actor, broker.project, "add", ".");
    hostGit(actor, broker.project, "commit", "-qm", "first");
    await use(broker);
  } finally {
    await broker.stop();
  }
}

describe.each(actors())("what a policy without deny lists denies, as $kind", (actor) => {
  test.each(["observe", "enforce"])("in %s mode no command gives git a program to run", async (mode) => {
    await withRepository(actor, `mode: ${mode}\n`, async (broker) => {
      const git = join(broker.project, ".git");
      const config = readFileSync(join(git, "config"), "utf8");
      await broker.run(
        "echo x > .git/hooks/pre-commit; git config core.fsmonitor x; echo x >> .git/config; mv .git/hooks .git/h; mv .git .g; rm -rf .git/hooks .git/config; true",
      );
      expect(existsSync(join(git, "hooks/pre-commit"))).toBe(false);
      expect(readFileSync(join(git, "config"), "utf8")).toBe(config);
    });
  });

  test.each(["observe", "enforce"])("in %s mode commits, branches and tests go on as ever", async (mode) => {
    await withRepository(actor, `mode: ${mode}\n`, async (broker) => {
      const { project } = broker;
      expect(await broker.run("npm test")).toMatchObject({ exit: 0 });
      expect(readFileSync(join(project, "result"), "utf8")).toBe("tested\n");
      const cmd = `git checkout -q -b topic && git add . && ${GIT} commit -qm second && git checkout -q - && git merge -q topic && git tag v1 && git status --porcelain`;
      expect(await broker.run(cmd)).toMatchObject({ exit: 0, stdout: "" });
      expect(hostGit(actor, project, "log", "--format=%s", "v1")).toBe("second\nfirst");
    });
  });

  test("a list that is there means what it says, an empty one nothing", async () => {
    await withRepository(actor, "mode: enforce\nfs:\n  deny_write: []\n", async (broker) => {
      expect(await broker.run("git config a.b c && echo x > .git/hooks/mine")).toMatchObject({ exit: 0 });
      expect(hostGit(actor, broker.project, "config", "a.b")).toBe("c");
      expect(existsSync(join(broker.project, ".git/hooks/mine"))).toBe(true);
    });
  });

  test("no command reads the password hashes of the machine, and every command reads its users", async () => {
    await withRepository(actor, "mode: observe\n", async (broker) => {
      const cmd =
        "cat /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- | wc -c; grep -c ^root: /etc/passwd";
      expect(await broker.run(cmd)).toMatchObject({ exit: 0, stdout: "0\n1\n" });
      // An ordinary user's world leaves the names to their modes: /etc stays root's there, as on the host.
      const { stdout } = await broker.run("ls /etc | grep -c shadow; stat -c %u /etc");
      expect(stdout).toBe(actor.uid === 0 ? "0\n0\n" : `${shadowNames()}\n${overflowUid()}\n`);
      expect(await broker.run("getent passwd root | cut -d: -f1; id -un")).toMatchObject({
        exit: 0,
        stdout: `root\n${actor.name}\n`,
      });
    });
    // The twin: where the list denies nothing, the modes alone decide.
    await withRepository(actor, "fs:\n  deny_read: []\n", async (broker) => {
      const { exit } = await broker.run("head -c 1 /etc/shadow > /dev/null");
      expect(exit === 0).toBe(actor.uid === 0);
    });
  });

  test("no command reads credentials in the home folder, and neighbours of the same prefix are read", async () => {
    const files = [...SECRETS, ...PLAIN].map((path) => join(actor.home, path));
    const here = files.map((path) => `cat ~${path.slice(actor.home.length)}`).join("; ");
    const made: string[] = [];
    try {
      for (const path of files) made.push(...writeOwn(actor, path));
      await withRepository(actor, "mode: observe\n", async (broker) => {
        expect((await broker.run(here)).stdout).toBe(
          PLAIN.map((path) => `of ${join(actor.home, path)}\n`).join(""),
        );
      });
      await withRepository(actor, "fs:\n  deny_read: []\n", async (broker) => {
        expect((await broker.run(here)).stdout).toBe(files.map((path) => `of ${path}\n`).join(""));
      });
    } finally {
      for (const path of made) rmSync(path, { recursive: true, force: true });
    }
  });
});

/** Makes a file that is not there yet. Returns what it made, each as its uppermost part: nothing else may be removed. */
function writeOwn(actor: Actor, path: string): readonly string[] {
  if (existsSync(path)) throw new Error(`Expected no '${path}' in a home folder of the suite`);
  const folder = mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `of ${path}\n`, { flag: "wx" });
  for (let at = path; at !== actor.home; at = dirname(at)) chownSync(at, actor.uid, actor.gid);
  return [folder ?? path];
}
