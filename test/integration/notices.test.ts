import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hostGit } from "../support/git/git.ts";
import { actors, runAs } from "../support/users/users.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { freePort, holdPort } from "../support/broker/published.ts";

const POLICY = `id: default
name: Notices
mode: enforce
net: { allowed: ["allowed.example"] }
approval: { timeout_secs: 1 }
world: { limits: { disk: 40M } }
fs:
  deny_write: ["$PROJECT/.envrc"]
commands:
  denied: [{ pattern: "id *", reason: "It is nobody's business" }, "rm -rf /"]
  ask: ["whoami *"]
  isolated: ["true iso"]
`;

describe.each(actors())("what a reply tells of what happened inside, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    broker.write(join(broker.project, "script"), "for i in 1 2 3; do id -u; done; echo went on\n");
    broker.write(join(broker.project, "asks"), "whoami; true\n");
  });
  afterAll(() => broker.stop());

  test("a command in which nothing happened tells nothing", async () => {
    expect((await broker.run("echo x > made; sh -c 'echo y'")).notices).toEqual([]);
  });

  test("a command that prints a notice's text and erases it silences nothing, and a reason is said once", async () => {
    const [notice] = (await broker.run("sh script")).notices;
    const message = notice?.message ?? "";
    broker.write(join(broker.project, "liar"), `id -u; printf '%s\\r\\033[2K' "${message}" >&2\n`);
    const { stderr } = await broker.cli(["exec", "--", "sh liar"]);
    expect(stderr.split("\n")).toContainEqual(expect.stringContaining(`substrate: ${message}`));
    const missing = await broker.cli(["exec", "--", "./missing"]);
    expect(missing.stderr.match(/missing.*not found/g)).toHaveLength(1);
  });

  test("what is left in the background is told when it is killed, and not when it ends by itself or was to be kept", async () => {
    const killed = await broker.run("sleep 30 > out & sleep 30 & echo on");
    expect(killed.stdout).toBe("on\n");
    expect(killed.notices).toMatchObject([
      { kind: "session", message: expect.stringMatching(/^2 processes were still running .*--keep/) },
    ]);
    const late = await broker.run("(sleep 0.05; echo late) & echo on");
    expect([late.stdout, late.notices]).toEqual(["on\nlate\n", []]);
    const kept = await broker.run({ cmd: "sleep 1 & echo on", background: "keep" });
    expect([kept.stdout, kept.notices]).toEqual(["on\n", []]);
  });

  test("a port that refused is told where the command ended well too, if its output names it", async () => {
    const port = await freePort();
    const said = [{ message: expect.stringContaining(`Port ${port} of localhost refused`) }];
    expect((await broker.run(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}' || true`)).notices).toMatchObject(
      said,
    );
    broker.write(join(broker.project, "quiet"), `(exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null; true\n`);
    expect((await broker.run("bash quiet")).notices).toEqual([]);
  });

  test("a process of this machine is not there to be ended, and the world's own is", async () => {
    const wanted = [
      { kind: "session", message: expect.stringMatching(/^A command sees the processes of its/) },
    ];
    for (const kill of ["kill", "env kill", "bash -c 'kill \"$0\"'"]) {
      const ran = await broker.run(`${kill} ${process.pid} || true`);
      expect([ran.exit, ran.notices], kill).toMatchObject([0, wanted]);
    }
    expect((await broker.run("sleep 30 & kill $!; wait; echo 'x: No such process'")).notices).toEqual([]);
  });

  test("pids of commands are none of the first ones of each world and machine: servers leave them in files", async () => {
    const first = Number((await broker.run("echo $$")).stdout);
    const other = Number((await broker.run({ cmd: "echo $$", agent_id: "other" })).stdout);
    for (const pid of [first, other]) expect(pid).toBeGreaterThan(299);
  });

  test("what is left in the background may tidy up after itself, and what does not want to is ended all the same", async () => {
    const polite = "(trap 'sleep 0.4; rm pid; exit' TERM; touch pid; while :; do sleep 0.05; done) &";
    const deaf = "(trap '' TERM; touch deaf; while :; do sleep 0.05; done) &";
    const ran = await broker.run(
      `${polite} ${deaf} until [ -e pid ] && [ -e deaf ]; do sleep 0.05; done; echo on`,
    );
    expect([ran.stdout, ran.exit]).toEqual(["on\n", 0]);
    expect(ran.notices).toMatchObject([
      { kind: "session", message: expect.stringContaining("ended with it") },
    ]);
    expect(await broker.run("ls pid; ls deaf")).toMatchObject({ stdout: "deaf\n" });
  });

  test("a command that has ended before its time limit is not told as ended by it", async () => {
    const cmd = "(exec -a git sh -c 'sleep 30; :' gc --auto) > /dev/null 2>&1 & echo on";
    const ran = await broker.run({ cmd, shell: "bash", timeout_ms: 1500 });
    expect(ran).toMatchObject({ stdout: "on\n", exit: 0, timed_out: false });
    expect(ran.notices).toMatchObject([
      { message: expect.stringContaining("still running when the command ended") },
    ]);
    const limited = await broker.run({ cmd: "trap 'exit 0' TERM; sleep 30 & wait", timeout_ms: 500 });
    expect(limited).toMatchObject({ timed_out: true });
  });

  test("git packs a repository in the background of a commit, as it does without a world", async () => {
    // Another one each time: in the same, a second commit would have nothing to commit.
    const folder = `packed-${process.hrtime.bigint()}`;
    // Two blobs whose names begin with 17 are many to `gc.auto 1`: git counts one folder of objects.
    const cmd = `git init -q ${folder}; cd ${folder}; for n in 263 410 523; do echo $n > $n; done
      for n in $(seq 80); do seq $n 40000 > t$n; done; for s in gc.auto=1 pack.threads=1 pack.window=200 user.name=t user.email=t@t; do git config \${s%=*} \${s#*=}; done
      git add .; git commit -qm one`;
    expect(await broker.run({ cmd, timeout_ms: 60_000 })).toMatchObject({ exit: 0, notices: [] });
    expect((await broker.run({ cmd: "git count-objects", cwd: join(broker.project, folder) })).stdout).toBe(
      "0 objects, 0 kilobytes\n",
    );
  });

  test("a full folder of the world's own is told, and a full disk is not", async () => {
    const full = await broker.run("head -c 100000000000 /dev/zero > /dev/shm/big; rm /dev/shm/big");
    expect(full.notices).toMatchObject([
      {
        kind: "session",
        message: expect.stringMatching(/^'\/dev\/shm' of a world is in memory and bounded/),
      },
    ]);
    for (const says of ["cp: /home/tmp/x: No space left on device", "ENOSPC: too many watchers, /tmp/x"])
      expect((await broker.run(`echo '${says}'`)).notices).toEqual([]);
  });

  test("a child of a command that is ended by a signal may tidy up after itself too", async () => {
    const cmd = "(trap 'sleep 0.4; rm child; exit' TERM; touch child; while :; do sleep 0.05; done) & wait";
    expect(await broker.run({ cmd, timeout_ms: 1000 })).toMatchObject({ timed_out: true, signal: "SIGTERM" });
    expect(existsSync(join(broker.project, "child"))).toBe(false);
  });

  test("a program that was refused three times is one notice with its rule, its count and its span", async () => {
    const ran = await broker.run("sh script");
    expect(ran.stdout).toBe("went on\n");
    expect(ran.notices).toMatchObject([
      {
        ...{ kind: "denied", program: "id", count: 3 },
        rule: { list: "commands.denied", pattern: "id *", reason: "It is nobody's business" },
      },
    ]);
    const span = await broker.span(ran.notices[0]?.span_id ?? "");
    expect(span).toMatchObject({ parent_span: ran.span_id, event_type: "violation", code: "policy_denied" });
  });

  test("a program with thousands of arguments starts, and one with more than are read says so in a sentence", async () => {
    const lots = "mkdir -p many; seq -f many/file-%06g.txt 13000 > names; xargs touch < names";
    expect(
      await broker.run(`${lots}; rm -f many/file-00[0-5]*; xargs rm < names; ls many | wc -l`),
    ).toMatchObject({ stdout: "0\n", notices: [] });
    const ran = await broker.run(
      `${lots}; rm -f many/*; ls many | wc -l; xargs -n 1000 rm -f < names; ls many | wc -l`,
    );
    expect([ran.exit, ran.stdout]).toEqual([0, "13000\n0\n"]);
    const message = ran.notices[0]?.message ?? "";
    expect(message).toContain("rm -f many/file-000001.txt");
    expect(message).toMatch(/matches 'rm -rf \/' in commands\.denied .*xargs -n 1000/);
    expect(message.length).toBeLessThan(1000);
  });

  test("a program that a person would have had to approve, and whose question nobody answered", async () => {
    const { notices } = await broker.run("sh asks");
    expect(notices).toMatchObject([
      { kind: "approval_required", program: "whoami", count: 1, approval_id: expect.stringMatching(/^apr_/) },
    ]);
  });

  test("a name that was refused, also where the command itself did not fail", async () => {
    const { notices, exit } = await broker.run("getent hosts refused.example; true");
    expect(exit).toBe(0);
    expect(notices).toMatchObject([{ kind: "network", program: null, rule: null }]);
    expect(notices[0]?.message).toContain("refused.example");
  });

  test("a file that is hidden is told whichever way the error went, and however much came after it", async () => {
    const cmd = "cat ~/.ssh/id_rsa; seq 30000; exit 1";
    for (const outputs of ["separate", "together"] as const) {
      const { notices } = await broker.run({ cmd, outputs });
      expect(notices.map(({ message }) => message)).toEqual([expect.stringContaining("id_rsa' is hidden")]);
    }
    const { root } = await installationFor(actor);
    const words = ["sh", "-c", 'exec "$@" 2>&1', "sh", join(root, ".build/substrate"), "exec", "--", cmd];
    const live = await runAs(actor, words, { cwd: broker.project, env: { SUBSTRATE_HOME: broker.home } });
    expect(live.stdout).toContain("id_rsa' is hidden");
  });

  test("a program that is left set-user-id or set-group-id, and none that only looks like it", async () => {
    const told = async (cmd: string): Promise<readonly string[]> =>
      (await broker.run(cmd)).notices.map(({ message }) => message);
    expect(await told("echo x > tool; chmod 4755 tool")).toEqual([
      expect.stringMatching(/^'tool': set-user-id or set-group-id, .* with your rights/),
    ]);
    expect(await told("chmod 755 tool; touch other; chmod 2711 other; cp -p other more")).toEqual([
      expect.stringMatching(/^'(other|more)' and 1 more: set-user-id/),
    ]);
    expect(
      await told("rm tool other more; touch a; chmod 4644 a; mkdir d; chmod 2775 d; touch d/b; ln -s a l"),
    ).toEqual([]);
  });

  test("changes that are held, and a name that was taken out with where it lies", async () => {
    const held = await broker.run("true iso; echo x > isolated");
    expect(held.notices).toMatchObject([{ kind: "held", count: 1, span_id: held.span_id }]);
    const { notices } = await broker.run("echo x > .envrc; true");
    expect(notices).toMatchObject([{ kind: "quarantined", count: 1 }]);
    expect(notices[0]?.message).toContain(join(broker.home, "quarantine"));
  });

  test("the command line prints each on a line of its own", async () => {
    const { stderr, stdout } = await broker.cli(["exec", "--", "sh script; echo x > .envrc"]);
    expect(stdout).toBe("went on\n");
    const lines = stderr.split("\n").filter((line) => line.startsWith("substrate: "));
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/refuses to start this program.*\(3 times\)$/);
    expect(lines[1]).toContain(join(broker.home, "quarantine"));
  });
});

