import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Observations } from "../../../../broker/learn/observations.ts";
import {
  LISTED,
  type Told,
  attempt,
  fates,
  learn,
  policy,
  span,
  values,
} from "../../../support/policy/learned.ts";
import { skip } from "../../../support/run/skips.ts";

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

const GIT = "/usr/bin/git";

describe("what a running command started, and a rule would have stopped", () => {
  test("gets the rule that allows it, as a command gets it", () => {
    const proposal = learn(LISTED, [
      { program: GIT, argv: [GIT, "rev-parse", "HEAD"] },
      { program: GIT, argv: [GIT, "rev-parse", "HEAD"] },
    ]);
    expect(values(proposal)).toEqual(["commands.allowed /usr/bin/git rev-parse HEAD"]);
    expect(proposal.additions[0]?.seen.count).toBe(2);
    expect(proposal.checked.learned).toBe(1);
  });

  test("gets none where a denial stops it, and is named there", () => {
    const proposal = learn(LISTED, [{ program: "/usr/bin/sudo", argv: ["/usr/bin/sudo", "true"] }]);
    expect(values(proposal)).toEqual([]);
    expect(proposal.commands.map(({ fate }) => fate.kind)).toEqual(["denied"]);
  });

  test.each([
    ["its words were cut", { program: GIT, argv: [GIT, "log"], cut: true }],
    ["a credential in them was replaced", { program: GIT, argv: [GIT, "[redacted:token]"] }],
    ["its folder is not known", { program: "/home/ann/app/sub/run.sh", argv: ["./run.sh", "x"] }],
    ["its words are a count of many", { program: GIT, cmd: "12 more" }],
    ["it was allowed", { program: GIT, argv: [GIT, "log"], verdict: "allow" }],
  ] as const)("is not learned from where %s", (_why, told) => {
    const proposal = learn(LISTED, [told]);
    expect(values(proposal)).toEqual([]);
    expect(proposal.commands).toEqual([]);
  });
});

const TEXT = `id: p
name: P
net:
  allowed:
    - a.example # ours
    - 203.0.113.0/24
  dns: { refresh_secs: 5 }
`;
const to = (place: string, more: Partial<Told> = {}): Told => ({ to: place, ...more });

