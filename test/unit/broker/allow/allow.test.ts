/** `policy allow` without a broker: what a wish needs of a policy, and where its line lands. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { editFor } from "../../../../broker/allow/allow.ts";
import { commandWish } from "../../../../broker/allow/command-wish.ts";
import { netWish } from "../../../../broker/allow/net-wish.ts";
import { placeOf, type Spot } from "../../../../broker/allow/place.ts";
import { placeWish } from "../../../../broker/allow/place-wish.ts";
import { sourcesOf } from "../../../../broker/allow/policy-file.ts";
import type { Never, Wish } from "../../../../broker/allow/wish.ts";
import { type CompiledPolicy, parsePolicy } from "../../../../broker/policy/index.ts";

function policyOf(text: string): CompiledPolicy {
  const loaded = parsePolicy(text, "p.yaml");
  if ("ok" in loaded) return loaded.ok;
  throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
}

function wishOf(answer: Wish | Never): Wish {
  if ("never" in answer) throw new Error(answer.never);
  return answer;
}

/** The added lines of the edit, and the ones that had to go. */
function edited(text: string, wish: Wish): string {
  const edit = editFor({ policy: policyOf(text), text, wish, from: "p.yaml", to: "p.yaml" });
  if ("wrong" in edit) return edit.wrong;
  return edit.text;
}

const WHERE = { project: "/home/ann/app", home: "/home/ann", cwd: "/home/ann/app" };

function net(text: string, name: string): Wish | Never {
  return netWish(
    name,
    policyOf(text),
    new Map([["@npm", { entries: [{ host: "registry.example", port: 443 }] }]]),
  );
}

function command(text: string, pattern: string): Wish | Never {
  const policy = policyOf(text);
  return commandWish(pattern, policy, sourcesOf(policy), WHERE);
}

describe("the line that is added", () => {
  const wish: Wish = {
    additions: [{ list: "net.allowed", value: "a.example" }],
    refusals: [],
    partly: [],
    notes: [],
  };

  test.each([
    [
      "no section",
      "id: p\nname: P # mine\n",
      'id: p\nname: P # mine\n\nnet:\n  allowed:\n    - "a.example"\n',
    ],
    [
      "a list in its line",
      "id: p\nname: P\nnet: { allowed: [b.example] } # why\n",
      'id: p\nname: P\nnet: { allowed: [b.example, "a.example"] } # why\n',
    ],
    [
      "an empty list",
      "id: p\nname: P\nnet:\n  allowed: []   # none\n",
      'id: p\nname: P\nnet:\n  allowed: ["a.example"]   # none\n',
    ],
    [
      "a list of lines with comments",
      "id: p\nname: P\nnet:\n  allowed:\n    # ours\n    - b.example # one\n\ncommands: {}\n",
      'id: p\nname: P\nnet:\n  allowed:\n    # ours\n    - b.example # one\n    - "a.example"\n\ncommands: {}\n',
    ],
    [
      "a section without the list, and Windows' line ends",
      "id: p\r\nname: P\r\nnet:\r\n  dns: { pinned: true }\r\n",
      'id: p\r\nname: P\r\nnet:\r\n  dns: { pinned: true }\r\n  allowed:\r\n    - "a.example"\r\n',
    ],
  ])("stands where it belongs, and everything else stays: %s", (_what, before, after) => {
    expect(edited(before, wish)).toBe(after);
  });

  test("a line that would grow too long is broken instead", () => {
    const names = Array.from({ length: 12 }, (_, at) => `host-${at}.example`).join(", ");
    const before = `id: p\nname: P\nnet:\n  allowed: [${names}]\n`;
    expect(edited(before, wish)).toBe(`id: p\nname: P\nnet:\n  allowed: [${names},\n    "a.example",\n  ]\n`);
  });

  test("a layout that is not understood is left alone, with a sentence", () => {
    const before = 'id: p\nname: P\nnet:\n  allowed: &hosts [b.example]\nfs:\n  read: ["/**"]\n';
    expect(edited(before, wish)).toContain("a.example");
    const alias = 'id: p\nname: P\nfs:\n  read: &all ["/**"]\n  write: *all\n';
    const write: Wish = { ...wish, additions: [{ list: "fs.write", value: "/srv/x/**" }] };
    expect(edited(alias, write)).toMatch(/layout|not load/);
  });

  test("an absent fs.write keeps what its absence means", () => {
    const write: Wish = { ...wish, additions: [{ list: "fs.write", value: "/srv/x/**" }] };
    expect(policyOf(edited("id: p\nname: P\n", write)).document.fs?.write).toEqual([
      "$PROJECT/**",
      "/srv/x/**",
    ]);
  });
});

