import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type World, type WorldSpec, WorldUnavailable, type WorldViolation } from "../../world/backend.ts";
import { LinuxBackend } from "../../world/linux/backend.ts";
import { actors, currentUser } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { descendants, innerPid } from "../support/processes/processes.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { recordSkip } from "../support/run/skips.ts";
import { initOn, NEST, STORM } from "../support/programs/seccomp.ts";

const POLICY = `id: default
name: x
mode: enforce
world: { seccomp: log }
fs: { deny_read: ["$PROJECT/secret"], deny_write: ["$PROJECT/sealed", "$PROJECT/guarded/hooks"] }
`;

describe.each(actors())("what log mode does not give up, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    for (const name of ["secret", "sealed", "guarded/hooks/run"])
      broker.write(join(broker.project, name), `${name} of the host`);
    buildProgram(broker, "nest", NEST);
    buildProgram(broker, "storm", STORM);
  });
  afterAll(() => broker.stop());

  const onHost = (name: string): string => readFileSync(join(broker.project, name), "utf8");

  test.each([["unshare", "1\n"], ["clone", "1\n"], ...(process.arch === "x64" ? [["x32", "38\n"]] : [])])(
    "a user namespace of its own by %s is refused and told, and what the world protects stays on the host as it was",
    async (how, answer) => {
      const ran = await broker.run({ argv: ["./nest", how ?? ""] });
      expect(ran.stdout).toBe(answer);
      expect(["secret", "sealed", "guarded/hooks/run"].map(onHost)).toEqual([
        "secret of the host",
        "sealed of the host",
        "guarded/hooks/run of the host",
      ]);
      for (const name of ["plain", "moved"]) expect(readdirSync(broker.project)).not.toContain(name);
      const told = broker
        .spans()
        .filter((span) => span.event_type === "violation" && span.parent_span === ran.span_id);
      expect(told[0]).toMatchObject({
        violation: { subject: how === "x32" ? "x32:272" : how },
        message: expect.stringContaining("was refused with E"),
      });
      expect(await broker.run("echo new > own && mv own renamed && cat renamed")).toMatchObject({
        stdout: "new\n",
      });
    },
  );

  test("when PID 1 dies in the middle of its answers nothing hangs: the command is lost, and the next one has a world", async () => {
    const flood = broker.run({ argv: ["./storm", "flood", "100000000"] });
    const pidOne = await found(() => descendants(broker.process.pid ?? 0).find((pid) => innerPid(pid) === 1));
    await sleep(100);
    process.kill(pidOne, "SIGKILL");
    expect(await broker.span((await flood).span_id)).toMatchObject({ outcome: "lost" });
    expect(await broker.run("echo next")).toMatchObject({ stdout: "next\n" });
  });
});

if (process.arch !== "x64")
  recordSkip({
    what: "log mode on a kernel that",
    why: `the filter that imitates it knows x64 only, and this is ${process.arch}`,
  });

describe.skipIf(process.arch !== "x64")("log mode on a kernel that", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "sb-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const backendOn = async (kernel: Parameters<typeof initOn>[0]): Promise<LinuxBackend> => {
    const { root } = await installationFor(currentUser());
    const path = join(folder, kernel.replaceAll(" ", "-"));
    writeFileSync(`${path}.c`, initOn(kernel, join(root, ".build/substrate-init")));
    expect(spawnSync("cc", ["-O1", "-static", "-o", path, `${path}.c`]).stderr.toString()).toBe("");
    const { uid, gid } = currentUser();
    return new LinuxBackend({
      init: path,
      uid,
      gid,
      strays: join(folder, "strays"),
      quarantine: join(folder, "quarantine"),
    });
  };
  const start = (
    backend: LinuxBackend,
    seccomp: WorldSpec["seccomp"],
    more: Pick<WorldSpec, "hostNetwork"> = {},
  ): Promise<World> => {
    const files = { read: ["/**"], denyRead: [], write: [`${folder}/**`], denyWrite: [], seal: [] };
    const spec = { project: folder, identity: "x", access: { kind: "direct" }, files } as const;
    const rest = {
      hidden: [],
      sealed: [],
      limits: {},
      seccomp,
      strays: "refused",
      network: { ports: [], ranges: [] },
    } as const;
    return backend.start("wld_x", { ...spec, ...rest, ...more }, AbortSignal.timeout(15_000));
  };

  test.each(["knows no notifications", "has a listener already"] as const)(
    "%s makes no world and says what to do; enforce mode does without",
    async (kernel) => {
      const backend = await backendOn(kernel);
      try {
        const error = await start(backend, "log").catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(WorldUnavailable);
        expect(error).toMatchObject({
          message: expect.stringContaining("seccomp log"),
          hint: expect.stringContaining("world.seccomp: enforce"),
        });
        expect((await start(backend, "enforce")).isolation.seccomp).toBe("on");
      } finally {
        await backend.close();
      }
    },
  );

  test.each(["has a listener already"] as const)(
    "%s gives no world the host's network, whose sockets would be open; a network of its own it has",
    async (kernel) => {
      const backend = await backendOn(kernel);
      try {
        const error = await start(backend, "enforce", { hostNetwork: true }).catch(
          (reason: unknown) => reason,
        );
        expect(error).toBeInstanceOf(WorldUnavailable);
        expect(error).toMatchObject({
          message: expect.stringContaining("isolate_network: false"),
          hint: expect.stringContaining("Remove 'isolate_network: false'"),
        });
        expect((await start(backend, "enforce")).isolation.net).toBe("on");
      } finally {
        await backend.close();
      }
    },
  );

  test("is older than 5.19 makes one, and it tells", async () => {
    const backend = await backendOn("is older than 5.19");
    try {
      const world = await start(backend, "log");
      const told: WorldViolation[] = [];
      const ending = await world.exec({
        argv: ["/bin/sh", "-c", "unshare --ipc true"],
        cwd: folder,
        env: { PATH: "/usr/bin:/bin" },
        stdin: undefined,
        background: "kill",
        window: 4096,
        onOutput: () => undefined,
        onViolation: (violation) => told.push(violation),
      }).ending;
      expect(ending).toMatchObject({ kind: "exited", code: 1 });
      expect(told).toMatchObject([{ subject: "unshare" }]);
    } finally {
      await backend.close();
    }
  });
});

async function found<T>(look: () => T | undefined): Promise<T> {
  for (const end = Date.now() + 5000; Date.now() < end; await sleep(10)) {
    const value = look();
    if (value !== undefined) return value;
  }
  throw new Error("Nothing was found in five seconds");
}