describe("a connection that observe let through", () => {
  test("gives its name, once for the usual ports, and with its port for another one", () => {
    const proposal = learn(TEXT, [
      to("b.example:443"),
      to("b.example:80"),
      to("b.example:8080"),
      to("xn--bcher-kva.example:22"),
      to("a.example:8443"),
    ]);
    expect(values(proposal)).toEqual([
      "net.allowed b.example",
      "net.allowed b.example:8080",
      "net.allowed xn--bcher-kva.example",
      "net.allowed a.example:8443",
    ]);
    expect(proposal.text).toContain(`    - 203.0.113.0/24
    - "b.example" # seen 2 times, last 2026-01-02T00:00:00Z, spn_0 spn_1
    - "b.example:8080" # seen once, last 2026-01-03T00:00:00Z, spn_2
`);
    expect(proposal.checked.connections).toBe(5);
  });

  test("that the policy allows by now, or allowed then, needs nothing", () => {
    const proposal = learn(TEXT, [
      to("a.example:443"),
      to("203.0.113.9:22"),
      to("c.example:443", { verdict: "allow" }),
    ]);
    expect([proposal.patch, proposal.connections]).toMatchObject(["", { stopped: [], allowed: 2 }]);
  });

  test("is only told when it was by address, to the host itself, or led nowhere", () => {
    const proposal = learn(TEXT, [
      to("198.51.100.7:443"),
      to("host.internal:5432"),
      to("gone.example:443", { failed: "'gone.example' cannot be resolved on the host: ENOTFOUND" }),
    ]);
    expect(proposal.patch).toBe("");
    expect(proposal.connections.stopped.map(({ to: place, why }) => `${place}: ${why}`)).toEqual([
      expect.stringMatching(/^198\.51\.100\.7:443: it was dialled by address/),
      expect.stringMatching(/^host\.internal:5432: services on the host's own localhost/),
      "gone.example:443: the connection failed ('gone.example' cannot be resolved on the host: ENOTFOUND)",
    ]);
  });

  test("that failed once and reached a server at another time is proposed", () => {
    const told = [to("b.example:443"), to("b.example:443", { failed: "ECONNREFUSED" })];
    for (const order of [told, told.toReversed()])
      expect(values(learn(TEXT, order))).toEqual(["net.allowed b.example"]);
  });

  test.each([
    ["no section", "id: p\nname: P\n"],
    ["an empty list", "id: p\nname: P\nnet: { allowed: [] }\n"],
    ["an empty section", "id: p\nname: P\nnet: {}\nmode: observe\n"],
    ["a section in one line without the list", "id: p\nname: P\nnet: { dns: { refresh_secs: 5 } } # asks\n"],
    [
      "a section without the list",
      "id: p\nname: P\nnet:\n  dns: { refresh_secs: 5 } # asks\nmode: observe\n",
    ],
    ["a list in one line", 'id: p\nname: P\nnet:\n  allowed: ["a.example"]\n'],
  ])("finds its place where the file has %s", (_name, text) => {
    const before = policy(text).document;
    const proposal = learn(text, [to("b.example:443")]);
    expect(policy(proposal.text).document).toEqual({
      ...before,
      net: { ...before.net, allowed: [...(before.net?.allowed ?? []), "b.example"] },
    });
  });

  test("says nothing about commands, and a name that was refused is told as what it is", () => {
    const observations = new Observations({ policyId: "p", agent: undefined, since: undefined });
    observations.add(span(to("b.example:443")));
    const refused = {
      ...span({}),
      event_type: "violation",
      cmd: null,
      outcome: "refused",
      decision: null,
    } as const;
    observations.add({ ...refused, violation: { kind: "name", subject: "c.example" } });
    observations.add(refused);
    expect(observations.all()).toMatchObject({
      spans: 3,
      commands: [],
      connections: [{ host: "b.example", port: 443, reached: true, reason: null }],
      violations: [{ kind: "name", subject: "c.example" }],
      skipped: { redacted: 0 },
    });
  });
});

describe("a write that stayed in the world", () => {
  const text = 'id: p\nname: P\nfs: { write: ["$PROJECT/**"] }\n';
  const wrote = (...writes: string[]): Told => ({ writes, verdict: "allow" });

  test("gets the exact file, and its folder only when enough files directly in it were written", () => {
    const four = ["a", "b", "c", "d"].map((name) => `/home/ann/.cache/t/${name}.o`);
    expect(values(learn(text, [wrote(...four)]))).toEqual(
      four.map((path) => `fs.write $HOME${path.slice(9)}`),
    );
    const five = [...four, "/home/ann/.cache/t/e.o"];
    expect(values(learn(text, [wrote(...five)]))).toEqual(["fs.write $HOME/.cache/t/**"]);
    const below = five.map((path, index) => path.replace("/t/", `/t/${index}/`));
    expect(values(learn(text, [wrote(...below)]))).toHaveLength(5);
  });

  test("never speaks for the home folder", () => {
    const files = ["a", "b", "c", "d", "e", "f"].map((name) => `/home/ann/.${name}.conf`);
    expect(values(learn(text, [wrote(...files)]))).not.toContain("fs.write $HOME/**");
  });

  test("that a deny list covers would lift a denial", () => {
    const denied = `${text.replace(" }", ', deny_write: ["/home/**/secret*", "$HOME/.{a,b}/x"] }')}`;
    const proposal = learn(denied, [
      wrote("/home/ann/k/secret.txt", "/home/ann/.a/x", "/home/ann/.ssh/config.d"),
    ]);
    expect(proposal.patch).toBe("");
    expect(proposal.writes.stopped.map(({ kind, why }) => [kind, why])).toEqual([
      ["denied", "'/home/**/secret*' in fs.deny_write"],
      ["denied", "'$HOME/.{a,b}/x' in fs.deny_write"],
      ["denied", "'$HOME/.ssh' in fs.deny_read"],
    ]);
  });

  test.each([
    "/etc/hosts.x",
    "/home/ann/.bashrc",
    "/home/ann/.local/bin/x.sh",
    "/home/ann/.cargo/bin/cargo",
    "/usr/lib/x.so",
  ])("is not proposed where programs are run from: %s", (path) => {
    const proposal = learn(text, [wrote(path)], { kinds: { [path]: "file" } });
    expect([proposal.patch, proposal.writes.stopped[0]?.kind]).toEqual(["", "held_back"]);
  });

  test("of a file that is not there cannot be a scope of its own", () => {
    const path = "/home/ann/.tool/state.json";
    const proposal = learn(text, [wrote(path)], { kinds: { [path]: "missing" } });
    expect(proposal.writes.stopped).toMatchObject([{ path, kind: "unsayable" }]);
  });

  test("keeps the project writable where the policy had no list", () => {
    const proposal = learn("id: p\nname: P\n", [wrote("/home/ann/.tool/state.json")]);
    expect(policy(proposal.text).document.fs).toEqual({ write: ["$PROJECT/**", "$HOME/.tool/state.json"] });
  });
});

describe("the file", () => {
  const told: Told[] = [{ cmd: "make a" }, { cmd: "make b" }];
  const layouts = {
    "a list in one line": 'id: p\nname: P\ncommands: { allowed: ["ls"] }\n',
    "a list in one line below its key": 'id: p\nname: P\ncommands:\n  allowed: ["ls", true]  # these\n',
    "a list over several lines":
      'id: p\nname: P\ncommands:\n  allowed: [\n    "ls", # first\n    "cat",\n  ]\n  ask: []\n',
    "a list over several lines without a last comma":
      'id: p\nname: P\ncommands:\n  allowed: [\n    "ls" # first\n  ]\n',
    "items that are maps":
      "id: p\nname: P\ncommands:\n  allowed:\n  - pattern: ls\n    reason: looks # why\n  # next\n  ask: []\n",
    "no end of the last line": "id: p\nname: P\ncommands:\n  allowed:\n    - ls",
    "line ends of another system": "id: p\r\nname: P\r\ncommands:\r\n  allowed:\r\n    - ls\r\n",
  };

  test.each(Object.entries(layouts))(
    "with %s gets a patch that `patch` applies to what was checked",
    (_name, layout) => {
      const text = layout.replace("true", '"cat"');
      const proposal = learn(text, told);
      expect(policy(proposal.text).document.commands?.allowed).toEqual([
        ...(policy(text).document.commands?.allowed ?? []),
        "make a",
        "make b",
      ]);
      const folder = mkdtempSync(join(tmpdir(), "sb-learn-"));
      try {
        writeFileSync(join(folder, "p.yaml"), text);
        const ran = spawnSync("patch", ["--binary", join(folder, "p.yaml")], {
          input: proposal.patch,
          encoding: "utf8",
        });
        if (ran.error !== undefined) skip("policy learn's patch through patch(1)", ran.error.message);
        expect([ran.status, ran.stderr]).toEqual([0, ""]);
        expect(readFileSync(join(folder, "p.yaml"), "utf8")).toBe(proposal.text);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );

  test("that cannot be changed in place is refused, and nothing is shown", () => {
    const text = 'id: p\nname: P\ncommands:\n  denied: &list ["ls"]\n  allowed: *list\n';
    expect(attempt(text, told)).toEqual({
      wrong: expect.stringMatching(/^the patched file does not load: p\.yaml:6:3: Map keys must be unique/),
    });
  });
});
