import { existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker, eventually, settings } from "../support/broker/broker.ts";
import { actorsWith, needs } from "../support/run/needs.ts";
import { skippedTest } from "../support/run/skips.ts";
import { actors, spawnAs } from "../support/users/users.ts";

const POLICY = `
id: default
name: Denied names
mode: enforce
fs:
  deny_read: ["**/.env", "**/secrets", "*.pem"]
  deny_write: ["$PROJECT/.git/hooks", ".git/config", "**/*.lock.json"]
commands:
  isolated: ["isolated-*"]
`;

describe.each(actors())("denied names in the project, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (name: string): string => join(broker.project, name);
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    broker.write(at(".env"), "TOKEN=one");
    broker.write(at("app/.env"), "TOKEN=two");
    broker.write(at("app/.envrc"), "neighbour");
    broker.write(at("app/deep/secrets/key"), "TOKEN=three");
    broker.write(at("cert.pem"), "TOKEN=four");
    broker.write(at("app/cert.pem"), "not at the top");
    broker.write(at(".git/config"), "[core]\n");
    broker.write(at("pin.lock.json"), "{}");
    broker.write(at("plain.json"), "{}");
  });
  afterAll(() => broker.stop());

  async function denied(name: string): Promise<boolean> {
    const read = await broker.run(`cat ${name}; find . -type f -exec cat {} + ; true`);
    return !read.stdout.includes("TOKEN");
  }

  test("are unreadable at every depth that the pattern names, and their neighbours are not", async () => {
    for (const name of [".env", "app/.env", "app/deep/secrets/key", "cert.pem", "/proc/self/cwd/app/.env"])
      expect(await denied(name)).toBe(true);
    expect((await broker.run("cat app/.envrc app/cert.pem")).stdout).toBe("neighbournot at the top");
  });

  test("cannot be reached by a link, a hard link, a rename, an exchange, or a renamed parent; other files can", async () => {
    needs("python3");
    const tries = await broker.run(
      [
        "ln -s .env sym; cat sym",
        "ln .env hard; cat hard",
        "mv .env moved; cat moved",
        "mv app elsewhere; cat elsewhere/.env",
        "mv app/deep elsewhere; cat elsewhere/secrets/key",
        `python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b".env", -100, b"plain.json", 2)'; cat plain.json`,
        "cp -r app copy; cat copy/.env copy/deep/secrets/key",
        "tar cf - . 2>/dev/null | tr -d '\\0'",
        "true",
      ].join("; "),
    );
    expect(tries.stdout).not.toContain("TOKEN");
    expect(readFileSync(at(".env"), "utf8")).toBe("TOKEN=one");
    expect(readFileSync(at("app/.env"), "utf8")).toBe("TOKEN=two");
    expect(readFileSync(at("app/deep/secrets/key"), "utf8")).toBe("TOKEN=three");
    await broker.run("mkdir other && mv other renamed && rmdir renamed; rm -rf copy sym hard");
    expect(existsSync(at("renamed"))).toBe(false);
  });

  test("that may only be read cannot be written, replaced or moved, and stay as they are", async () => {
    await broker.run(
      "echo x >> pin.lock.json; mv plain.json pin.lock.json; rm -f pin.lock.json; echo evil > .git/config; rm -rf .git; mv .git git2; true",
    );
    expect(readFileSync(at("pin.lock.json"), "utf8")).toBe("{}");
    expect(readFileSync(at(".git/config"), "utf8")).toBe("[core]\n");
    expect((await broker.run("cat pin.lock.json")).stdout).toBe("{}");
  });

  test("that a command makes are taken out before its reply is there, and reported where they lie", async () => {
    const ran = await broker.run(
      "mkdir -p .git/hooks new/folder && echo evil > .git/hooks/pre-commit; echo x > new/folder/.env; echo kept > new/folder/kept",
    );
    expect(existsSync(at(".git/hooks"))).toBe(false);
    expect(existsSync(at("new/folder/.env"))).toBe(false);
    expect(readFileSync(at("new/folder/kept"), "utf8")).toBe("kept\n");
    const violations = broker
      .spans()
      .filter((span) => span.event_type === "violation" && span.parent_span === ran.span_id);
    expect(violations.map((span) => span.violation)).toEqual(
      expect.arrayContaining([
        // A git folder that was there before: the call itself was refused.
        { kind: "write", subject: at(".git/hooks") },
        { kind: "denied_name", subject: at("new/folder/.env") },
      ]),
    );
    const quarantine = join(broker.home, "quarantine");
    const names = readdirSync(quarantine).flatMap((id) => readdirSync(join(quarantine, id)));
    expect(names).toEqual(expect.arrayContaining([".env"]));
  });

  test("that a command moves into place, deep inside a folder, are taken out too", async () => {
    await broker.run(
      "mkdir -p a/b; echo x > a/b/env; mv a/b/env a/b/.env; mkdir -p c/d; echo y > c/d/secrets; mv c moved",
    );
    expect(existsSync(at("a/b/.env"))).toBe(false);
    expect(existsSync(at("moved/d/secrets"))).toBe(false);
    expect(existsSync(at("moved/d"))).toBe(true);
  });

  test("that the host makes or replaces between commands are denied at once and stay with the person", async () => {
    const { world_id } = await broker.run("true");
    broker.write(at("fresh/deep/.env"), "TOKEN=fresh");
    broker.write(at("swap"), "TOKEN=swapped");
    renameSync(at("swap"), at(".env"));
    expect(await denied(".env fresh/deep/.env")).toBe(true);
    expect((await broker.run("true")).world_id).toBe(world_id);
    expect(readFileSync(at(".env"), "utf8")).toBe("TOKEN=swapped");
    expect(readFileSync(at("fresh/deep/.env"), "utf8")).toBe("TOKEN=fresh");
  });

  test("that the host replaces while a command runs are covered again and are not taken from the person", async () => {
    const running = broker.run(
      "for i in $(seq 100); do cat .env 2>/dev/null; sleep 0.02; done; sleep 0.2; cat .env; true",
    );
    await sleep(300);
    broker.write(at("swap"), "TOKEN=again");
    renameSync(at("swap"), at(".env"));
    await running;
    expect(readFileSync(at(".env"), "utf8")).toBe("TOKEN=again");
    expect(await denied(".env")).toBe(true);
  });

  test("leave nothing in the person's tree, masked or not", async () => {
    await broker.run("true");
    const before = tree(broker.project);
    await broker.run({ cmd: "ls -la . app app/deep; cat .env; true", agent_id: "other" });
    expect(tree(broker.project)).toEqual(before);
  });

  test("cannot be uncovered by unmounting or remounting", async () => {
    expect(await denied("$(umount .env 2>/dev/null; mount -o remount,rw . 2>/dev/null; echo .env)")).toBe(
      true,
    );
  });

  test("do not cost a folder its use: everything else below it can be made, renamed and removed", async () => {
    const ran = await broker.run(
      "mkdir -p app/src/x && echo 1 > app/src/x/f && mv app/src app/lib && rm -r app/lib && echo 2 > app/n && mv app/n app/m && cat app/m && rm app/m",
    );
    expect(ran).toMatchObject({ exit: 0, stdout: "2\n" });
  });

  test("in an isolated command are denied as well", async () => {
    broker.write(at("isolated-reader"), "#!/bin/sh\ncat .env app/.env; echo x > .git/config; echo done\n");
    const ran = await broker
      .run("chmod +x isolated-reader; true")
      .then(() => broker.run("PATH=$PWD:$PATH isolated-reader 2>/dev/null"));
    expect(ran.decision.verdict).toBe("isolate");
    expect(ran.stdout).toBe("done\n");
    expect(readFileSync(at(".git/config"), "utf8")).toBe("[core]\n");
  });

  test("survive a flood of other names", async () => {
    await broker.run(
      "mkdir flood && cd flood && seq 40000 | xargs touch && mkdir z && echo x > z/.env; cd ..; true",
    );
    expect(await eventually(() => !existsSync(at("flood/z/.env")), 2000)).toBe(true);
    expect(readdirSync(at("flood")).length).toBe(40_001);
    rmSync(at("flood"), { recursive: true });
  });
});

