import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { needs } from "../support/run/needs.ts";
import { StreamClient } from "../support/broker/stream.ts";

const POLICY = `id: default
name: Asks
mode: enforce
approval: { require: true, preview: off }
`;

describe.each(actors())("an answer about a command without input, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  const inProject = (name: string): string => join(broker.project, name);

  /** Runs a command with input that arrives while it runs, or with none. */
  const typed = async (cmd: string, input: string | undefined): Promise<string | undefined> => {
    const client = await StreamClient.open(broker, { cmd, ...(input === undefined ? { stdin: false } : {}) });
    if (input !== undefined) client.type(input);
    client.tell({ type: "stdin_eof" });
    const { error, type } = await client.ended();
    return error?.code ?? type;
  };

  test.each(["session", "always"] as const)(
    "for %s holds on a stream without input, and not for input that arrives while it runs",
    async (how) => {
      const cmd = `tee ${how}`;
      await person.approve({ cmd }, how);
      expect(await typed(cmd, "evil")).toBe("approval_required");
      expect(existsSync(inProject(how))).toBe(false);
      expect(await typed(cmd, undefined)).toBe("exit");
      expect(await person.told({ cmd })).toMatchObject({ status: 200 });
    },
  );

  test("an answer about input that arrives is one for such a stream, and says so to the person", async () => {
    const cmd = "tee given";
    expect(await typed(cmd, "text")).toBe("approval_required");
    const question = (await person.list()).approvals.find(({ subject }) => subject.cmd === cmd);
    expect(question?.subject.stdin).toBe("live");
    expect((await broker.cli(["approvals"])).stdout).toContain("arrives while the command runs");
    await person.answer(question?.approval_id, "always");
    expect(await typed(cmd, "text")).toBe("exit");
    expect(existsSync(inProject("given"))).toBe(true);
    expect(await person.told({ cmd })).toMatchObject({ code: "approval_required" });
  });

  test("a program that runs its input is approved for one run where the input is not known", async () => {
    needs("perl");
    expect(await typed("perl", "unlink 'kept'")).toBe("approval_required");
    const question = (await person.list()).approvals.find(({ subject }) => subject.cmd === "perl");
    expect(question?.offers).toEqual(["once", "deny"]);
    const { approval_id: id } = await person.told({ cmd: "perl", stdin_b64: "MTs=" });
    expect((await person.question(id)).offers).toEqual(["once", "session", "always", "deny"]);
  });

  test("and in a world, is none for the same command on the host", async () => {
    const body = { agent_id: "human", cwd: broker.project, cmd: "touch placed" };
    const code = async (more: object): Promise<string | undefined> =>
      ((await broker.operator("POST", "/v1/execute", { ...body, ...more })).document as Refused).error?.code;
    expect(await code({})).toBe("approval_required");
    await person.answer((await person.list()).approvals.at(-1)?.approval_id, "always");
    expect(await code({ world: "disabled" })).toBe("approval_required");
    expect(existsSync(inProject("placed"))).toBe(false);
    const question = (await person.list()).approvals.at(-1);
    expect(question?.subject.world).toBe("disabled");
    expect((await broker.cli(["approvals"])).stdout).toContain("on this machine, without a world");
    expect(await code({})).toBeUndefined();
    await person.answer(question?.approval_id, "session");
    expect(await code({ world: "disabled" })).toBeUndefined();
  });
});

type Refused = { readonly error?: { readonly code: string } };
