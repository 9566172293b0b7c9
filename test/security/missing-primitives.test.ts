import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type World, type WorldSpec, WorldUnavailable } from "../../world/backend.ts";
import { LinuxBackend } from "../../world/linux/backend.ts";
import { eventually } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { processesWith } from "../support/processes/processes.ts";
import { recordSkip } from "../support/run/skips.ts";
import { currentUser } from "../support/users/users.ts";
import { initWithout } from "../support/programs/seccomp.ts";

/** What a world is made of, by the system call (x86-64) that a kernel, or a sandbox around the broker, may refuse. */
const PRIMITIVES = [
  ["no filter can be loaded", 317, "EINVAL"],
  ["namespaces cannot be unshared", 272, "ENOSYS"],
  ["nothing can be pivoted", 155, "EPERM"],
  ["mounts cannot be restricted (before 5.12)", 442, "ENOSYS"],
  ["mounts cannot be placed", 429, "EPERM"],
  ["trees cannot be copied", 428, "EPERM"],
  ["file systems cannot be made, overlays and proc among them", 430, "EPERM"],
  ["file systems cannot be configured", 431, "EINVAL"],
  ["paths cannot be walked without links (before 5.6)", 437, "ENOSYS"],
  ["capabilities cannot be dropped", 126, "EPERM"],
  ["folders cannot be watched at all", 294, "ENOSYS"],
] as const;

const ERRNO = { EPERM: 1, EINVAL: 22, ENOSYS: 38 } as const;

describe.skipIf(process.arch !== "x64")("on a host where", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "sb-"));
    mkdirSync(join(folder, "project"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const backendWith = (init: string): LinuxBackend => {
    const { uid, gid } = currentUser();
    const [strays, quarantine] = [join(folder, "strays"), join(folder, "quarantine")];
    return new LinuxBackend({ init, uid, gid, strays, quarantine });
  };
  const start = (
    backend: LinuxBackend,
    access: WorldSpec["access"],
    project = join(folder, "project"),
  ): Promise<World> => {
    const files = {
      read: ["/**"],
      denyRead: [`${project}/.env`],
      write: [`${project}/**`],
      denyWrite: [],
      seal: [],
    };
    const rest = {
      hidden: [],
      sealed: [],
      limits: {},
      seccomp: "enforce",
      strays: "refused",
      network: { ports: [], ranges: [] },
    } as const;
    return backend.start(
      "wld_x",
      { project, identity: "x", access, files, ...rest },
      AbortSignal.timeout(15_000),
    );
  };
  const real = async (): Promise<string> =>
    join((await installationFor(currentUser())).root, ".build/substrate-init");

  test.each(PRIMITIVES)(
    "%s there is no world, nothing has run and nothing is left",
    async (_what, call, errno) => {
      const path = join(folder, `init-${call}`);
      writeFileSync(`${path}.c`, initWithout(call, ERRNO[errno], await real()));
      expect(spawnSync("cc", ["-O1", "-static", "-o", path, `${path}.c`]).stderr.toString()).toBe("");
      const backend = backendWith(path);
      try {
        const error = await start(backend, { kind: "direct" }).catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(WorldUnavailable);
        expect(error).toMatchObject({
          message: expect.stringContaining(`failed with ${errno}`),
          hint: expect.stringMatching(/./),
        });
        expect(await eventually(() => processesWith(path).length === 0, 2000)).toBe(true);
        expect(readdirSync(join(folder, "project"))).toEqual([]);
      } finally {
        await backend.close();
      }
    },
  );

  test("an overlay cannot be put together there is no isolated world, and the plain one of the same place is made", async () => {
    const backend = backendWith(await real());
    const project = join(folder, "holding");
    const layers = join(folder, "layers");
    mkdirSync(project);
    try {
      // Init follows no link to a layer: the kernel is not even asked.
      mkdirSync(layers);
      symlinkSync(tmpdir(), join(layers, "work"));
      const error = await start(backend, { kind: "overlay", layers }, project).catch(
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(WorldUnavailable);
      expect(error).toMatchObject({ message: expect.stringContaining("mount overlay") });
      expect(readdirSync(project)).toEqual([]);
      expect((await start(backend, { kind: "direct" }, project)).isolation.mount).toBe("on");
    } finally {
      await backend.close();
    }
  });
});

if (process.arch !== "x64")
  recordSkip({
    what: "on a host where",
    why: `the filter that imitates it knows x64 only, and this is ${process.arch}`,
  });
if (currentUser().uid === 0)
  recordSkip({
    what: "hosts without a primitive, as an ordinary user",
    why: "the imitation is started by this process, which is root's; run the suite as yourself",
  });
