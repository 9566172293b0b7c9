import { describe, expect, test } from "vitest";
import type { GateParts } from "../../../../broker/exec-gate/gate.ts";
import { PROJECT, file, policyOf, started } from "../../../support/policy/starts.ts";
import { Gate, effectiveOf } from "../../../support/policy/gate.ts";

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

  test("has a line of its own a thousand times, the later ones without very long words, and is counted then", async () => {
    const gate = new Gate(policyOf(DENIES));
    for (let time = 0; time < 9; time += 1) await gate.starts(file("/usr/bin/sudo", ["x".repeat(60_000)]));
    expect(gate.spans.filter((span) => JSON.stringify(span).length > 9000)).toHaveLength(4);
    for (let time = 9; time < 1500; time += 1) expect(await gate.starts(sudo)).toBe(false);
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

describe("a program that a person must approve", () => {
  const asks = policyOf({ ask: ["git push *"], denied: ["sudo *"] });
  const yes: GateParts["ask"] = () => Promise.resolve({ approval: "apr_x", how: "once" });

  test("waits for them, and starts after a yes alone", async () => {
    const willing = new Gate(asks, {
      ask: (_start, _finding, _effective, wait) => {
        wait(300_000);
        return Promise.resolve({ approval: "apr_x", how: "session" });
      },
    });
    expect(await willing.starts(push)).toBe(true);
    expect(willing.waits).toEqual([300_000]);
    const unwilling = new Gate(asks);
    expect(await unwilling.starts(push)).toBe(false);
    expect(unwilling.spans).toMatchObject([
      { code: "approval_required", approval_id: "apr_x", decision: { verdict: "ask" } },
    ]);
  });

  test.each([
    ["as it was written", "git push origin", push],
    ["by its path", "/usr/bin/git push origin", { ...push, argv: ["/usr/bin/git", "push", "origin"] }],
    ["behind a wrapper", "env X=1 git push origin", push],
    ["with a word that was not known", "git push $REMOTE", push],
    ["with a word that became none", "git push origin $FLAGS", push],
    ["again, in the text of another shell", "git push origin", file("/bin/sh", ["-c", "git push origin"])],
  ])("starts without another question when it is what they approved: %s", async (_how, command, start) => {
    const gate = new Gate(asks, { command, approved: true });
    expect(await gate.starts(start)).toBe(true);
    expect(await gate.starts(start)).toBe(true);
    expect(gate.asked).toEqual([]);
  });

  test.each([
    ["other words", "git push origin", file("/usr/bin/git", ["push", "--force", "origin"])],
    ["an impostor", "git push origin", file(`${PROJECT}/git`, ["push", "origin"])],
    [
      "another program that says that it is that one",
      "git push origin",
      { ...file("/usr/bin/make", ["push", "origin"]), argv: ["git", "push", "origin"] },
    ],
    ["more words than are told", "git push origin", { ...started(push), cut: true }],
  ])("is asked about, or refused, when it is not: %s", async (_what, command, start) => {
    const gate = new Gate(asks, { command, approved: true });
    expect(await gate.starts(start)).toBe(false);
  });

  test("is asked about again when the policy changed since they approved it", async () => {
    const gate = new Gate(asks, { command: "git push origin", approved: true });
    gate.now = effectiveOf(policyOf({ ask: ["git push *"], denied: ["doas *"] }));
    expect(await gate.starts(push)).toBe(false);
    expect(gate.asked.length).toBe(1);
  });

  test("and that another one starts is asked about once, for one start", async () => {
    const gate = new Gate(asks, { ask: yes });
    expect(await gate.starts(file("/bin/sh", ["-c", "git push origin"]))).toBe(true);
    expect(await gate.starts(push)).toBe(true);
    expect(gate.asked.length).toBe(1);
    expect(await gate.starts(push)).toBe(true);
    expect(gate.asked.length).toBe(2);
  });

  test("and that another one starts is asked about under another policy than they answered under", async () => {
    const gate = new Gate(asks, { ask: yes });
    expect(await gate.starts(file("/bin/sh", ["-c", "git push origin"]))).toBe(true);
    gate.now = effectiveOf(policyOf({ ask: ["git push *"] }));
    await gate.starts(push);
    expect(gate.asked.length).toBe(2);
  });

  test("with as many words as nobody compares is asked about again, at once", async () => {
    const words = Array.from({ length: 8000 }, () => "x");
    const gate = new Gate(asks, { command: `git push ${words.map(() => "$x").join(" ")}`, approved: true });
    const before = performance.now();
    expect(await gate.starts(file("/usr/bin/git", ["push", ...words]))).toBe(false);
    expect(performance.now() - before).toBeLessThan(5000);
  });

  test("is refused when the policy changes before they answer", async () => {
    const gate = new Gate(asks, {
      ask: () => {
        gate.now = effectiveOf(policyOf({ denied: ["git *"] }));
        return Promise.resolve({ approval: "apr_x", how: "once" });
      },
    });
    expect(await gate.starts(push)).toBe(false);
    expect(gate.spans).toMatchObject([{ code: "policy_changed" }]);
  });

  test("is not asked about where another rule denies it, or nobody may be asked", async () => {
    const both = new Gate(policyOf({ ask: ["git push *"], denied: ["git push *"] }), { ask: yes });
    expect(await both.starts(push)).toBe(false);
    const silent = policyOf({ ask: ["git push *"] }, { approval: { interactive: false } });
    const alone = new Gate(silent, { ask: yes });
    expect(await alone.starts(push)).toBe(false);
    expect([...both.asked, ...alone.asked]).toEqual([]);
  });
});

describe("a program that the line did not name, under approval.require", () => {
  const requires = policyOf({}, { approval: { require: true, auto_approve: ["git *", "make", "ls *"] } });
  const id = file("/usr/bin/id", []);

  test("asks at its start, and starts after a yes alone", async () => {
    const unwilling = new Gate(requires, { command: "git status" });
    expect(await unwilling.starts(id)).toBe(false);
    expect(unwilling.spans).toMatchObject([
      { code: "approval_required", approval_id: "apr_x", decision: { rule: { list: "approval.require" } } },
    ]);
    const willing = new Gate(requires, {
      command: "git status",
      ask: () => Promise.resolve({ approval: "apr_x", how: "once" }),
    });
    expect(await willing.starts(id)).toBe(true);
  });

  test("and what a person sees in its words, starts once after one answer", async () => {
    const gate = new Gate(requires, {
      command: "git z",
      ask: () => Promise.resolve({ approval: "apr_x", how: "once" }),
    });
    expect(await gate.starts(file("/usr/bin/sh", ["-c", "rm x"]))).toBe(true);
    expect(await gate.starts(file("/usr/bin/rm", ["x"]))).toBe(true);
    expect(gate.asked.length).toBe(1);
    expect(await gate.starts(file("/usr/bin/rm", ["x"]))).toBe(true);
    expect(gate.asked.length).toBe(2);
  });

  test.each([
    ["the line names it", "git status && ls -l", file("/usr/bin/git", ["status"])],
    ["a rule names it", "git status", file("/usr/bin/git", ["rev-parse", "HEAD"])],
    ["git has it in a folder of its own", "git status", file("/usr/lib/git-core/git-remote-https", ["x"])],
    ["git shows its text with it", "git log", file("/usr/bin/less", [])],
    ["the line names what runs the project's commands", "make", id],
    ["and those lie in the project", "npm test", file("/projects/app/node_modules/.bin/lint", [])],
    ["the line names a script of the project", "./build.sh", id],
  ])("starts unasked when %s", async (_why, command, start) => {
    const gate = new Gate(requires, { command });
    expect(await gate.starts(start)).toBe(true);
    expect(gate.asked).toEqual([]);
  });

  test.each([
    ["with other words than the line's", "ls src", file("/usr/bin/env", ["id"])],
    ["that says it is less", "git log", { ...id, argv: ["less"] }],
    ["of that name in the project", "git log", file("/projects/app/less", [])],
    ["that only lies where git's programs do not", "git log", file("/usr/lib/git-core-2/x", [])],
    ["by the dynamic loader", "git log", file("/lib64/ld-linux-x86-64.so.2", ["/usr/bin/id"])],
  ])("asks for one %s", async (_what, command, start) => {
    const gate = new Gate(requires, { command });
    expect(await gate.starts(start)).toBe(false);
    expect(gate.asked.length).toBe(1);
  });

  test("starts when a person approved the line, under the same policy", async () => {
    const gate = new Gate(requires, { command: "tool x", approved: true });
    expect(await gate.starts(id)).toBe(true);
    gate.now = effectiveOf(policyOf({}, { approval: { require: true } }));
    expect(await gate.starts(id)).toBe(false);
  });

  test("with more words than a person can be shown is refused, and nobody is asked", async () => {
    const gate = new Gate(requires, { command: "git status" });
    expect(await gate.starts({ ...started(id), cut: true })).toBe(false);
    expect(gate.asked).toEqual([]);
  });

  test("is refused where nobody may be asked", async () => {
    const silent = policyOf({}, { approval: { require: true, interactive: false, auto_approve: ["git *"] } });
    const gate = new Gate(silent, { command: "git status" });
    expect(await gate.starts(id)).toBe(false);
    expect(await gate.starts(file("/usr/bin/git", ["status"]))).toBe(true);
    expect(gate.asked).toEqual([]);
  });
});
