import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { removeTrees } from "../support/users/folders.ts";
import { actors } from "../support/users/users.ts";
import { eventually, type Ran, TestBroker } from "../support/broker/broker.ts";
import { needs } from "../support/run/needs.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { skip } from "../support/run/skips.ts";
import { MAKE_AND_KILL, TAKE_WATCHES } from "../support/programs/denied-names.ts";

const POLICY = `
id: default
name: Denied names under attack
mode: enforce
fs:
  deny_read: ["**/.env"]
  deny_write: [".git/commondir", ".git/hooks", "**/.husky"]
`;

/** The child of PID 1 with the lowest pid: the forker. Its death ends the world. */
const FORKER =
  "F=$(for p in /proc/[0-9]*; do grep -q '^PPid:.1$' $p/status && echo ${p#/proc/}; done | sort -n | head -1)";

describe.each(actors())("who works against the guard of denied names, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (name: string): string => join(broker.project, name);
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    broker.write(at(".git/HEAD"), "ref: refs/heads/main\n");
    buildProgram(broker, "make-and-kill", MAKE_AND_KILL);
    buildProgram(broker, "take-watches", TAKE_WATCHES);
  });
  afterAll(() => broker.stop());

  const told = (ran: Ran): readonly unknown[] =>
    broker
      .spans()
      .filter((span) => span.event_type === "violation" && span.parent_span === ran.span_id)
      .map((span) => span.violation);

  test.each([
    ["its own leader", "exec ./make-and-kill parent .git/commondir"],
    ["the forker, and with it the world", `${FORKER}; exec ./make-and-kill $F .git/commondir`],
    ["everything that it can", "exec ./make-and-kill -1 .git/commondir"],
  ])(
    "leaves nothing when it makes one as fast as it can while it kills %s, and the next command runs",
    async (_whom, cmd) => {
      const seen: ReturnType<typeof told>[number][] = [];
      for (let round = 0; round < 6; round += 1) {
        const ran = await broker.run(cmd);
        expect(ran.signal).toBe("SIGKILL");
        expect(existsSync(at(".git/commondir"))).toBe(false);
        seen.push(...told(ran));
      }
      // On a busy machine the kill comes before the name in some rounds, and then there is nothing to tell.
      expect(seen).toContainEqual({ kind: "write", subject: at(".git/commondir") });
      expect(await broker.run("echo kept > kept && cat kept")).toMatchObject({ stdout: "kept\n" });
    },
  );

  test("leaves nothing when its broker is killed: what it made gets another name, what a person has stays", async () => {
    const own = await TestBroker.start(actor, { policies: { default: POLICY } });
    const inOwn = (...names: readonly string[]): string => join(own.project, ...names);
    try {
      own.write(inOwn(".git/HEAD"), "ref: refs/heads/main\n");
      own.write(inOwn("old/.env"), "a person's");
      const running = own.post({
        cmd: `mkdir d .husky; echo made | tee d/.env .husky/run plain; git init -q sub; chmod 555 d; touch ready
          while echo and the channel is full; do mkdir -p again/.husky; done`,
      });
      running.catch(() => undefined);
      expect(await eventually(() => existsSync(inOwn("ready")), 5000)).toBe(true);
      await sleep(300);
      own.write(inOwn("new.txt"), "a person's");
      own.process.kill("SIGKILL");
      const left = [".husky", "d/.env", "sub/.git", "again/.husky"];
      expect(await eventually(() => left.every((name) => !existsSync(inOwn(name))), 3000)).toBe(true);
      await sleep(300);
      expect(left.filter((name) => existsSync(inOwn(name)))).toEqual([]);
      for (const folder of [".", "d", "sub"])
        expect(readdirSync(inOwn(folder)).join(" ")).toMatch(/substrate-denied-[0-9a-f]{16}/);
      const kept = ["old/.env", "new.txt", "plain"].map((name) => readFileSync(inOwn(name), "utf8"));
      expect(kept).toEqual(["a person's", "a person's", "made\n"]);
    } finally {
      chmodSync(inOwn("d"), 0o755);
      await own.stop();
    }
  });

  test("leaves nothing as a kept process either, whether its leader is killed or its world ended", async () => {
    for (let round = 0; round < 4; round += 1) {
      await broker.run({
        cmd: "(sleep 0.02; exec ./make-and-kill parent .git/commondir) & true",
        background: "keep",
      });
      await sleep(100);
      expect(await eventually(() => !existsSync(at(".git/commondir")), 2000)).toBe(true);
      await broker.run({ cmd: "(exec ./make-and-kill 0 .git/commondir) & sleep 0.05", background: "keep" });
      const restart = { agent_id: "test", cwd: broker.project, force: true };
      expect((await broker.operator("POST", "/v1/world/restart", restart)).status).toBe(200);
      expect(existsSync(at(".git/commondir"))).toBe(false);
    }
  });

  test("leaves nothing by renaming what it lies in while it is taken out; other folders can be renamed", async () => {
    const flip =
      "end=$(( $(date +%s) + 2 )); while [ $(date +%s) -lt $end ]; do mkdir d; echo x > d/.env; mv d e; ln -s e d; mv e f; mv f/.env g; mv g f/.env; rm -rf h d; mv f h; done 2>/dev/null; mkdir p; mv p q; true";
    expect(await broker.run(flip)).toMatchObject({ exit: 0 });
    expect(
      readdirSync(broker.project, { recursive: true })
        .map(String)
        .filter((name) => name.endsWith(".env")),
    ).toEqual([]);
    expect(existsSync(at("q"))).toBe(true);
  });

  test("leaves nothing by closing the folders above it, or itself; the folders stay as it closed them", async () => {
    const ran = await broker.run(
      "mkdir -p a/b c/d/.env; chmod 555 c/d/.env; echo x > a/b/.env; chmod 000 a/b; chmod 000 a; chmod 555 c/d c; mkdir open; chmod 000 open; chmod 755 open; echo y > open/file; true",
    );
    expect(ran.exit).toBe(0);
    expect((await broker.run("stat -c %a a c c/d; chmod 755 a; stat -c %a a/b")).stdout).toBe(
      "0\n555\n555\n0\n",
    );
    expect((await broker.run("chmod -R u+rwX a c; find a c open")).stdout.split("\n").sort().join(" ")).toBe(
      " a a/b c c/d open open/file",
    );
  });

  test("leaves nothing below names that are no UTF-8, hold a newline, or have 255 bytes", async () => {
    const ran = await broker.run(
      `for n in "$(printf 'x\\377y')" "$(printf 'a\\nb')" "$(head -c 255 /dev/zero | tr '\\0' n)"; do mkdir "$n" && echo x > "$n/.env" && echo kept > "$n/kept"; done`,
    );
    expect(ran.exit).toBe(0);
    expect(
      (await broker.run("find . -name .env | wc -l; find . -name kept -type f -printf x | wc -c")).stdout,
    ).toBe("0\n4\n");
    await broker.run("rm -rf x* a?b nnn*; true");
  });

  test("leaves nothing where a path would be longer than the kernel takes, once that comes within reach", async () => {
    const deep =
      "n=$(head -c 200 /dev/zero | tr '\\0' d); for i in $(seq 25); do mkdir $n; cd -P $n; done; echo x > .env";
    expect(await broker.run(deep)).toMatchObject({ exit: 0 });
    await broker.run("n=$(head -c 200 /dev/zero | tr '\\0' d); mv $n/$n/$n/$n/$n/$n/$n/$n/$n/$n near; true");
    expect((await broker.run("find near -name .env | wc -l; find near | wc -l")).stdout).toBe("0\n16\n");
    await broker.run("rm -rf near ddd*");
  });

  test("leaves nothing by a few thousand at once, and is answered", async () => {
    needs("python3");
    const many = `python3 -c "import os
for i in range(5000):
  os.mkdir('m%d' % i); open('m%d/.env' % i, 'w').close(); open('m%d/kept' % i, 'w').close()"`;
    const ran = await broker.run(many);
    expect(ran.exit).toBe(0);
    const left = readdirSync(broker.project, { recursive: true }).map(String);
    expect(left.filter((name) => name.endsWith("/.env"))).toEqual([]);
    expect(left.filter((name) => /^m\d+\/kept$/.test(name)).length).toBe(5000);
    await broker.run("rm -rf m*[0-9]");
  });

  test("finds none of it kept when it took all the watches that its user may have", async () => {
    if (actor.uid === 0)
      return skip(
        "denied names without watches, as root",
        "it would take the watches of all that root runs here",
      );
    const ran = await broker.run(
      "./take-watches 1900 & W=$!; while ! [ -e taken ]; do sleep 0.05; done; mkdir -p fresh/deep; sleep 0.1; echo x > fresh/deep/.env; echo y > fresh/deep/kept; sleep 0.1; kill $W",
    );
    expect(ran.stdout).toBe("none left\n");
    expect(existsSync(at("fresh/deep/.env"))).toBe(false);
    expect(existsSync(at("fresh/deep/kept"))).toBe(true);
  });

  test("finds it gone on another file system too, whatever it holds", async () => {
    const shm = mkdtempSync("/dev/shm/substrate-test-");
    // Unmarked, a folder there would be no project.
    mkdirSync(join(shm, ".git"));
    for (const path of [shm, join(shm, ".git")]) chownSync(path, actor.uid, actor.gid);
    try {
      const hold =
        "mkfifo p; ln -s / root; mkdir deep; chmod 000 deep; echo evil > pre-commit; head -c 20M /dev/zero > big";
      const ran = await broker.run({
        // Its words are told apart from its text: what a line certainly writes is denied before it runs.
        argv: [
          ...["sh", "-c"],
          `mkdir -p .git made && (cd made && ${hold}) && mv made "$1" && echo x > "$2" && echo kept > kept`,
          ...["sh", ".husky", ".env"],
        ],
        cwd: shm,
      });
      expect(ran.exit).toBe(0);
      expect(existsSync(join(shm, ".husky"))).toBe(false);
      expect(existsSync(join(shm, ".env"))).toBe(false);
      expect(
        readdirSync(shm)
          .filter((name) => !name.startsWith("substrate-denied-"))
          .sort(),
      ).toEqual([".git", "kept"]);
      expect(told(ran)).toHaveLength(2);
    } finally {
      removeTrees(shm);
    }
  });
});
