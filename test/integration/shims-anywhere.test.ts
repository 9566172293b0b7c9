/** Shims where no project can be: judged by the policy that the operator gives, and on record where they were. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorReply, Span } from "../../schemas/generated/types.ts";
import { type Ended, actors, runAs } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { pathWithShims, SHIM_POLICY, toolFor } from "../support/broker/shims.ts";

const POLICY = SHIM_POLICY.replace("denied: [", 'denied: ["tool look $PROJECT/*", ');

describe.each(actors())("shims in no project, as $kind", (actor) => {
  describe.each(["enforce", "observe"] as const)("in %s mode", (mode) => {
    let broker: TestBroker;
    let bin = "";
    beforeAll(async () => {
      broker = await TestBroker.start(actor, {
        policies: { default: POLICY.replace("enforce", mode), narrow: NARROW },
        config: `policies: { projects: { /usr: narrow } }\n`,
      });
      bin = await toolFor(broker);
    });
    afterAll(() => broker.stop());

    function shell(script: string, cwd: string, env: object = {}): Promise<Ended> {
      const all = { PATH: pathWithShims(broker, bin), SUBSTRATE_HOME: broker.home, ...env };
      return runAs(actor, ["/bin/sh", "-c", script], { cwd, env: all });
    }

    function recorded(words: readonly string[]): Span | undefined {
      const cmd = JSON.stringify(words);
      return broker.spans().find((span) => span.component === "shim" && span.cmd === cmd);
    }

    test.each([
      ["the root folder", () => "/"],
      ["the home folder", () => actor.home],
      ["a system folder", () => "/etc"],
      ["SUBSTRATE_HOME", () => broker.home],
    ])("in %s a rule decides as elsewhere, and what starts is on record there", async (what, place) => {
      const file = join(broker.project, what.replaceAll(" ", "-"));
      const twin = ["tool", "twin", "touch", file];
      expect(await shell(twin.join(" "), place())).toMatchObject({ code: 0, stderr: "" });
      expect(existsSync(file)).toBe(true);
      expect(recorded(twin)).toMatchObject({ cwd: place(), decision: { verdict: "allow", mode } });
      const denied = ["tool", "denied", "touch", `${file}-denied`];
      const { code, stderr } = await shell(denied.join(" "), place());
      const [wanted, verdict] = mode === "enforce" ? [126, "deny"] : [0, "would_deny"];
      expect([code, existsSync(`${file}-denied`)], stderr).toEqual([wanted, mode !== "enforce"]);
      expect(recorded(denied)).toMatchObject({ cwd: place(), decision: { verdict } });
    });

    test("a folder that is deleted under whoever works there is one of these", async () => {
      const folder = join(broker.project, "deleted");
      const { code, stderr } = await shell(
        `mkdir '${folder}' && cd '${folder}' && rmdir '${folder}' && tool gone`,
        "/",
      );
      // The tool's own shell says something about it.
      expect([code, stderr]).toEqual([0, expect.not.stringContaining("substrate")]);
      expect(recorded(["tool", "gone"])).toMatchObject({ cwd: `${folder} (deleted)` });
    });

    test("SHIM_BYPASS=1 starts what is denied, and that is on record", async () => {
      const words = ["tool", "denied", "touch", join(broker.project, "bypassed")];
      const ended = await shell(words.join(" "), "/", { SHIM_BYPASS: "1" });
      expect([ended.code, ended.stderr]).toEqual([0, ""]);
      expect(recorded(words)).toMatchObject({ cwd: "/", message: expect.stringContaining("SHIM_BYPASS=1") });
    });

    test("nothing is in $PROJECT, and the operator's policy for the folder holds", async () => {
      const refused = mode === "enforce" ? 126 : 0;
      expect((await shell("tool look /a", "/")).code).toBe(0);
      expect((await shell(`tool look '${broker.project}/a'`, broker.project)).code).toBe(refused);
      expect((await shell("tool narrowed", "/")).code).toBe(0);
      expect((await shell("tool narrowed", "/usr/lib")).code).toBe(126);
    });

    test("commands and questions that are no shim's get no such place", async () => {
      for (const path of ["/v1/execute", "/v1/check"]) {
        const body = { agent_id: "ann", argv: ["true"], cwd: "/" };
        const { status, document } = await broker.call("POST", path, body);
        expect([status, (document as ErrorReply).error.code]).toEqual([403, "project_not_allowed"]);
      }
    });
  });

  test("what asks there waits for a person, who is offered no answer for always", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: SHIM_POLICY } });
    try {
      const env = { PATH: pathWithShims(broker, await toolFor(broker)), SUBSTRATE_HOME: broker.home };
      const person = new Person(broker);
      const file = join(broker.project, "asked");
      const running = runAs(actor, ["/bin/sh", "-c", `tool ask touch '${file}'`], { cwd: "/", env });
      const asked = await person.waitedFor();
      expect(asked).toMatchObject({ project: "/", cwd: "/" });
      expect(asked.offers).not.toContain("always");
      expect(await person.answer(asked.approval_id, "once")).toEqual({ status: 200 });
      expect(await running).toMatchObject({ code: 0, stderr: expect.stringContaining("waits for a person") });
      expect(await eventually(() => existsSync(file), 5000)).toBe(true);
    } finally {
      await broker.stop();
    }
  });
});

const NARROW = `id: narrow
name: Of one folder
mode: enforce
commands: { denied: ["tool narrowed"] }
`;
