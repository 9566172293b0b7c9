import { describe, expect, test } from "vitest";
import { effectiveOf, Gate } from "./gates.ts";
import { file, policyOf, PROJECT, started } from "./started.ts";

const sudo = file("/usr/bin/sudo", ["id"]);
const push = file("/usr/bin/git", ["push", "origin"]);
const install = file("/usr/bin/npm", ["install", "x"]);
const DENIES = { denied: [{ pattern: "sudo *", reason: "Nobody is root here" }] };

describe("a program that a rule denies", () => {
  test("does not start, and its line below the command's says which rule and why", async () => {
    const gate = new Gate(policyOf(DENIES));
    expect(await gate.starts(sudo)).toBe(false);
    expect(gate.spans).toMatchObject([
      {
        event_type: "violation",
        parent_span: "spn_command",
        component: "broker",
        code: "policy_denied",
        decision: { verdict: "deny", mode: "enforce", rule: { pattern: "sudo *", source: "p.yaml:1" } },
        violation: { kind: "program", subject: '["/usr/bin/sudo","id"]' },
      },
    ]);
    expect(gate.spans[0]?.message).toContain("Nobody is root here");
  });

  test("but another one does, and leaves no line", async () => {
    const gate = new Gate(policyOf(DENIES));
    expect(await gate.starts(file("/usr/bin/make", ["sudo"]))).toBe(true);
    expect(gate.spans).toEqual([]);
  });

  test("starts where the policy only watches, and is told once, however often", async () => {
    const gate = new Gate(policyOf(DENIES, { mode: "observe" }));
    for (let time = 0; time < 2000; time += 1) expect(await gate.starts(sudo)).toBe(true);
    expect(gate.spans).toMatchObject([{ decision: { verdict: "would_deny", mode: "observe" } }]);
  });

  test("is not told again where the command's own line says the same", async () => {
    const policy = policyOf(DENIES, { mode: "observe" });
    const told = [{ list: "commands.denied", pattern: "sudo *", fragment: "sudo id", source: "p.yaml:1" }];
    const gate = new Gate(policy, { command: "sudo id", told });
    await gate.starts(sudo);
    expect(gate.spans).toEqual([]);
    await gate.starts(file("/usr/bin/sudo", ["ls"]));
    expect(gate.spans.length).toBe(1);
  });

  test("has a line of its own a thousand times, and is counted then", async () => {
    const gate = new Gate(policyOf(DENIES));
    for (let time = 0; time < 1500; time += 1) expect(await gate.starts(sudo)).toBe(false);
    expect(gate.spans.length).toBe(1000);
    gate.gate.finish();
    expect(gate.spans[1000]).toMatchObject({ violation: { kind: "program", subject: "500 more" } });
  });

  test("leaves no secret of the command's in its line", async () => {
    const gate = new Gate(policyOf(DENIES));
    await gate.starts(file("/usr/bin/sudo", ["-p", "hush-hush", "token=abcdefghijk"]));
    expect(JSON.stringify(gate.spans)).not.toMatch(/hush-hush|abcdefghijk/);
  });
});

describe("an edit of the policy", () => {
  test("holds at the next start", async () => {
    const gate = new Gate(policyOf(DENIES));
    expect(await gate.starts(push)).toBe(true);
    gate.now = effectiveOf(policyOf({ denied: ["git push *"] }));
    expect(await gate.starts(push)).toBe(false);
    gate.now = effectiveOf(policyOf({ denied: ["git push *"] }, { mode: "observe" }));
    expect(await gate.starts(push)).toBe(true);
    expect(gate.spans.at(-1)?.decision?.verdict).toBe("would_deny");
  });

  test("that leaves no policy lets nothing start that is asked about", async () => {
    const gate = new Gate(policyOf(DENIES));
    gate.now = undefined;
    expect(await gate.starts(push)).toBe(false);
    expect(gate.spans).toMatchObject([{ code: "policy_denied", decision: { rule: null } }]);
  });
});

describe("a program that is to be isolated", () => {
  const isolates = policyOf({ isolated: ["npm install *", "node *"] });
  const node = file("/usr/bin/node", ["build.js"]);

  test("starts inside an isolated command, and so does what it starts in turn", async () => {
    const gate = new Gate(isolates, { isIsolated: true });
    expect(await gate.starts(started(install, file("/usr/bin/env", ["node", "/usr/bin/npm"])))).toBe(true);
    expect(await gate.starts(node)).toBe(true);
    expect(gate.spans).toEqual([]);
  });

  test("does not elsewhere, and the hint says how it would", async () => {
    const gate = new Gate(isolates);
    expect(await gate.starts(install)).toBe(false);
    expect(gate.spans[0]?.hint).toContain("as a separate command");
  });
});

test("a program that is warned of starts, and has one line for each fragment", async () => {
  const gate = new Gate(policyOf({ warn: ["git reset --hard *"] }));
  const reset = file("/usr/bin/git", ["reset", "--hard"]);
  for (let time = 0; time < 3; time += 1) expect(await gate.starts(reset)).toBe(true);
  expect(await gate.starts(file("/usr/bin/git", ["reset", "--hard", "HEAD~1"]))).toBe(true);
  expect(gate.spans.map((span) => span.decision?.verdict)).toEqual(["allow", "allow"]);
});

test("what cannot be decided does not start, and the log says why", async () => {
  const asking = policyOf({ ask: ["git push *"] });
  const gate = new Gate(asking, { ask: () => Promise.reject(new Error("broken")) });
  expect(await gate.starts(push)).toBe(false);
  const thrown = new Gate(asking, {
    ask: () => {
      throw new Error("broken");
    },
  });
  expect(await thrown.starts(push)).toBe(false);
  expect([...gate.faults, ...thrown.faults].length).toBe(2);
  expect(gate.spans).toMatchObject([{ code: "internal" }]);
});

describe("a script that is on a list of all that may run", () => {
  const rules = { allowed: ["./tool *"] };
  const env = { ...file("/usr/bin/env", []), argv: ["/usr/bin/env", "python3", "./tool", "x"] };
  const tool = started(file(`${PROJECT}/tool`, ["x"]), env);
  const python = file("/usr/bin/python3", ["./tool", "x"]);

  test("starts the interpreter that its first line looks for, once", async () => {
    const gate = new Gate(policyOf(rules));
    expect(await gate.starts(tool)).toBe(true);
    expect(await gate.starts(python)).toBe(true);
    expect(await gate.starts(python)).toBe(false);
  });

  test.each([
    ["with other words", file("/usr/bin/python3", ["-c", "import os", "x"])],
    ["that is another program", { ...file("/usr/bin/make", ["./tool", "x"]), argv: python.argv }],
    ["that another process starts", { ...started(python), pid: 8 }],
  ])("but none %s", async (_what, start) => {
    const gate = new Gate(policyOf(rules));
    expect(await gate.starts(tool)).toBe(true);
    expect(await gate.starts(start)).toBe(false);
  });

  test("and none that a rule denies", async () => {
    const gate = new Gate(policyOf({ ...rules, denied: ["python3 -c *", "make *"], ask: ["python3 *"] }));
    expect(await gate.starts(tool)).toBe(false);
    const other = new Gate(policyOf({ ...rules, denied: ["python3 ./tool *"] }));
    expect(await other.starts(tool)).toBe(false);
  });
});
