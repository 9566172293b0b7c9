import { spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { gitSettings } from "../../../../broker/git/config.ts";
import { Remotes } from "../../../../broker/git/remotes.ts";
import { JudgedSettings } from "../../../../broker/git/settings.ts";
import { growthOverSixtyFour, MOST_GROWTH } from "../../../support/processes/cost.ts";

const PATH = "/work/.git/config";
const CORE = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";
const PERSONS = `${CORE}\tpager = less -R\n[alias]\n\tst = "!git status"\n[include]\n\tpath = ~/work.inc\n`;

const base = mkdtempSync(join(tmpdir(), "substrate-settings-"));
afterAll(() => rmSync(base, { recursive: true }));

function judged(before: string, after: string, path = PATH): string | undefined {
  const bytes = (text: string): Buffer => Buffer.from(text, "latin1");
  return new JudgedSettings(
    new Remotes(mkdtempSync(join(base, "r")), process.getuid?.() ?? 0, () => {}),
  ).judge({
    path,
    before: bytes(before),
    after: bytes(after),
  })?.message;
}

/** As git reads the file: each `key\nvalue`; undefined when it refuses it. */
function byGit(text: string): readonly string[] | undefined {
  const file = join(base, "config");
  writeFileSync(file, Buffer.from(text, "latin1"));
  const { status, stdout } = spawnSync("git", ["config", "--file", file, "--list", "-z"], {
    encoding: "latin1",
  });
  return status === 0 ? stdout.split("\0").slice(0, -1) : undefined;
}

describe("a command may write", () => {
  test.each([
    ["who commits", "[user]\n\tname = Ann B.\n\temail = ann@example.org\n\tsigningkey = ABCD\n"],
    [
      "a remote",
      '[remote "origin"]\n\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
    ],
    [
      "a remote by https, by path and by a relative path",
      '[remote "a"]\n\turl = https://u@example.org/x\n\tpushurl = /srv/x.git\n[remote "b"]\n\turl = ../y.git\n',
    ],
    [
      "what a branch follows",
      '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n\trebase = true\n',
    ],
    ["a submodule", '[submodule "lib"]\n\turl = ../lib\n\tactive = true\n\tupdate = rebase\n'],
    [
      "colours and advice",
      '[color]\n\tui = auto\n[color "status"]\n\tadded = green bold\n[advice]\n\tdetachedHead = false\n',
    ],
    [
      "how it pushes, pulls and merges",
      "[push]\n\tdefault = current\n\tautoSetupRemote = true\n[pull]\n\tff = only\n[merge]\n\tconflictStyle = zdiff3\n",
    ],
    [
      "what git-lfs installs",
      '[lfs]\n\trepositoryformatversion = 0\n[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true\n',
    ],
    ["letters of other languages", "[user]\n\tname = J\xc3\xbcrgen \xc3\xa0\n"],
    ["notes and blank lines", "# note\n\n; core.pager = x\n[user]\n\tname = x # core\n"],
  ])("%s", (_what, text) => {
    expect(byGit(CORE + text)).toBeDefined();
    expect(judged(CORE, CORE + text)).toBeUndefined();
    expect(judged(PERSONS, PERSONS + text)).toBeUndefined();
    expect(judged(PERSONS + text, PERSONS)).toBeUndefined();
  });
});

describe("a file that was written on Windows", () => {
  const windows = (text: string): string => text.replaceAll("\n", "\r\n");
  const HOSTS = windows(`${CORE}\tpager = less -R\n[user]\n\tname = Ann\n`);

  test("keeps its ends of lines, where git changes one of them or adds one", () => {
    for (const after of [
      HOSTS.replace("Ann", "Bob"),
      `${HOSTS}[push]\n\tdefault = current\n`,
      windows(`${CORE}\tpager = less -R\n`),
    ]) {
      expect(byGit(after)).toBeDefined();
      expect(judged(HOSTS, after)).toBeUndefined();
      expect(judged(`\xef\xbb\xbf${HOSTS}`, `\xef\xbb\xbf${after}`)).toBeUndefined();
    }
  });

  test.each([
    ["monitor", "[core]\r\n\tfsmonitor = evil\r\n"],
    ["monitor behind a line that goes on", "[user]\r\n\tname = a\\\r\n\r\n[core]\r\n\tfsmonitor = evil\r\n"],
    ["monitor behind a note", "# \\\r\n[core]\r\n\tfsmonitor = evil\r\n"],
  ])("gets no %s", (_what, text) => {
    expect(byGit(HOSTS + text)).toContain("core.fsmonitor\nevil");
    expect(judged(HOSTS, HOSTS + text)).toContain("core.fsmonitor");
  });

  test("gets no other control letter, and the sentence says where it is", () => {
    expect(judged(HOSTS, `${HOSTS}[user]\n\temail = a\rb\n`)).toContain(
      "line 9 would contain the control character U+000D",
    );
    expect(judged(`${CORE}# \f\n`, `${CORE}# \f\n[user]\n\tname = x\n`)).toContain("a person can remove it");
    expect(judged(CORE, "\xef\xbb\xbf" + CORE)).toContain("a byte order mark");
  });
});

describe("a command may not write", () => {
  const attacks: readonly (readonly [string, string])[] = [
    ["a monitor", "[core]\n\tfsmonitor = evil\n"],
    ["a pager, in upper case, on the line of its section", "[CORE]PaGeR=evil"],
    ["a program of a section with an unexpected sub-section", '[core "x"]\n\tpager = evil\n'],
    ["the old way of a sub-section", "[remote.origin]\n\tvcs = evil\n"],
    ["one in quotes", '[core]\n\teditor = "ev"il\n'],
    ["one over two lines", "[core]\n\teditor = ev\\\nil\n"],
    ["one behind a setting over two lines", "[user]\n\tname = a\\\n\n[core]\n\teditor = evil\n"],
    ["one behind a note that seems to go on", "[user]\n\tname = a # \\\n[core]\n\teditor = evil\n"],
    ["one behind a name with an escaped quote", '[branch "a\\"]"]\n\tmerge = x\n[core]\n\teditor = evil\n'],
    ["more settings", "[include]\n\tpath = evil\n"],
    ["more settings for a folder", '[includeIf "gitdir:/"]\n\tpath = evil\n'],
    ["an alias that is a command", "[alias]\n\tst = !evil\n"],
    ["an alias of git's own", "[alias]\n\tst = status\n"],
    ["another address for all", '[url "ext::sh -c evil"]\n\tinsteadOf = https://\n'],
    ["an address that starts a program", '[remote "origin"]\n\turl = ext::sh -c evil\n'],
    ["the same for pushing", '[remote "origin"]\n\tpushurl = evil::x\n'],
    ["the same for a branch", '[branch "main"]\n\tremote = ext::sh -c evil\n'],
    ["the same for a submodule", '[submodule "a"]\n\turl = ext::sh -c evil\n'],
    ["an address that is an option", '[remote "origin"]\n\turl = --upload-pack=evil\n'],
    ["a host that is an option", '[remote "origin"]\n\turl = ssh://-oProxyCommand=evil/x\n'],
    ["a host that is an option, behind a name", '[remote "origin"]\n\turl = git@-oProxyCommand=evil:x\n'],
    ["the same behind a name in a scheme", '[remote "origin"]\n\turl = ssh://git@-oProxyCommand=evil/x\n'],
    ["a remote's helper", '[remote "origin"]\n\tvcs = evil\n'],
    ["a remote's programs", '[remote "origin"]\n\tuploadpack = evil\n'],
    ["a remote's proxy", '[remote "origin"]\n\tproxy = http://evil\n'],
    ["protocols", '[protocol "ext"]\n\tallow = always\n'],
    ["a proxy of git's protocol", "[core]\n\tgitproxy = evil\n"],
    ["what asks for passwords", "[core]\n\taskpass = evil\n"],
    ["the editor of a rebase", "[sequence]\n\teditor = evil\n"],
    ["a helper of credentials", '[credential "https://example.org"]\n\thelper = !evil\n'],
    ["a proxy of http", "[http]\n\tproxy = http://evil\n"],
    ["http's trust in anybody", "[http]\n\tsslVerify = false\n"],
    ["a program that signs", '[gpg "ssh"]\n\tprogram = evil\n'],
    ["a filter of texts", '[diff "x"]\n\ttextconv = evil\n'],
    ["a filter", '[filter "lfs"]\n\tclean = "git-lfs clean -- %f; evil"\n'],
    ["a command of trailers", '[trailer "x"]\n\tcommand = evil\n'],
    ["how a submodule is updated", '[submodule "a"]\n\tupdate = !evil\n'],
    ["a hook of upload-pack", "[uploadpack]\n\tpackObjectsHook = evil\n"],
    ["another working tree", "[core]\n\tworktree = /home/ann\n"],
    ["another folder of hooks", "[core]\n\thooksPath = evil\n"],
    ["another file of attributes", "[core]\n\tattributesFile = evil\n"],
    ["extensions", "[extensions]\n\tpartialClone = origin\n"],
    ["a tool whose name is a path", "[merge]\n\ttool = ../../evil\n"],
    ["a strategy that is a program", "[pull]\n\ttwohead = evil\n"],
    ["a template of hooks", "[init]\n\ttemplateDir = evil\n"],
    ["a setting that nobody knows", "[core]\n\tnewInTheNextRelease = evil\n"],
    ["lines that end as on Windows", "[user]\r\n\tname = x\r\n"],
    ["a mark of the byte order", "\xef\xbb\xbf[user]\n\tname = x\n"],
    ["a byte of 0", "[user]\n\tname = x\0\n"],
    ["what git does not read", "[user]\n\tname\xa0= x\n"],
    ["a blank letter that is none for git", "[user]\n\xa0\tname = x\n"],
    ["a quote without an end", '[user]\n\tname = "x\n'],
  ];

  test.each(attacks)("%s", (_what, text) => {
    expect(judged(CORE, CORE + text)).toBeDefined();
    expect(judged(CORE, text)).toBeDefined();
    expect(judged(PERSONS, PERSONS + text)).toBeDefined();
  });

  test.each([
    ["another value of what the host has", PERSONS.replace("less -R", "evil")],
    ["less than the host has", PERSONS.replace("\tpager = less -R\n", "")],
    ["it twice", PERSONS + "[core]\n\tpager = less -R\n"],
    [
      "it in another order",
      `[include]\n\tpath = ~/work.inc\n${PERSONS.replace("[include]\n\tpath = ~/work.inc\n", "")}`,
    ],
    ["nothing at all", ""],
  ])("%s, where that runs code", (_what, text) => expect(judged(PERSONS, text)).toBeDefined());

  test("over a file that git cannot read", () => expect(judged("[core\n", CORE)).toContain("could not read"));

  test("and is told which setting it is, and who may", () => {
    expect(judged(CORE, `${CORE}[remote "o"]\n\tvcs = evil\n`)).toContain("git config remote.o.vcs VALUE");
  });
});

test("whatever the letters, settings are read as git reads them, or not at all", () => {
  const words = [
    "[",
    "]",
    "core",
    "a",
    '"',
    " ",
    "\t",
    "\n",
    "\\",
    "=",
    "#",
    ";",
    "\r",
    "\r\n",
    ".",
    "-",
    "1",
    "!",
    "\xa0",
    "n",
  ];
  const part = fc.oneof(
    fc.constantFrom(...words),
    fc.constantFrom("[core]\n", '[a "b"]\n', "\tpager = x\n", "\ta = x\\\n", ' a = "x', '[a "b\\"'),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 14 }), (parts) => {
      const text = parts.join("");
      const settings = gitSettings(text);
      // A name without a section is nothing that git looks for.
      if (settings === undefined) return;
      const names = settings.map(({ name, subsection }) => {
        const at = name.lastIndexOf(".");
        return subsection === undefined ? name : `${name.slice(0, at)}.${subsection}${name.slice(at)}`;
      });
      expect(byGit(text)?.map((setting) => setting.split("\n")[0])).toEqual(names);
    }),
    { numRuns: 300 },
  );
});

