import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { eventually, type Ran, TestBroker } from "../support/broker/broker.ts";
import { CHROMIUM, DETACHER, MOUNTER } from "../support/programs/namespaces.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { recordSkip } from "../support/run/skips.ts";

function policy(world: string): string {
  return `id: default
name: Namespaces of commands
mode: enforce
world: ${world}
fs: { deny_read: ["$PROJECT/secret", "$PROJECT/d/e/key"], deny_write: ["$PROJECT/sealed", "$PROJECT/.git/hooks"] }
commands: { denied: ["factor *"], opaque: allow, isolated: ["env isolated=1 *"] }
`;
}

const OPEN = "{ namespaces: allow }";
const hasBubblewrap = spawnSync("bwrap", ["--version"]).status === 0;
if (!hasBubblewrap) recordSkip({ what: "bubblewrap in a world", why: "bwrap is not installed" });

async function brokerWith(actor: Parameters<typeof TestBroker.start>[0], world: string): Promise<TestBroker> {
  const broker = await TestBroker.start(actor, { policies: { default: policy(world) } });
  for (const name of [
    "secret",
    "sealed",
    "plain",
    "d/e/key",
    "d/e/room/x",
    "d/room/x",
    "room/x",
    ".git/hooks/run",
  ])
    broker.write(join(broker.project, name), `${name} of the host`);
  broker.write(join(broker.project, ".git/config"), "[core]\n\tbare = false\n");
  broker.write(join(broker.project, ".git/HEAD"), "ref: refs/heads/main\n");
  for (const [name, source] of Object.entries({ chromium: CHROMIUM, detacher: DETACHER, mounter: MOUNTER }))
    buildProgram(broker, name, source);
  return broker;
}

function told(ran: Ran): string {
  return ran.notices.map(({ kind, message }) => `${kind}: ${message}`).join("\n");
}

function untouched(broker: TestBroker): void {
  for (const name of ["secret", "sealed", "plain", "d/e/key", ".git/hooks/run"])
    expect(readFileSync(join(broker.project, name), "utf8")).toBe(`${name} of the host`);
  expect(readdirSync(join(broker.project, "room"))).toEqual(["x"]);
}

describe.each(actors())("a world whose policy does not say 'namespaces: allow', as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await brokerWith(actor, "{}");
  });
  afterAll(() => broker.stop());

  test.each([
    ["unshare -U true", "unshare(CLONE_NEWUSER)"],
    ["env isolated=1 unshare -Um true", "unshare(CLONE_NEWNS | CLONE_NEWUSER)"],
    ["./chromium", "clone(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)"],
    ...(hasBubblewrap && actor.uid !== 0
      ? [["bwrap --ro-bind / / true", "clone(CLONE_NEWNS | CLONE_NEWUSER)"]]
      : []),
  ])("refuses '%s', and the reply names the key that lifts it", async (cmd = "", call = "") => {
    const ran = await broker.run(cmd);
    expect(ran.exit).not.toBe(0);
    expect(told(ran)).toContain(`denied: The system call ${call} was refused with EPERM`);
    expect(told(ran)).toContain("world.namespaces: allow");
    expect(ran.isolation).toMatchObject({ capabilities: "none", seccomp: "on" });
    const spans = broker
      .spans()
      .filter((span) => span.parent_span === ran.span_id && span.event_type === "violation");
    expect(spans).toMatchObject([{ violation: { kind: "namespace", subject: call.split("(")[0] } }]);
  });

  test("says so once of a program that tries a thousand times", async () => {
    const ran = await broker.run("i=0; while [ $i -lt 200 ]; do ./chromium; i=$((i+1)); done");
    expect(ran.notices.filter(({ message }) => message.includes("world.namespaces"))).toHaveLength(1);
  });

  test("starts threads and processes as ever, without a notice", async () => {
    const threads = `new (require("node:worker_threads").Worker)("require('node:worker_threads').parentPort.postMessage('thread')", { eval: true }).on("message", (m) => console.log(m))`;
    const ran = await broker.run({ argv: [process.execPath, "-e", threads] });
    expect(ran).toMatchObject({ stdout: "thread\n", notices: [] });
  });
});

describe.each(actors().filter(({ uid }) => uid === 0))(
  "'namespaces: allow' in the world of $kind",
  (actor) => {
    let broker: TestBroker;
    beforeAll(async () => {
      broker = await brokerWith(actor, OPEN);
    });
    afterAll(() => broker.stop());

    test.each([
      "unshare -Ur true",
      "env isolated=1 unshare -Urm true",
      "./chromium",
      "env isolated=1 ./detacher",
    ])(
      "opens nothing for '%s': the kernel would map no user, and the vector and the reply say so",
      async (cmd) => {
        const ran = await broker.run(cmd);
        expect(ran.exit).not.toBe(0);
        expect(told(ran)).toContain("has no effect for a broker that runs as root");
        expect(ran.isolation.user).toMatch(/^off: .*; world\.namespaces: allow has no effect/);
        expect(ran.isolation.capabilities).toBe("none");
        untouched(broker);
      },
    );
  },
);