function tree(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true })
    .map((name) => {
      const stat = lstatSync(join(folder, name.toString()));
      return `${name.toString()} ${stat.mode} ${stat.ino} ${stat.mtimeMs} ${stat.isDirectory() ? 0 : stat.size}`;
    })
    .sort();
}

describe.each(actors())("git in a project with the default denials, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (name: string): string => join(broker.project, name);
  const identity = "-c user.name=a -c user.email=a@example.org";
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
    });
  });
  afterAll(() => broker.stop());

  test("a command can make a repository, but brings no hook into it and no setting that names a program", async () => {
    const ran = await broker.run(
      `git init -q && echo 'touch ran' > .git/hooks/post-commit && chmod +x .git/hooks/post-commit; git config core.pager evil; git add -A && git ${identity} commit -q --allow-empty -m one && git log --oneline | wc -l`,
    );
    expect(ran.stdout).toBe("1\n");
    expect(existsSync(at(".git/hooks/post-commit"))).toBe(false);
    expect(existsSync(at(".git/config"))).toBe(false);
    expect(existsSync(at(".git/HEAD"))).toBe(true);
  });

  test("a command can add a worktree and commit in it, and cannot change the one that was there", async () => {
    const added = await broker.run(
      `git worktree add -q wt && cd wt && git ${identity} commit -q --allow-empty -m two && git log --oneline | wc -l`,
    );
    expect(added).toMatchObject({ exit: 0, stdout: "2\n" });
    expect(existsSync(at(".git/worktrees/wt/commondir"))).toBe(true);
    const tried = await broker.run({
      cmd: "echo /evil > .git/worktrees/wt/commondir; mv .git/worktrees/wt .git/worktrees/x; git -C wt log --oneline | wc -l",
      agent_id: "later",
    });
    expect(readFileSync(at(".git/worktrees/wt/commondir"), "utf8")).toBe("../..\n");
    expect(tried.stdout).toBe("2\n");
  });
});

