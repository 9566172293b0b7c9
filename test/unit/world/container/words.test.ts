import { describe, expect, test } from "vitest";
import { docker } from "../../../../world/container/docker.ts";
import { runtimeEnvironment } from "../../../../world/container/environment.ts";
import { podman } from "../../../../world/container/podman.ts";
import { type ContainerRuntime, runWords } from "../../../../world/container/runtime.ts";

const CONTAINER = {
  name: "substrate-wld_1",
  owner: "/home/ann/.substrate/run/containers",
  init: "/opt/substrate/.build/substrate-init",
  folder: "/home/ann/.substrate/run/containers/w-abc",
};

function words(runtime: ContainerRuntime): readonly string[] {
  return runWords(runtime, ["ROOT"], CONTAINER);
}

function capabilities(runtime: ContainerRuntime): readonly string[] {
  return words(runtime)
    .filter((word) => word.startsWith("--cap-add="))
    .map((word) => word.slice("--cap-add=".length));
}

const OPTIONS = { environment: {}, folder: CONTAINER.owner };
const RUNTIMES: readonly (readonly [string, ContainerRuntime])[] = [
  ["podman for root", podman({ ...OPTIONS, uid: 0 })],
  ["podman for a user", podman({ ...OPTIONS, uid: 1000 })],
  ["docker for root", docker({ ...OPTIONS, uid: 0 })],
  ["docker for a user", docker({ ...OPTIONS, uid: 1000 })],
];

describe("what a container runtime is asked", () => {
  test.each(RUNTIMES)(
    "%s: no network, no privileged mode, removed at its end, ours by name and label",
    (_who, runtime) => {
      const asked = words(runtime);
      for (const word of [
        "--rm",
        "--network=none",
        "--cap-drop=all",
        "--read-only",
        "--name=substrate-wld_1",
        `--label=substrate.owner=${CONTAINER.owner}`,
        "--volume=/:/host",
      ])
        expect(asked).toContain(word);
      expect(asked.filter((word) => /privileged|--pid=|--ipc|--uts|--publish|--device/.test(word))).toEqual(
        [],
      );
      expect(asked.at(-4)).toBe("ROOT");
      expect(asked.slice(-3)).toEqual([
        "/host/opt/substrate/.build/substrate-init",
        "/host",
        "/host/home/ann/.substrate/run/containers/w-abc",
      ]);
    },
  );

  test("a user's podman adds no capability and keeps the uid; docker's are four that init gives up", () => {
    const user = podman({ ...OPTIONS, uid: 1000 });
    expect(capabilities(user)).toEqual([]);
    expect(words(user)).toContain("--userns=keep-id");
    expect(capabilities(docker({ ...OPTIONS, uid: 1000 }))).toEqual([
      "SYS_ADMIN",
      "SETUID",
      "SETGID",
      "DAC_OVERRIDE",
    ]);
  });

  test("podman's OCI runtime is a global option, and stands in the name", () => {
    const runtime = podman({ ...OPTIONS, uid: 1000, ociRuntime: "runc" });
    expect([runtime.name, ...runtime.program.words]).toEqual(["podman:runc", "podman", "--runtime=runc"]);
  });

  test("a runtime sees nothing of the broker's environment but what it needs to work here", () => {
    expect(
      runtimeEnvironment({
        HOME: "/home/ann",
        AWS_SECRET_ACCESS_KEY: "x",
        CONTAINER_HOST: "ssh://far",
        PATH: "/bin",
      }),
    ).toEqual({ HOME: "/home/ann", PATH: "/bin" });
  });
});