describe("the settings of worktrees", () => {
  const ON = `${CORE}[extensions]\n\tworktreeConfig = true\n`;
  const OFF = `${CORE}[extensions]\n\tworktreeConfig = false\n`;
  const SPARSE = "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n";
  let made = 0;

  function repository(files: Readonly<Record<string, string>>): string {
    made += 1;
    const git = join(base, `w${made}.git`);
    mkdirSync(git);
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(git, name)), { recursive: true });
      writeFileSync(join(git, name), text);
    }
    return join(git, "config");
  }

  test.each([
    ["where there are none", {}],
    ["where they run nothing", { "config.worktree": SPARSE, "worktrees/a/config.worktree": SPARSE }],
  ])("a command lets them count, or not, %s", (_what, files) => {
    const path = repository(files);
    expect(judged(CORE, ON, path)).toBeUndefined();
    expect(judged(ON, CORE, path)).toBeUndefined();
    expect(judged(ON, OFF, path)).toBeUndefined();
  });

  test.each([
    ["run a program", { "config.worktree": "[core]\n\tfsmonitor = evil\n" }],
    ["run one in another worktree", { "worktrees/a/config.worktree": "[core]\n\tpager = evil\n" }],
    ["say where a push goes", { "config.worktree": '[remote "origin"]\n\turl = /elsewhere\n' }],
    ["cannot be read", { "config.worktree": "[core\n" }],
  ])("it does neither where they %s", (_what, files) => {
    const path = repository(files);
    expect(judged(CORE, ON, path)).toContain("extensions.worktreeconfig");
    expect(judged(ON, CORE, path)).toContain("extensions.worktreeconfig");
  });

  test("a command makes them, and not with a program or another address of a remote", () => {
    const path = join(dirname(repository({})), "config.worktree");
    expect(judged("", SPARSE, path)).toBeUndefined();
    expect(judged("", "[core]\n\tpager = evil\n", path)).toContain("core.pager");
    expect(judged("", '[remote "origin"]\n\turl = /elsewhere\n', path)).toContain("remote.origin.url");
  });
});

