import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type Actor, actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import {
  cgroupsOfRuntimes,
  containersOf,
  dockerImage,
  type Engine,
  engineEnvironment,
  runEngine,
  whyNoContainers,
} from "../support/world/containers.ts";
import { recordSkip, skip } from "../support/run/skips.ts";
import { TestAgent } from "../support/world/agent.ts";
import { backendCases } from "../support/world/backend-cases.ts";

const cgroups = cgroupsOfRuntimes();
const agents: TestAgent[] = [];
const images: { readonly removeNew: () => Promise<void> }[] = [];
afterAll(async () => {
  for (const image of images) await image.removeNew();
  for (const agent of agents) await agent.stop();
  cgroups.removeNew();
});

for (const actor of actors()) {
  backendCases(actor, {
    word: "linux",
    backend: /^linux$/,
    environment: { SUBSTRATE_BACKEND: "linux" },
    hasNetwork: true,
    holds: true,
    leftovers: () => Promise.resolve([]),
  });

  const agent = await TestAgent.start(actor);
  agents.push(agent);
  backendCases(actor, {
    word: "agent",
    backend: /^agent:linux$/,
    environment: agent.environment,
    hasNetwork: true,
    holds: true,
    leftovers: () => Promise.resolve([]),
  });

  for (const engine of ["podman", "docker"] satisfies Engine[]) {
    const why = await whyNoContainers(actor, engine);
    if (why !== undefined) {
      recordSkip({ what: `the backend ${engine}, as ${actor.kind}`, why });
      continue;
    }
    backendCases(actor, {
      word: engine,
      backend: new RegExp(`^container:${engine}(:runc)?$`),
      environment: { ...engineEnvironment(actor), SUBSTRATE_BACKEND: engine },
      hasNetwork: false,
      holds: false,
      leftovers: () => containersOf(actor, engine),
    });
    if (engine === "podman") leftoverCases(actor);
    if (engine === "docker") images.push(await dockerImage(actor));
  }
}

function leftoverCases(actor: Actor): void {
  test(`podman as ${actor.kind}: the next broker removes a container of its home that stayed, and nobody else's`, async () => {
    const environment = { ...engineEnvironment(actor), SUBSTRATE_BACKEND: "podman" };
    const broker = await TestBroker.start(actor, { environment });
    const owner = join(broker.home, "run/containers");
    const [ours, other] = [`substrate-left-${process.pid}`, `substrate-other-${process.pid}`];
    try {
      await broker.kill("SIGKILL");
      for (const [name, label] of [
        [ours, owner],
        [other, "/home/of/another"],
      ] as const) {
        const create = ["podman", "create", "--network=none", `--name=${name}`];
        const words = [`--label=substrate.owner=${label}`, "--rootfs", broker.project, "/bin/true"];
        expect(await runEngine(actor, [...create, ...words])).toMatchObject({ code: 0 });
      }
      const next = await broker.again();
      expect(await next.run("echo on")).toMatchObject({ stdout: "on\n" });
      await next.kill("SIGTERM");
      expect(await containersOf(actor, "podman")).toEqual([other]);
    } finally {
      await runEngine(actor, ["podman", "rm", "--force", "--ignore", ours, other]);
      await broker.stop();
    }
  });
}

/** A PATH on which there is what starts the broker as another user, and no container runtime. */
function pathWithoutRuntimes(): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "substrate-path-"));
  chmodSync(path, 0o755);
  for (const name of ["setpriv", "unshare"]) symlinkSync(`/usr/bin/${name}`, join(path, name));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

describe.each(actors())("choosing a backend, as $kind", (actor) => {
  test("a forced runtime that is not there is unavailable: nothing falls back to another backend", async () => {
    const { path, remove } = pathWithoutRuntimes();
    const broker = await TestBroker.start(actor, {
      environment: { PATH: path, SUBSTRATE_BACKEND: "podman" },
    });
    try {
      const refusal = await broker.refused({ cmd: "touch ran" });
      expect(refusal).toMatchObject({ status: 503, code: "isolation_unavailable" });
      expect(refusal.message).toContain("'podman' is not installed");
      expect(refusal.hint).toContain("Install podman");
      expect(await broker.call("GET", "/v1/health")).toMatchObject({ status: 503 });
    } finally {
      await broker.stop();
      remove();
    }
  });

  test("a backend that there is not keeps the broker from starting, in words", async () => {
    const broker = await TestBroker.start(actor);
    try {
      await broker.kill("SIGTERM");
      const started = await broker.cli(["broker", "start"], { env: { SUBSTRATE_BACKEND: "gvisor" } });
      expect(started.code).toBe(125);
      expect(started.stderr).toMatch(
        /'gvisor' as SUBSTRATE_BACKEND: it must be one of linux, podman, docker, lima, agent/,
      );
    } finally {
      await broker.stop();
    }
  });
});

/** As on a host that lets nobody make a user namespace: the broker runs in one where their number is none. */
const NO_USER_NAMESPACES = [
  "unshare",
  "--user",
  "--map-current-user",
  "--keep-caps",
  "/bin/sh",
  "-c",
  'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all -- "$0" "$@"',
];

describe.each(actors().filter(({ uid }) => uid !== 0))(
  "a host without user namespaces, as $kind",
  (actor) => {
    test("with no container runtime either, a 503 names each thing that was tried, and nothing has run", async () => {
      const { path, remove } = pathWithoutRuntimes();
      const broker = await TestBroker.start(actor, {
        wrap: () => NO_USER_NAMESPACES,
        environment: { PATH: path },
      });
      try {
        const refusal = await broker.refused({ cmd: "touch ran" });
        expect(refusal).toMatchObject({ status: 503, code: "isolation_unavailable" });
        expect(refusal.message).toMatch(/linux: .*unshare user failed with ENOSPC/);
        expect(refusal.message).toContain("container:podman: 'podman' is not installed");
        expect(refusal.message).toContain("container:docker: 'docker' is not installed");
        expect(refusal.hint).toMatch(/world doctor.*Install podman.*Start docker/);
        expect(existsSync(join(broker.project, "ran"))).toBe(false);
      } finally {
        await broker.stop();
        remove();
      }
    });

    test("with a container runtime that may make them, commands run in its worlds and the log says why", async () => {
      const why = await whyNoContainers(actor, "docker");
      if (why !== undefined) skip("falling back to docker where the broker may make no world", why);
      const broker = await TestBroker.start(actor, {
        wrap: () => NO_USER_NAMESPACES,
        environment: engineEnvironment(actor),
      });
      try {
        const reply = await broker.run("touch ran; id -u");
        expect(reply).toMatchObject({ stdout: `${actor.uid}\n`, isolation: { backend: "container:docker" } });
        expect(existsSync(join(broker.project, "ran"))).toBe(true);
        const log = readFileSync(join(broker.home, "log/broker.log"), "utf8");
        expect(log).toMatch(
          /"refused":\[\{"backend":"linux","message":"[^"]*unshare user failed with ENOSPC/,
        );
      } finally {
        await broker.stop();
      }
    });
  },
);
