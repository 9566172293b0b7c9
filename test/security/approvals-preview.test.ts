import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ApprovalPreviewReply } from "../../schemas/generated/types.ts";
import { actors, runAs } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { ROOT_OVERLAY, TestBroker } from "../support/broker/broker.ts";
import { processesWith } from "../support/processes/processes.ts";

const POLICY = `id: default
name: Asks
mode: enforce
fs:
  write: ["$PROJECT/**"]
commands:
  ask: ["touch *", "./deploy.sh *", "tool *", "sh deploy.sh", "sh link.sh", "echo *"]
  denied: ["touch never*"]
  opaque: ask
`;

describe.each(actors())("previews, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    person = new Person(broker);
  });
  const toRemove: string[] = [];
  afterAll(async () => {
    for (const folder of toRemove) rmSync(folder, { recursive: true, force: true });
    await broker.stop();
  });

  const inProject = (name: string): string => join(broker.project, name);
  const setPolicy = (text: string): void => broker.write(join(broker.home, "policies/default.yaml"), text);

  test("a preview runs nothing for effect: no file outside, nothing left, no process, and nothing for what is denied", async () => {
    // Not below /tmp, which a world has of its own.
    const outside = (
      await runAs(actor, ["mktemp", "-d", join(actor.home, "sb-outside-XXXXXX")])
    ).stdout.trim();
    toRemove.push(outside);
    setPolicy(POLICY.replace('"$PROJECT/**"', `"$PROJECT/**", "${outside}/**"`));
    const cmd = `touch inside; touch '${outside}/new' || echo no; sleep 77.125 & echo done >> inside`;
    const { approval_id: id } = await person.told({ cmd });
    const { status, document } = await broker.operator("POST", `/v1/approvals/${id}/preview`);
    expect(status, JSON.stringify(document)).toBe(200);
    expect((document as ApprovalPreviewReply).preview).toMatchObject({
      state: "done",
      writes: 1,
      names: ["inside"],
    });
    expect(readdirSync(outside)).toEqual([]);
    expect(existsSync(inProject("inside"))).toBe(false);
    expect(processesWith("77.125")).toEqual([]);
    expect(await leftLayers()).toEqual([]);
    await person.answer(id, "once");
    await broker.run({ cmd });
    expect(readdirSync(outside)).toEqual(["new"]);
    expect(readFileSync(inProject("inside"), "utf8")).toBe("done\n");
    setPolicy(POLICY);
    const denied = await person.told({ cmd: "touch never-1" });
    expect(denied).toMatchObject({ code: "policy_denied" });
    expect(denied.approval_id).toBeUndefined();
    expect(await broker.operator("POST", `/v1/approvals/${denied.span_id}/preview`)).toMatchObject({
      status: 404,
    });
  });

  test("folders deeper than a path can be long are listed as far as one reaches, which is said, and are gone too", async () => {
    const deep = "for n in $(seq 60); do mkdir $name && cd -P $name || exit 1; done; mkdir x; chmod 0 x";
    const cmd = `touch before; name=$(printf %0200d 0); ${deep}`;
    const { approval_id: id } = await person.told({ cmd, shell: "bash" });
    const { document } = await broker.operator("POST", `/v1/approvals/${id}/preview`);
    expect((document as ApprovalPreviewReply).preview).toMatchObject({
      state: "done",
      truncated: true,
      names: expect.arrayContaining(["before"]),
    });
    expect(await leftLayers()).toEqual([]);
  });

  test("a preview ends with its time", async () => {
    const { approval_id: id } = await person.told({ cmd: "touch before; sleep 60", timeout_ms: 300 });
    const trying = broker.operator("POST", `/v1/approvals/${id}/preview`);
    await expect.poll(() => readdirSync(layersFolder()), { interval: 10 }).toHaveLength(1);
    const { document } = await trying;
    expect((document as ApprovalPreviewReply).preview).toMatchObject({ timed_out: true, writes: 1 });
    expect(await leftLayers()).toEqual([]);
  });

  function layersFolder(): string {
    const hash = createHash("sha256").update(broker.home).digest("hex").slice(0, 16);
    return actor.uid === 0 ? join(ROOT_OVERLAY, hash) : join(broker.home, "overlay");
  }

  /** The folders of overlays that exist; what was previewed is removed a moment after its answer. */
  async function leftLayers(): Promise<readonly string[]> {
    await expect.poll(() => readdirSync(layersFolder()), { timeout: 5000 }).toEqual([]);
    return readdirSync(layersFolder());
  }
});