test("a judged file whose bytes were changed, and its size and time not, is judged no more", () => {
  const folder = mkdtempSync(join(tmpdir(), "substrate-judged-"));
  try {
    const [path, judged] = [
      join(folder, "config"),
      new JudgedSettings(new Remotes(mkdtempSync(join(base, "r")), process.getuid?.() ?? 0, () => {})),
    ];
    writeFileSync(path, "good");
    utimesSync(path, 1000, 1000);
    judged.accepted(path, lstatSync(path, { bigint: true }), Buffer.from("good"));
    expect(judged.has(path)).toBe(true);
    writeFileSync(path, "evil");
    utimesSync(path, 1000, 1000);
    expect(judged.has(path)).toBe(false);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("64 times as many settings that run code take about 64 times the work", () => {
  const judging = (count: number) => {
    const lines = Array.from({ length: count }, (_each, at) => `[alias]\n\ta${at} = !x\n`);
    const [before, after] = [lines, lines.toReversed()].map((all) => Buffer.from(all.join("")));
    const judge = (): string | undefined =>
      new JudgedSettings(new Remotes(mkdtempSync(join(base, "r")), process.getuid?.() ?? 0, () => {})).judge({
        path: PATH,
        before: before ?? Buffer.of(),
        after: after ?? Buffer.of(),
      })?.message;
    expect(judge()).toContain("would change their order");
    return judge;
  };
  expect(growthOverSixtyFour(400, judging)).toBeLessThan(MOST_GROWTH);
});