describe("a name", () => {
  const text =
    'id: p\nname: P\nmode: enforce\nnet:\n  allowed:\n    - "*.example.org"\n    - "@npm"\n    - db.example:5432\n';

  test.each([
    ["www.example.org", "p.yaml:6"],
    ["*.sub.example.org", "p.yaml:6"],
    ["registry.example:443", "p.yaml:7"],
    ["@npm", "p.yaml:7"],
    ["db.example:5432", "p.yaml:8"],
  ])("%s is allowed already by its line", (name, source) => {
    expect(wishOf(net(text, name))).toMatchObject({ additions: [], already: { source } });
  });

  test.each(["example.org", "www.example.org:8443", "db.example", "*.example", "10.1.0.0/16", "@pip"])(
    "%s is not, although something like it is",
    (name) => {
      expect(wishOf(net(text, name))).toMatchObject({ additions: [{ list: "net.allowed", value: name }] });
    },
  );

  test.each([
    "localhost:3000",
    "a.localhost",
    "https://example.org/",
    "*",
    "x y",
    "example.org:99999",
    "host.internal",
  ])("%s can never be one", (name) => {
    expect(net(text, name)).toHaveProperty("never");
  });

  test("what is open of it already is told by port", () => {
    expect(wishOf(net(text, "registry.example")).notes).toEqual([
      "Port 443 is open already: '@npm' in net.allowed, p.yaml:7",
    ]);
  });
});

describe("a pattern", () => {
  const list = [
    "id: p",
    "name: P",
    "mode: enforce",
    "commands:",
    '  allowed: ["git status *",',
    "    make]",
    "  denied:",
    "    - sudo *",
    '    - { pattern: "git push --force *", reason: no }',
    "  ask: [npm publish *]",
    "  isolated: [npm install *]",
    "",
  ].join("\n");

  test.each([
    ["make", "p.yaml:6"],
    ["git status *", "p.yaml:5"],
    ["git status -s", "p.yaml:5"],
  ])("'%s' is allowed already by its line", (pattern, source) => {
    expect(wishOf(command(list, pattern))).toMatchObject({ additions: [], already: { source } });
  });

  test.each(["make *", "git *", "git log", "make test"])(
    "'%s' is not covered by a narrower one",
    (pattern) => {
      expect(wishOf(command(list, pattern)).additions).toEqual([
        { list: "commands.allowed", value: pattern },
      ]);
    },
  );

  test.each([
    ["sudo *", "commands.denied", "p.yaml:8"],
    ["sudo apt-get update", "commands.denied", "p.yaml:8"],
    ["env sudo id", "commands.denied", "p.yaml:8"],
    ["git push --force origin", "commands.denied", "p.yaml:9"],
    ["npm publish", "commands.ask", "p.yaml:10"],
  ])("'%s' is refused by the line that nothing lifts", (pattern, of, source) => {
    expect(wishOf(command(list, pattern)).refusals).toMatchObject([{ list: of, source }]);
  });

  test("a rule that refuses a part of it is named", () => {
    const wish = wishOf(command(list, "git push *"));
    expect(wish.additions).toHaveLength(1);
    expect(wish.refusals).toEqual([]);
    expect(wish.partly).toEqual([
      { list: "commands.denied", pattern: "git push --force *", source: "p.yaml:9" },
    ]);
  });

  test("one that runs isolated says so", () => {
    expect(wishOf(command(list, "npm install *")).notes.join()).toContain("p.yaml:11");
  });

  test("where everything may run that no rule refuses, nothing is added", () => {
    const text = "id: p\nname: P\nmode: enforce\ncommands: { denied: [sudo *] }\n";
    expect(wishOf(command(text, "make *"))).toMatchObject({ additions: [], already: { source: "p.yaml" } });
  });

  test("where everything asks, it is let through without a question", () => {
    const text = "id: p\nname: P\nmode: enforce\napproval:\n  require: true\n  auto_approve: [make]\n";
    expect(wishOf(command(text, "make test")).additions).toEqual([
      { list: "approval.auto_approve", value: "make test" },
    ]);
    expect(wishOf(command(text, "make"))).toMatchObject({ additions: [], already: {} });
  });

  test.each(["", " ", "a | | b"])("'%s' is no pattern", (pattern) => {
    expect(command(list, pattern)).toHaveProperty("never");
  });
});

