import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { describeMachine, mountsOf } from "../../../lima/description.ts";

const LIMA = fileURLToPath(new URL("../../../lima/", import.meta.url));
const TEMPLATE = readFileSync(join(LIMA, "substrate.yaml"), "utf8");

const GROUND = {
  home: "/Users/me",
  projects: [`/Users/me/it's: "mine" #1 $HOME`, "/Volumes/work"],
  installation: "/opt/homebrew/lib/node_modules/substrate",
  socket: "/Users/me/.substrate/sock/lima-agent.sock",
};

describe("the machine that Lima is told to make", () => {
  const made = parse(describeMachine(TEMPLATE, GROUND)) as Record<string, unknown>;

  test("shows the home to read, the projects to write under their own names, and the installation at a fixed place", () => {
    expect(made["mounts"]).toEqual([
      { location: "/Users/me", writable: false },
      { location: GROUND.projects[0], writable: true },
      { location: "/Volumes/work", writable: true },
      { location: GROUND.installation, mountPoint: "/mnt/substrate", writable: false },
    ]);
    expect(made["mounts"]).toEqual(mountsOf(GROUND));
  });

  test("forwards the agent's socket before the rule that forwards nothing else", () => {
    expect(made["portForwards"]).toEqual([
      { guestSocket: "/run/substrate-agent/agent.sock", hostSocket: GROUND.socket },
      { guestIP: "0.0.0.0", guestPortRange: [1, 65535], proto: "any", ignore: true },
    ]);
  });

  test("has images for both architectures, and no agent of ssh, no docker and no proxy of the host", () => {
    expect((made["images"] as { arch: string }[]).map(({ arch }) => arch)).toEqual(["x86_64", "aarch64"]);
    expect(made).toMatchObject({
      ssh: { forwardAgent: false, loadDotSSHPubKeys: false },
      containerd: { system: false, user: false },
      propagateProxyEnv: false,
    });
  });

  test("keeps every value of the template, whose lines of values each have a reason above", () => {
    const kept = Object.keys(parse(TEMPLATE) as object);
    expect(Object.keys(made)).toEqual(kept);
    const blocks = TEMPLATE.split(/\n\n+/).slice(1);
    for (const block of blocks) expect(block).toMatch(/^#|\n +#/);
  });

  test("a folder whose name Lima would read as a template is refused by name", () => {
    expect(() => mountsOf({ ...GROUND, projects: ["/Users/me/{{.Dir}}"] })).toThrow(
      /'\/Users\/me\/\{\{\.Dir\}\}'/,
    );
  });

  test("a text that is no YAML is an error", () => {
    expect(() => describeMachine("a: [", GROUND)).toThrow(/flow/i);
  });
});
