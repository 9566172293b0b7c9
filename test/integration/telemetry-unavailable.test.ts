import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { TelemetryReport, World } from "../../world/backend.ts";
import { LinuxBackend } from "../../world/linux/backend.ts";
import { DIRECT, type Launcher, LaunchFailed } from "../../world/linux/launch.ts";
import { PRELOAD_LIBRARY } from "../../world/model/telemetry.ts";
import { installationFor } from "../support/broker/installation.ts";
import { currentUser } from "../support/users/users.ts";

/** Worlds that are asked for reports and may have no library: the interface between world and broker. */
let folder = "";
let backend: LinuxBackend | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sb-"));
});
afterEach(async () => {
  await backend?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function worldWith(
  library: string | undefined,
  telemetry = true,
  launcher: Launcher = DIRECT,
): Promise<World> {
  const { root } = await installationFor(currentUser());
  const { uid, gid } = currentUser();
  const own = { strays: join(folder, ".strays"), quarantine: join(folder, ".quarantine") };
  const preload = library === undefined ? {} : { preload: library };
  backend = new LinuxBackend({
    init: join(root, ".build/substrate-init"),
    ...preload,
    launcher,
    uid,
    gid,
    ...own,
  });
  return await backend.start("wld_telemetry", specFor(telemetry), AbortSignal.timeout(20_000));
}

function specFor(telemetry: boolean): World["spec"] {
  return {
    project: folder,
    identity: "x",
    access: { kind: "direct" },
    files: { read: ["/**"], denyRead: [], write: [`${folder}/**`], denyWrite: [], seal: [] },
    hidden: [],
    sealed: [],
    limits: {},
    seccomp: "enforce",
    network: { ports: [], ranges: [] },
    ...(telemetry ? { telemetry } : {}),
  };
}

type Told = { readonly output: string; readonly reports: readonly TelemetryReport[] };

async function run(world: World, cmd: string): Promise<Told> {
  const reports: TelemetryReport[] = [];
  let output = "";
  const { ending } = world.exec({
    argv: ["/bin/sh", "-c", cmd],
    cwd: folder,
    env: { PATH: "/usr/bin:/bin" },
    stdin: undefined,
    background: "kill",
    window: 1 << 20,
    onOutput: (_stream, bytes) => {
      output += Buffer.from(bytes).toString();
    },
    onViolation: () => undefined,
    onTelemetry: (report) => reports.push(report),
  });
  expect(await ending).toMatchObject({ kind: "exited", code: 0 });
  return { output, reports };
}

/** What is there while nothing is loaded: no variable, no file, no message of the dynamic linker's. */
const LOOK = "env; ls /run; : >made 2>&1; /bin/true 2>&1";

async function expectNothing(world: World): Promise<void> {
  const { output, reports } = await run(world, LOOK);
  expect(output).not.toMatch(/preload|TELEMETRY/i);
  expect(reports).toEqual([{ kind: "counts", counts: undefined }]);
}

async function library(): Promise<string> {
  const { root } = await installationFor(currentUser());
  return join(root, ".build/substrate-preload.so");
}

test("a world whose library was never built says so, and its commands run without", async () => {
  const world = await worldWith(join(folder, "substrate-preload.so"));
  expect(world.telemetry).toEqual({ on: false, why: expect.stringContaining("npm run build") });
  await expectNothing(world);
});

test("so does one that knows of none, and one whose library is a link to it", async () => {
  await expectNothing(await worldWith(undefined));
  await backend?.close();
  symlinkSync(await library(), join(folder, "link.so"));
  const world = await worldWith(join(folder, "link.so"));
  expect(world.telemetry).toMatchObject({ on: false });
  await expectNothing(world);
});

test("a world that is not asked has nothing of it, whoever listens", async () => {
  const world = await worldWith(await library(), false);
  expect(world.telemetry).toBeUndefined();
  await expectNothing(world);
});

test("a library from any folder is found at the same place inside", async () => {
  copyFileSync(await library(), join(folder, "a library: of blanks.so"));
  const world = await worldWith(join(folder, "a library: of blanks.so"));
  expect(world.telemetry).toEqual({ on: true });
  writeFileSync(join(folder, "file"), "");
  const { reports } = await run(world, "rm file");
  const events = reports.flatMap((report) => (report.kind === "events" ? report.events : []));
  expect(events).toContainEqual({ kind: "unlink", text: join(folder, "file"), cut: false });
});

test.each([
  ["its place", PRELOAD_LIBRARY],
  ["the file", "library"],
])("a host that refuses %s makes the world without, and says why", async (_what, refused) => {
  const source = await library();
  const path = refused === "library" ? source : refused;
  const world = await worldWith(source, true, {
    ...DIRECT,
    launch: (id, plan, signal) => {
      const asks = plan.plan.mounts.some((mount) => mount.op === "bind" && mount.target === PRELOAD_LIBRARY);
      if (asks) throw new LaunchFailed("mount bind", path, "EACCES");
      return DIRECT.launch(id, plan, signal);
    },
  });
  expect(world.telemetry).toEqual({
    on: false,
    why: expect.stringContaining(`'${path}' failed with EACCES`),
  });
  await expectNothing(world);
});
