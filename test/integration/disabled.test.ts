/** `SUBSTRATE_WORLD=disabled`: the same policy and the same record, and the host in place of a world. */
import { readFileSync, readlinkSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExecuteReply, Span } from "../../schemas/generated/types.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { processesWith } from "../support/processes/processes.ts";
import { actors, runAs } from "../support/users/users.ts";

const POLICY = (more = ""): string => `id: default
name: Disabled
mode: enforce
commands: { denied: ["factor *"], isolated: ["touch held"], opaque: allow }
${more}`;

const OFF = { env: { SUBSTRATE_WORLD: "disabled" } };

describe.each(actors())("a command with SUBSTRATE_WORLD=disabled, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY() } });
  });
  afterAll(() => broker.stop());

  const exec = (words: readonly string[], more: object = {}) =>
    broker.cli(["exec", ...words], { ...OFF, ...more });

  test("runs on the host, with its input, outputs and exit code", async () => {
    const place = await exec(["--", "readlink /proc/self/ns/pid; readlink /proc/self/ns/net"]);
    expect(place.stdout).toBe(`${readlinkSync("/proc/self/ns/pid")}\n${readlinkSync("/proc/self/ns/net")}\n`);
    const ran = await exec(["--", "tr a-z A-Z; echo err >&2; echo x > written; exit 7"], { stdin: "typed" });
    expect(ran).toMatchObject({ code: 7, stdout: "TYPED" });
    expect(ran.stderr).toContain("err\n");
    expect(readFileSync(join(broker.project, "written"), "utf8")).toBe("x\n");
    expect(await exec(["--", "no-such-program", "x"])).toMatchObject({ code: 127 });
    expect(await exec(["--", "kill -9 $$"])).toMatchObject({ code: 137 });
    const much = await exec(["--", "head -c 3000000 /dev/zero | tr '\\0' x"]);
    expect(much.stdout).toHaveLength(3_000_000);
  });

  test("keeps the order of two outputs that are one", async () => {
    const { root } = await installationFor(actor);
    const words = ["sh", "-c", 'exec "$@" 2>&1', "sh", join(root, ".build/substrate"), "exec", "--"];
    const place = { cwd: broker.project, env: { SUBSTRATE_HOME: broker.home, ...OFF.env } };
    const cmd = "for i in $(seq 200); do echo out; echo err >&2; done; exit 3";
    const ran = await runAs(actor, [...words, cmd], place);
    expect(ran).toMatchObject({ code: 3, stdout: "out\nerr\n".repeat(200) });
    const missing = await runAs(actor, [...words, "no-such-program", "x"], place);
    expect(missing.code).toBe(127);
  });

  test("says in the reply and in its span that every isolation is off", async () => {
    const { stdout } = await exec(["--json", "--", "echo on"]);
    const { isolation, span_id: span } = JSON.parse(stdout) as ExecuteReply;
    const words: string[] = Object.values(isolation);
    expect(words.filter((word) => !word.startsWith("off"))).toEqual([]);
    const recorded: Span = await broker.span(span);
    expect(recorded).toMatchObject({ event_type: "command_complete", exit: 0, isolation, cmd: "echo on" });
    expect(recorded.fs_diff).toMatchObject({ truncated: true });
    expect((await broker.cli(["trace", "verify"])).code).toBe(0);
  });

  test("meets the same policy: what is denied does not run, what must be isolated neither", async () => {
    const denied = await exec(["--", "echo ran > denied; factor 4"]);
    expect(denied).toMatchObject({ code: 126, stdout: "" });
    expect(() => readFileSync(join(broker.project, "denied"))).toThrow(/ENOENT/);
    const isolated = await exec(["--", "touch held"]);
    expect(isolated.code).toBe(125);
    expect(isolated.stderr).toContain("the policy isolates this command");
    expect(() => readFileSync(join(broker.project, "held"))).toThrow(/ENOENT/);
  });

  test("is ended with everything in its group by its time limit", async () => {
    const marker = `marked-${randomBytes(6).toString("hex")}`;
    const late = await exec(["--timeout", "1s", "--", `: ${marker}; sleep 600 & sleep 600; : ${marker}`]);
    expect(late.code).not.toBe(0);
    expect(await eventually(() => processesWith(marker).length === 0, 5000)).toBe(true);
  });

  test("is not an agent's to ask for, and not a program's with a terminal", async () => {
    const asked = await broker.refused({ cmd: "true", world: "disabled" });
    expect(asked).toMatchObject({ status: 400, code: "invalid_request", path: "world" });
    expect((await broker.cli(["run", "--", "true"], OFF)).stderr).toContain("SUBSTRATE_WORLD=disabled");
    const plain = await broker.run("readlink /proc/self/ns/pid");
    expect(plain.stdout).not.toBe(`${readlinkSync("/proc/self/ns/pid")}\n`);
  });

  test("is refused with 503 under a policy that requires any isolation", async () => {
    const strict = await TestBroker.start(actor, {
      policies: { default: POLICY("world: { require: [pid] }\n") },
    });
    try {
      const refused = await strict.cli(["exec", "--json", "--", "echo ran > required"], OFF);
      expect(refused.code).toBe(125);
      expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: "isolation_unavailable" } });
      expect(() => readFileSync(join(strict.project, "required"))).toThrow(/ENOENT/);
    } finally {
      await strict.stop();
    }
  });
});