describe.each(actors())("what a reply tells of names while a policy only observes, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    const policy = POLICY.replace("mode: enforce", "mode: observe");
    broker = await TestBroker.start(actor, { policies: { default: policy } });
  });
  afterAll(() => broker.stop());

  test("one that no entry allows is looked up, and told once with what enforce would do", async () => {
    const cmd = "getent hosts refused.example; getent ahosts refused.example; getent hosts allowed.example";
    const { stderr, notices } = await broker.run(cmd);
    expect(stderr).toContain("'refused.example' cannot be resolved on the host");
    expect(notices).toMatchObject([{ kind: "observed", program: null, rule: null, count: 1 }]);
    expect(notices[0]?.message).toMatch(
      /^Policy 'default' only observes; with 'mode: enforce' it would not look up the name 'refused\.example': net\.allowed \(default\.yaml:4\) does not allow it$/,
    );
  });

  test("the reverse of an address is nobody's name, and not told", async () => {
    expect((await broker.run("getent hosts 192.0.2.1; true")).notices).toEqual([]);
  });
});

describe.each(actors())("ports of localhost, as $kind", (actor) => {
  let broker: TestBroker;
  let host: Awaited<ReturnType<typeof holdPort>>;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
    host = await holdPort(0);
  });
  afterAll(async () => {
    host.free();
    await broker.stop();
  });

  const blocking = (port: number): string => `exec 3<>/dev/tcp/127.0.0.1/${port}`;
  const nonBlocking = (port: number, address = "127.0.0.1"): string =>
    `node -e 'require("net").connect(${port}, "${address}").on("error", () => process.exit(3)).on("connect", () => process.exit(0))'`;
  const toldAbout = async (cmd: string): Promise<readonly string[]> =>
    (await broker.run({ cmd, shell: "bash" })).notices
      .filter(({ kind }) => kind === "network")
      .map(({ message }) => message);

  test("are a world's own: a failed command is told so, and how to reach a server of this machine", async () => {
    const { port } = host;
    const words = expect.stringMatching(
      new RegExp(`^Port ${port} of localhost refused the connection: .*'host\\.internal:${port}'`),
    );
    expect(await toldAbout(blocking(port))).toEqual([words]);
    expect(await toldAbout(nonBlocking(port))).toEqual([words]);
    expect(await toldAbout(nonBlocking(port, "::1"))).toEqual([words]);
    const { stderr } = await broker.cli(["exec", "--shell", "bash", "--", blocking(port)]);
    expect(stderr).toMatch(new RegExp(`^substrate: Port ${port} of localhost refused`, "m"));
  });

  test("are told in the same words where this machine has no server", async () => {
    const [free, { port }] = [await freePort(), host];
    const [[none = ""], [some = ""]] = [await toldAbout(blocking(free)), await toldAbout(blocking(port))];
    expect(none).not.toBe("");
    expect(none.replaceAll(`${free}`, "PORT")).toBe(some.replaceAll(`${port}`, "PORT"));
  });

  test("are not told of where a server answered in the end, or the command did what it was to do", async () => {
    const port = await freePort();
    const serve = `node -e 'require("net").createServer().listen(${port}, "127.0.0.1")' &`;
    const untilUp = `until ${nonBlocking(port)}; do sleep 0.05; done`;
    expect(await toldAbout(`${nonBlocking(port)}; ${serve} ${untilUp}; exit 4`)).toEqual([]);
    expect(await toldAbout(`${nonBlocking(port)}; true`)).toEqual([]);
    expect(await toldAbout(`${nonBlocking(port)}; echo ${port} ms`)).toEqual([]);
  });

  test("are told of where a command that ended well printed the port as one", async () => {
    const port = await freePort();
    for (const said of [`127.0.0.1:${port}`, `to localhost port ${port} after 0 ms`, `[127.0.0.1] ${port}`])
      expect(await toldAbout(`${nonBlocking(port)}; echo "${said}"`)).toHaveLength(1);
  });
});

