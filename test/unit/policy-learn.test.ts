import { describe, expect, test } from "vitest";
import { Observations } from "../../broker/learn/observations.ts";
import { fates, learn, LISTED, policy, span, values } from "../learned.ts";

describe("a command that commands.allowed leaves out", () => {
  test("gets its exact words, with the spans that led to them, and the comments stay", () => {
    const proposal = learn(LISTED, [
      { cmd: "npm  test" },
      { cmd: "npm  test" },
      { cmd: "git log -1 | head -n 2" },
    ]);
    expect(values(proposal)).toEqual([
      "commands.allowed npm test",
      "commands.allowed git log -1",
      "commands.allowed head -n 2",
    ]);
    expect(proposal.text).toBe(
      LISTED.replace(
        "    - ls *\n",
        `    - ls *
    - "npm test" # seen 2 times, last 2026-01-02T00:00:00Z, spn_0 spn_1
    - "git log -1" # seen once, last 2026-01-03T00:00:00Z, spn_2
    - "head -n 2" # seen once, last 2026-01-03T00:00:00Z, spn_2
`,
      ),
    );
    expect(proposal.checked).toMatchObject({ learned: 2, unchanged: 0 });
    expect(proposal.checked.neighbours).toBeGreaterThan(10);
  });

  test("is not learned in part when another part is denied", () => {
    const proposal = learn(LISTED, [{ cmd: "make && sudo make install" }]);
    expect(values(proposal)).toEqual([]);
    expect(fates(proposal)).toEqual(["denied"]);
    expect(proposal.commands[0]?.fate).toMatchObject({
      rule: { pattern: "sudo *", fragment: "sudo make install" },
    });
  });

  test("that the policy allows by now needs nothing", () =>
    expect(fates(learn(LISTED, [{ cmd: "git status" }]))).toEqual(["allowed"]));

  test.each([
    ["cat $FILE", "only known when it runs"],
    ["cat *.md", "only known when it runs"],
    ["echo '*'", "a literal '*'"],
    ['echo "it\'s"', "a quote"],
    ["echo '$HOME/x'", "would read '$HOME/x' as a folder"],
    ["echo 'a\u202eb'", "invisible in a review"],
    ["$X y", "no rule can make an exception from commands.opaque"],
    ["cd sub && ./run", "a folder that the command changes to"],
  ])("and that no pattern can say is told: %s", (cmd, why) => {
    const proposal = learn(LISTED.replace("- ls *", '- "cd *"'), [{ cmd }]);
    expect(proposal.patch).toBe("");
    expect(proposal.commands[0]?.fate).toMatchObject({
      kind: "unsayable",
      why: expect.stringContaining(why),
    });
  });

  test("by the path of its program is named whole, and by the home folder as $HOME", () => {
    const proposal = learn(LISTED, [
      { cmd: "./run.sh --fast" },
      { argv: ["/opt/x y/bin/tool", ""], cwd: "/srv" },
    ]);
    expect(values(proposal)).toEqual([
      "commands.allowed $HOME/app/run.sh --fast",
      'commands.allowed "/opt/x y/bin/tool" ""',
    ]);
  });

  test("whose credentials were replaced is counted and not learned", () => {
    const observations = new Observations({ policyId: "p", agent: undefined, since: undefined });
    observations.add(span({ cmd: "curl -H <token>", redacted: true }));
    expect(observations.all()).toMatchObject({ commands: [], skipped: { redacted: 1 } });
  });
});

describe("several values in one place", () => {
  const told = ["a", "b", "c", "d"].map((name) => ({ cmd: `cp src/${name}.ts out` }));

  test("are listed one by one", () => expect(values(learn(LISTED, told))).toHaveLength(4));

  test("become one '*' when told to, and only there", () => {
    expect(values(learn(LISTED, told, { generalise: true }))).toEqual(["commands.allowed cp src/*.ts out"]);
    expect(values(learn(LISTED, told.slice(1), { generalise: true }))).toHaveLength(3);
  });

  test("at the end need something in common: a last '*' would stand for any number of words", () => {
    const last = ["alpha", "beta", "gamma", "delta2"].map((name) => ({ cmd: `make ${name}` }));
    expect(values(learn(LISTED, last, { generalise: true }))).toHaveLength(4);
    const tests = ["one", "two", "three", "four"].map((name) => ({ cmd: `make test-${name}` }));
    expect(values(learn(LISTED, tests, { generalise: true }))).toEqual(["commands.allowed make test-*"]);
  });
});

describe("what no list can allow", () => {
  const rules = (commands: string) => `id: p\nname: P\ncommands:\n  ${commands}\n`;

  test.each([
    ['denied: [{ pattern: "chmod 777 *", reason: "it opens files" }]', "chmod 777 x", "denied"],
    ['denied: ["chmod 777 *"]', "chmod 777 x", "denied"],
    ['ask: ["git push *"]', "git push", "asked"],
    ['isolated: ["npm install *"]', "npm install", "isolated"],
    ["opaque: deny", "$X", "unsayable"],
    ["shell_operators: false", "a | b", "unsayable"],
  ])("is named and proposes nothing: %s", (commands, cmd, kind) => {
    const proposal = learn(rules(commands), [{ cmd }]);
    expect(fates(proposal)).toEqual([kind]);
    expect([proposal.patch, proposal.additions]).toEqual(["", []]);
  });

  test("is what approval.require asks of everything: there auto_approve takes the exact command", () => {
    const text = "id: p\nname: P\napproval:\n  require: true\n";
    const proposal = learn(text, [{ cmd: "make test", verdict: "would_ask" }]);
    expect(values(proposal)).toEqual(["approval.auto_approve make test"]);
    expect(policy(proposal.text).document.approval).toEqual({ require: true, auto_approve: ["make test"] });
  });
});

test("a proposal leaves every case of the policy its verdict and its rule", () => {
  const cases = ["command: sudo id\nverdict: deny\nrule: { list: commands.denied, pattern: 'sudo *' }\n"];
  expect(learn(LISTED, [{ cmd: "make" }], { cases }).checked).toMatchObject({ cases: 1 });
});

test("spans of other policies, agents and times do not count", () => {
  const observations = new Observations({ policyId: "p", agent: "a", since: "2026-01-03T00:00:00.000Z" });
  observations.add({ ...span({ cmd: "x" }, 5), policy_id: "other" });
  observations.add(span({ cmd: "x", agent: "b" }, 5));
  observations.add(span({ cmd: "x", ts: "2026-01-02T00:00:00.000Z" }, 5));
  observations.add({ ...span({ cmd: "x" }, 5), event_type: "command_start" });
  observations.add(span({ cmd: "mine" }, 5));
  expect(observations.all().commands.map(({ text }) => text)).toEqual(["mine"]);
});
