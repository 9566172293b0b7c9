import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Span } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

function isDiscard({ held_changes: event, outcome }: Span): boolean {
  return event?.action === "discard" && outcome === "ended";
}

/** Of the broker that the tour starts for its step about the network. */
const LEFT = "sb-tour-";

describe.each(actors())("the tour, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
    // The tour's own broker has settings of its own, which list no project.
    broker.write(join(broker.project, ".git/description"), "");
  });
  afterAll(() => broker.stop());

  test("shows what it promises with the shipped policies, and leaves nothing of its own broker", async () => {
    const env = { TMPDIR: broker.folder };
    const { code, stdout, stderr } = await broker.cli(["tour"], { env });
    expect(code, stdout + stderr).toBe(0);
    // Before the first stop: who sees them believes that the policy stops things already.
    expect(stdout).toMatch(/^\nYour policy only observes: commands run as before/);
    expect(stdout).toMatch(/^'mode: enforce' in \/.*\/policies\/default\.yaml makes it stop them\./m);
    expect(stdout).toMatch(
      /^ {4}substrate: The name 'collector\.example' was not looked up \(A\): net\.allowed \(tour\.yaml:\d+\)/m,
    );
    expect(stdout).toMatch(/^ {4}hello from this machine$/m);
    // What the isolated command wrote is shown as a patch, and discarded.
    expect(stdout).toMatch(/^ {4}\+\+\+ b\/substrate-tour\.txt$/m);
    expect(stdout).toMatch(/^ {4}\+changed$/m);
    expect(readdirSync(broker.project)).not.toContain("substrate-tour.txt");
    expect(broker.spans().some(isDiscard)).toBe(true);
    expect(stdout).toMatch(/^ {4}connection host\.internal:\d+, 0 bytes out, 24 in, [\d.]+ ms, bash$/m);
    expect(readdirSync(broker.folder).filter((name) => name.startsWith(LEFT))).toEqual([]);
    expect(brokersIn(broker.home)).toHaveLength(1);
    expect(brokersIn(join(broker.folder, LEFT))).toEqual([]);
    const hosts = broker.spans().flatMap(({ connection }) => connection?.host ?? []);
    expect(hosts).toEqual([]);
  });

  test("stops at what is not as promised: an operator's policy that lets no command of it run", async () => {
    const strict = 'id: default\nname: None\nmode: enforce\ncommands: { denied: ["git *", "ls *"] }\n';
    const other = await TestBroker.start(actor, { policies: { default: strict } });
    try {
      const { code, stderr } = await other.cli(["tour"]);
      expect(code).toBe(125);
      expect(stderr).toContain("The tour stops here: Policy 'default' denies this command");
    } finally {
      await other.stop();
    }
  });
});

/** Processes whose SUBSTRATE_HOME begins so. */
function brokersIn(home: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").includes(`SUBSTRATE_HOME=${home}`);
    } catch {
      // No process, or one that has ended meanwhile.
      return false;
    }
  });
}