describe.each(actors())("a repository above a folder with a profile of its own, as $kind", (actor) => {
  test("is named when git does not find it, and found with the variable that the sentence names", async () => {
    const broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: All\n", part: "id: part\nname: Part\nselectable: true\n" },
    });
    const home = new HomeFolder(actor);
    try {
      home.write("part/.substrate-profile", "part\n");
      const part = join(home.path, "part");
      hostGit(actor, home.path, "init", "--quiet");
      const failed = await broker.run({ cmd: "git status --short", cwd: part });
      expect(failed.stderr).toContain("not a git repository");
      expect(failed.notices.map(({ message }) => message)).toEqual([
        expect.stringContaining(`GIT_DISCOVERY_ACROSS_FILESYSTEM=1 it finds the one in '${home.path}'`),
      ]);
      const found = await broker.run({
        cmd: "GIT_DISCOVERY_ACROSS_FILESYSTEM=1 git rev-parse --show-toplevel",
        cwd: part,
      });
      expect([found.stdout, found.notices]).toEqual([`${home.path}\n`, []]);
      const elsewhere = await broker.run({ cmd: "echo no repository >&2; false", cwd: part });
      expect(elsewhere.notices).toEqual([]);
    } finally {
      home.remove();
      await broker.stop();
    }
  });
});