describe("a path", () => {
  let folder: string;
  let spot: Spot;
  beforeAll(() => {
    // Not below /tmp, of which every world has its own.
    const around = join(import.meta.dirname, "../../../../.build");
    mkdirSync(around, { recursive: true });
    folder = realpathSync(mkdtempSync(join(around, "allow-")));
    for (const name of [
      "home/.ssh",
      "home/.cache",
      "home/app/sub",
      "home/out",
      "home/.substrate",
      "srv/data",
      "install",
    ])
      mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, "home/notes"), "");
    symlinkSync(join(folder, "srv/data"), join(folder, "home/link"));
    const home = join(folder, "home");
    spot = {
      cwd: join(home, "app/sub"),
      project: join(home, "app"),
      rules: {
        home,
        hidden: [join(home, ".substrate")],
        uid: process.getuid?.() ?? 0,
        installation: join(folder, "install"),
        roots: [],
      },
    };
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const entryOf = (kind: "read" | "write", written: string): string => {
    const place = placeOf(kind, written.replace("@", folder), spot);
    return ("never" in place ? `never: ${place.never}` : place.entry).replaceAll(folder, "@");
  };

  test.each([
    ["~/out", "$HOME/out/**"],
    ["~/out/", "$HOME/out/**"],
    ["$HOME/out/**", "$HOME/out/**"],
    ["@/home/out", "$HOME/out/**"],
    ["../../out", "$HOME/out/**"],
    ["~/notes", "$HOME/notes"],
    ["../x", "$PROJECT/x/**"],
    [".", "$PROJECT/sub/**"],
    ["$PROJECT/sub", "$PROJECT/sub/**"],
    ["@/home/app/sub", "$HOME/app/sub/**"],
    ["@/srv/data", "@/srv/data/**"],
    ["@/srv/new", "@/srv/new/**"],
    ["~/link", "@/srv/data/**"],
    ["~/link/below", "@/srv/data/below/**"],
    ["~/.cache", "$HOME/.cache/**"],
  ])("%s is the entry %s", (written, entry) => {
    expect(entryOf("write", written)).toBe(entry);
  });

  test.each([
    ["~", /home folder itself/],
    ["@", /contains the home folder/],
    ["/", /contains the home folder/],
    ["/etc/hosts", /system folder/],
    ["/usr/bin/x", /system folder/],
    ["/proc/self", /kernel/],
    ["/tmp/x", /its own such folder/],
    ["~/.substrate", /SUBSTRATE_HOME/],
    ["~/.substrate/policies", /SUBSTRATE_HOME/],
    ["@/install/bin", /installation/],
    ["~/repo/.git/hooks", /git's own folder/],
    ["~/notes/**", /it is a file/],
    ["~/*.txt", /'path\/\*\*'/],
    ["~other/x", /must begin with/],
    ["", /empty/],
  ])("%s can never be written", (written, why) => {
    expect(entryOf("write", written)).toMatch(why);
  });

  test("its home folder may be read as a whole, SUBSTRATE_HOME never", () => {
    expect(entryOf("read", "~")).toBe("$HOME/**");
    expect(entryOf("read", "~/.substrate/x")).toContain("SUBSTRATE_HOME");
  });

  const wish = (kind: "read" | "write", written: string, text: string): Wish => {
    const place = placeOf(kind, written, spot);
    if ("never" in place) throw new Error(place.never);
    const policy = policyOf(text);
    return placeWish(kind, place, policy, sourcesOf(policy), spot);
  };
  const lists = [
    "id: p",
    "name: P",
    "fs:",
    '  read: ["/usr/**"]',
    "  write:",
    '    - "$PROJECT/**"',
    '    - "$HOME/out/**"',
    "  deny_read:",
    '    - "$HOME/.ssh"',
    '    - "**/.env"',
    "  deny_write:",
    '    - "$HOME/out/sealed"',
    "",
  ].join("\n");

  test("what a line gives already is told with that line; what may be written can be read", () => {
    expect(wish("write", "~/out/deep", lists)).toMatchObject({
      additions: [],
      already: { source: "p.yaml:7" },
    });
    expect(wish("read", "~/out", lists)).toMatchObject({ additions: [], already: { source: "p.yaml:7" } });
    expect(wish("read", "~/notes", lists).additions).toEqual([{ list: "fs.read", value: "$HOME/notes" }]);
  });

  test("a line that refuses all of it is named, whatever else allows it", () => {
    expect(wish("read", "~/.ssh/config", lists).refusals).toEqual([
      { list: "fs.deny_read", pattern: "$HOME/.ssh", source: "p.yaml:9" },
    ]);
    expect(wish("write", "~/.ssh", lists).refusals).toHaveLength(1);
    expect(wish("write", "~/out/sealed/x", lists).refusals).toMatchObject([{ source: "p.yaml:12" }]);
    expect(wish("write", "sub/.env", lists).refusals).toMatchObject([{ source: "p.yaml:10" }]);
  });

  test("a line that refuses a part of it is named beside it", () => {
    const { refusals, partly } = wish("write", "~/out", lists);
    expect(refusals).toEqual([]);
    expect(partly.map(({ source }) => source)).toEqual(["p.yaml:10", "p.yaml:12"]);
  });

  test("a link whose target is denied is denied", () => {
    symlinkSync(join(folder, "home/out"), join(folder, "home/alias"));
    const text = 'id: p\nname: P\nfs:\n  deny_write: ["$HOME/alias"]\n';
    expect(wish("write", "~/out", text).refusals).toMatchObject([{ source: "p.yaml:4" }]);
  });

  test("a policy without a list has its default, and no line", () => {
    expect(wish("read", "~/.ssh", "id: p\nname: P\n").refusals).toMatchObject([{ source: "p.yaml" }]);
  });

  test("a missing folder says who makes it, and when nobody does", () => {
    const notes = (written: string): string => wish("write", written, lists).notes.join();
    expect(notes("~/fresh")).toMatch(/the broker makes it when a world needs it/);
    expect(notes("~/not/there")).toMatch(/The broker cannot make it.*does not exist either/);
    expect(notes("~/.bashrc")).toMatch(/shells and sessions run it/);
  });
});