describe.each(actors().filter(({ uid }) => uid !== 0))(
  "'namespaces: allow' in the world of $kind",
  (actor) => {
    let broker: TestBroker;
    beforeAll(async () => {
      broker = await brokerWith(actor, OPEN);
    });
    afterAll(() => broker.stop());

    test("starts what needs a user namespace, and the vector says what commands may make", async () => {
      const direct = await broker.run("unshare -Ur id -u && unshare -Urnpif --kill-child id -u");
      expect(direct).toMatchObject({ stdout: "0\n0\n", exit: 0, notices: [] });
      expect(direct.isolation.user).toMatch(/^on: commands may make user namespaces .*only where isolated/);
      expect(direct.isolation.capabilities).toBe("none, except inside namespaces that commands make");
      expect(await broker.run("unshare -Ur false")).toMatchObject({ exit: 1, notices: [] });
      const isolated = await broker.run("env isolated=1 unshare -Urm true");
      expect(isolated).toMatchObject({ exit: 0, notices: [] });
      expect(isolated.isolation.user).toMatch(/^on: commands may make user namespaces .* and mount,/);
    });

    test.each(["./chromium", "env isolated=1 ./chromium"])("'%s' gets its sandbox", async (cmd) => {
      const { uid } = actor;
      expect(await broker.run(cmd)).toMatchObject({
        stdout: `map: ok\npid 1, uid ${uid}, passwd gone\n`,
        exit: 0,
      });
    });

    test.skipIf(!hasBubblewrap)(
      "bubblewrap runs an isolated command, and its files and processes are its own",
      async () => {
        const flags =
          "--ro-bind / / --proc /proc --dev /dev --tmpfs /tmp --unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts";
        const ran = await broker.run(
          `env isolated=1 bwrap ${flags} --bind $PWD $PWD sh -c 'echo $$; echo new > made; echo x > /tmp/own; cat secret; ls /tmp'`,
        );
        expect(ran.stdout).toBe("2\nown\n");
        expect(ran.fs_diff?.writes).toEqual(["made"]);
        expect(ran.stderr).toContain("secret: Permission denied");
        expect(existsSync(join(broker.project, "made"))).toBe(false);
      },
    );

    test.skipIf(!hasBubblewrap)(
      "bubblewrap elsewhere, and namespaces that stay refused, are told",
      async () => {
        expect(told(await broker.run("bwrap --ro-bind / / true"))).toContain(
          "lets isolated commands alone make mount",
        );
        for (const how of ["unshare -UC true", "unshare -UT true", "bwrap --unshare-all --ro-bind / / true"])
          expect(told(await broker.run(`env isolated=1 ${how}`))).toContain(
            "leaves cgroup and time namespaces refused",
          );
      },
    );

    test.each(["private", "slave"])(
      "no detached mount (%s) gives a hidden name away, or opens a seal",
      async (how) => {
        const ran = await broker.run(`env isolated=1 ./detacher ${how}`);
        expect(ran.stdout).not.toContain("of the host");
        const lines = new Map(
          ran.stdout
            .trim()
            .split("\n")
            .map((line) => line.split(": ") as [string, string]),
        );
        for (const works of [
          "unshare",
          "map",
          "tmpfs",
          "/tmp/room",
          "/tmp/room2",
          "/tmp/room3",
          "pivot",
          "detach",
          "pivot again",
        ])
          expect([works, lines.get(works)]).toEqual([works, "ok"]);
        const refused = [...lines].filter(([what]) =>
          /^(move|exchange|remove|link|open|write|uncover|overlay)/.test(what),
        );
        expect(refused.filter(([, outcome]) => outcome === "ok")).toEqual([]);
        expect(lines.get("move secret")).toBe("Device or resource busy");
        expect(lines.get("move key")).toBe("Device or resource busy");
        untouched(broker);
      },
    );

    test("a detached mount namespace is refused where commands write to the project itself", async () => {
      const ran = await broker.run("./detacher");
      expect(ran.stdout).toBe("unshare: Operation not permitted\n");
      expect(told(ran)).toContain("get past the seals of the project");
      untouched(broker);
    });

    test.each(["", "all"])(
      "mounts nothing that leads to the machine, nor gets a call that stays refused (%s)",
      async (how) => {
        const ran = await broker.run(`env isolated=1 ./mounter ${how}`);
        const works = ran.stdout
          .trim()
          .split("\n")
          .filter((line) => line.endsWith(": ok"));
        expect(works).toEqual(["unshare: ok", "map: ok", ...(how === "all" ? ["own proc: ok"] : [])]);
      },
    );

    test("a program without a shell starts by path, by name and as a script, and a denied one does not", async () => {
      broker.write(join(broker.project, "script"), "#!/bin/cat\nprinted by its interpreter\n");
      spawnSync("chmod", ["755", join(broker.project, "script")]);
      for (const [argv, out] of [
        [["/bin/echo", "by path"], "by path\n"],
        [["echo", "by name"], "by name\n"],
        [["./script"], "#!/bin/cat\nprinted by its interpreter\n"],
      ] as const)
        expect(await broker.run({ argv })).toMatchObject({ exit: 0, stdout: out, notices: [] });
      spawnSync("cp", ["/usr/bin/factor", join(broker.project, "disguised")]);
      const ran = await broker.run({ argv: ["./disguised", "6"] });
      expect(ran).toMatchObject({ exit: 126, stdout: "" });
    });

    test("seals and hidden names hold for the root of a user namespace as for everyone", async () => {
      const ran = await broker.run(
        "unshare -Ur sh -c 'cat secret; mv secret moved; rm -f sealed; echo x > sealed; echo x > .git/hooks/run; mv .git other; chmod 777 secret; mount -t tmpfs x d; umount secret; true'",
      );
      expect(ran.stdout).toBe("");
      untouched(broker);
    });

    test("a rule holds for a program whatever name it is bound to, and for what another root shows", async () => {
      const ran = await broker.run(
        "env isolated=1 unshare -Urm sh -c 'mount --bind $(command -v factor) $(command -v id); id 6; mount -t tmpfs x /mnt; cp /bin/echo /mnt/echo; /mnt/echo; echo $?; uname -s'",
      );
      expect(ran.stdout).toBe("126\nLinux\n");
      expect(ran.notices.map(({ kind, program }) => `${kind} ${program}`)).toEqual(
        expect.arrayContaining(["denied id", "denied echo"]),
      );
      const rooted = await broker.run(
        "unshare -Ur /usr/sbin/chroot / sh -c 'cd /; f=factor; $f 6; uname -s'",
      );
      expect(rooted).toMatchObject({ stdout: "Linux\n" });
      expect(told(rooted)).toContain("'factor *' in commands.denied");
    });

    test("another process's mount namespace, entered by a path of procfs, gives no program another name, and hides as much", async () => {
      const inner =
        "mkdir -p /tmp/b; mount -t tmpfs t /tmp/b; cp /bin/echo /tmp/b/copy; cp $(command -v factor) /tmp/b/six; mount --bind /tmp/b/copy $(command -v uname); : > /tmp/ready; exec sleep 5";
      broker.write(join(broker.project, "inner.sh"), inner);
      const steps = [
        "unshare -Urm sh inner.sh & while [ ! -e /tmp/ready ]; do sleep 0.05; done",
        "n=/proc/$!/root; (cd $n/tmp/b && ./copy spoofed; ./six 6); (cd $n$(dirname $(command -v uname)) && ./uname spoofed)",
        "exec 9<$n/tmp/b; (cd /proc/self/fd/9 && ./copy spoofed); cat $n$PWD/secret $n$PWD/d/e/key",
        "mv $n$PWD/secret $n$PWD/room/; cat $n$PWD/room/secret; kill $!; echo over",
      ];
      broker.write(join(broker.project, "outer.sh"), steps.join("\n"));
      const ran = await broker.run("env isolated=1 sh outer.sh");
      expect(ran.stdout).toBe("over\n");
      expect(told(ran)).toContain("'factor *' in commands.denied");
      untouched(broker);
    });

    test("changes made from another root are recorded like all others", async () => {
      const made = await broker.run(
        `mkdir -p jail && unshare -Ur /usr/sbin/chroot / sh -c 'cd ${broker.project} && echo a > made && mkdir into && mv made into/made && ln -s ../plain into/link && echo b >> into/made'`,
      );
      expect(made).toMatchObject({ exit: 0, fs_diff: { truncated: false } });
      expect([...(made.fs_diff?.writes ?? [])].sort()).toEqual(["into/link", "into/made"]);
      expect(made.fs_diff?.dirs).toEqual(expect.arrayContaining(["into", "jail"]));
    });

    test("nothing of a command outlives its reply, in no process namespace", async () => {
      const before = await broker.run("echo before");
      await broker.run(
        "unshare -Ur sh -c 'setsid sleep 4711 & sleep 0.2'; unshare -Urpf sh -c 'setsid sleep 4712 & exec sleep 4713' & sleep 0.5; echo over",
      );
      await broker.run(
        "env isolated=1 unshare -Urmpf sh -c 'setsid sleep 4714 & exec sleep 4715' & sleep 0.5",
      );
      const left = (): boolean => /sleep 471[1-5]/.test(spawnSync("ps", ["-eo", "args"]).stdout.toString());
      expect(await eventually(() => !left(), 2000)).toBe(true);
      expect((await broker.run("echo after")).world_id).toBe(before.world_id);
    });

    test("a network namespace of its own only loses the network", async () => {
      const dial = "exec 3<>/dev/tcp/198.18.0.1/80";
      const ran = await broker.run(`unshare -Urn bash -c '${dial}'; unshare -Urn ls /sys/class/net; true`);
      expect(ran.stderr).toContain("Network is unreachable");
    });

    test("a profile that does not allow it takes it away", async () => {
      const path = join(broker.home, "policies/strict.yaml");
      broker.write(
        path,
        "id: strict\nname: Strict\nmode: enforce\nselectable: true\nextends: default\nworld: { namespaces: deny }\n",
      );
      const ran = await broker.run({ cmd: "unshare -Ur true", profile: "strict" });
      expect(told(ran)).toContain("commands may not make namespaces");
    });
  },
);