const ENV_DENIED = `
id: default
name: Denied names
mode: enforce
fs:
  deny_read: ["**/.env"]
`;

/** Takes every instance of its user, also those that other tests of the same user give back meanwhile. */
const HOG = `
import ctypes, time
libc = ctypes.CDLL(None)
count, told = 0, False
while True:
    if libc.inotify_init1(0) >= 0: count += 1
    else:
        if not told: print(count, flush=True)
        told = True
        time.sleep(0.0005)
`;

if (actorsWith("python3").some(({ uid }) => uid === 0))
  skippedTest(
    "denied names without inotify, as root",
    "taking all of root's instances would disturb the machine; it is proved as an ordinary user",
  );

describe.each(actorsWith("python3").filter(({ uid }) => uid !== 0))(
  "denied names on a host whose inotify instances are all taken, as $kind",
  (actor) => {
    test("are denied all the same, those that appear later too", async () => {
      const hog = spawnAs(actor, ["python3", "-c", HOG], { stdio: ["pipe", "pipe", "inherit"] });
      const broker = await TestBroker.start(actor, { policies: { default: ENV_DENIED } });
      try {
        await new Promise((resolve) => hog.stdout?.once("data", resolve));
        broker.write(join(broker.project, ".env"), "TOKEN=one");
        expect((await broker.run("cat .env; true")).stdout).toBe("");
        broker.write(join(broker.project, "later/.env"), "TOKEN=two");
        const ran = await broker.run(
          "cat later/.env; mkdir made; echo x > made/.env; echo y > made/env; true",
        );
        expect(ran.stdout).toBe("");
        expect(existsSync(join(broker.project, "made/.env"))).toBe(false);
        expect(existsSync(join(broker.project, "made/env"))).toBe(true);
        expect(readFileSync(join(broker.project, "later/.env"), "utf8")).toBe("TOKEN=two");
        expect(ran.isolation.mount).toBe("on");
      } finally {
        await broker.stop();
        hog.kill("SIGKILL");
      }
    });

    test("keep no agent that the settings name later from its socket", async () => {
      const hog = spawnAs(actor, ["python3", "-c", HOG], { stdio: ["pipe", "pipe", "inherit"] });
      await new Promise((resolve) => hog.stdout?.once("data", resolve));
      const broker = await TestBroker.start(actor, { policies: { default: ENV_DENIED } });
      try {
        broker.write(join(broker.home, "config.yaml"), settings(broker.folder, "agents:\n  late: {}\n"));
        const own = join(broker.home, "sock/agents/late.sock");
        expect(await eventually(() => existsSync(own), 20_000)).toBe(true);
      } finally {
        await broker.stop();
        hog.kill("SIGKILL");
      }
    });

    test("are not noticed in a tree too large to look through, and the vector says so", async () => {
      const broker = await TestBroker.start(actor, { policies: { default: ENV_DENIED } });
      for (let folder = 0; folder < 300; folder += 1)
        mkdirSync(join(broker.project, `many/${folder}`), { recursive: true });
      broker.write(join(broker.project, "many/file"), "x");
      const hog = spawnAs(actor, ["python3", "-c", HOG], { stdio: ["pipe", "pipe", "inherit"] });
      try {
        await new Promise((resolve) => hog.stdout?.once("data", resolve));
        expect((await broker.run("true")).isolation.mount).toMatch(
          /^degraded: .*30[0-9] of the project's folders/,
        );
      } finally {
        await broker.stop();
        hog.kill("SIGKILL");
      }
    });
  },
);
