import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { reasonOf } from "../../../../broker/journey/refused-writes.ts";
import { explainErrors } from "../../../../broker/journey/why-failed.ts";
import { policyOf } from "../../../support/policy/starts.ts";

const home = mkdtempSync(join(tmpdir(), "substrate-refused-"));
afterAll(() => rmSync(home, { recursive: true }));
const at = (path: string): string => join(home, path);

for (const path of [".cargo/.package-cache", ".cargo/bin/tool", ".local/bin/own", ".tool/state/file"]) {
  mkdirSync(join(at(path), ".."), { recursive: true });
  writeFileSync(at(path), "");
}
mkdirSync(at(".config"));
mkdirSync(at("work/app/bin"), { recursive: true });
mkdirSync(at(".rubies/3/bin"), { recursive: true });

const RULES = {
  ...{ policies: [policyOf({}, { fs: { write: ["$PROJECT/**"] } })], project: "/projects/app", home },
  ...{ installation: [], places: [], plain: false, searched: `${at(".local/bin")}:/usr/bin:relative` },
  isWritable: () => true,
};

test("a refused hook is said to be held where the command is isolated, if the policy isolates any", () => {
  const said = (mode: "observe" | "enforce"): string =>
    reasonOf("/projects/app/.git/hooks/post-commit", {
      ...RULES,
      policies: [policyOf({}, { mode })],
      plain: true,
    });
  expect(said("enforce")).toContain("a command listed in commands.isolated may write it");
  expect(said("observe")).toMatch(/; a policy that only observes isolates no command/);
});

describe("what a refused write says may be opened", () => {
  test.each([
    ["the folder of a file", ".tool/state/new", ".tool/state"],
    ["a folder of a working tree that is called as those of programs", "work/app/bin/new", "work/app/bin"],
    ["a working tree with such a folder", "work/app/new", "work/app"],
    ["the file alone, where its folder holds credentials", ".cargo/.package-cache", ".cargo/.package-cache"],
  ])("is %s", (_what, path, opened) => {
    expect(reasonOf(at(path), RULES)).toContain(
      `"substrate policy allow write ${at(opened)}" allows it, or ask for the scope 'fs.write:${at(opened)}'`,
    );
  });

  test.each([
    ["in a folder that is another user's", ".tool/state/new"],
    ["where neither the file nor its folder may be written", ".tool/state/file"],
  ])("is nothing %s, because no policy could open it", (_what, path) => {
    const said = reasonOf(at(path), { ...RULES, isWritable: () => false });
    expect(said).toContain("this user may not write there without Substrate either");
    expect(said).not.toMatch(/policy allow|request_scopes/);
  });

  test("is a file of the user's in a folder of another", () => {
    const path = at(".tool/state/file");
    expect(reasonOf(path, { ...RULES, isWritable: (one) => one === path })).toContain("policy allow write");
  });

  test.each([
    ["a missing file beside credentials", ".cargo/config.toml"],
    ["a folder of credentials", ".cargo"],
    ["a folder that may hold credentials of many", ".config/new"],
    ["a folder of programs that is on nobody's PATH here", ".cargo/bin/new"],
    ["a folder around such a one", ".rubies/3/new"],
    ["a new program on PATH", ".local/bin/new"],
    ["a program on PATH", ".local/bin/own"],
    ["a folder around programs on PATH", ".local/new"],
  ])("is never %s", (_what, path) => {
    const said = reasonOf(at(path), RULES);
    expect(said).toContain("no folder around it is safe to open");
    expect(said).toContain("fs.write of policy");
    expect(said).toContain("request_scopes");
    expect(said).not.toContain("policy allow write");
  });
});

const POLICY = policyOf({}, { fs: { write: ["$PROJECT/**"], deny_read: ["$HOME/.ssh", "**/.env"] } });
const ERROR_RULES = {
  ...{
    policies: [POLICY],
    project: "/projects/app",
    home: "/home/ann",
    installation: [],
    places: [],
    searched: "",
  },
  plain: false,
  isWritable: () => true,
};

function explained(stderr: string, isolated = true, failed = true): readonly string[] {
  return explainErrors(
    { said: Buffer.from(stderr), cwd: "/projects/app/src", failed, isolated },
    ERROR_RULES,
  );
}

describe("a write that an isolated command may not make is told by what it says", () => {
  test.each([
    "/bin/sh: 1: cannot create /opt/new: Read-only file system",
    "bash: /opt/new: Read-only file system",
    "touch: cannot touch '/opt/new': Read-only file system",
    "mkdir: cannot create directory ‘/opt/new’: Read-only file system",
    "Error: EROFS: read-only file system, open '/opt/new'",
    "OSError: [Errno 30] Read-only file system: '/opt/new'",
    "tar (child): /opt/new: Cannot open: Read-only file system",
    "cc1: fatal error: output file /opt/new: Read-only file system",
    "patch: **** Can't create file /opt/new : Read-only file system",
    "fatal: cannot mkdir /opt/new: Read-only file system",
    "/opt/new: Read-only file system",
    'rsync: [Receiver] mkdir "/opt/new" failed: Read-only file system (30)',
    'Can\'t open "/opt/new" for writing, Read-only file system',
    'awk: cannot open "/opt/new" for output (Read-only file system)',
    "x.rb:1:in `initialize': Read-only file system @ rb_sysopen - /opt/new (Errno::EROFS)",
    "zip I/O error: Read-only file system\nzip error: Could not create output file (/opt/new)",
  ])("%s", (line) => {
    const [told, ...more] = explained(`before\n${line}\nafter\n`);
    expect(told).toContain("'/opt/new' was not written: it is outside fs.write of policy 'p' (p.yaml:1)");
    expect(more).toEqual([]);
  });

  test("as a missing folder by Node, where the folder around it is there", () => {
    const line = (path: string): string =>
      `npm error enoent ENOENT: no such file or directory, mkdir '${path}'\n`;
    for (const isolated of [true, false])
      expect(explained(line("/usr/lib/no-such-name"), isolated)).toEqual([
        expect.stringContaining("'/usr/lib/no-such-name' was not written: it is outside fs.write"),
      ]);
    for (const path of ["/usr/no-such-name/below", "/usr/lib", "/projects/app/src/new"])
      expect(explained(line(path), false), path).toEqual([]);
  });

  test("once for each path, and not where each write is told anyway", () => {
    const line = "touch: cannot touch '/opt/new': Read-only file system\n";
    expect(explained(line.repeat(3))).toHaveLength(1);
    expect(explained(line, false)).toEqual([]);
  });

  test("also where the command went on and succeeded, and no hidden name then", () => {
    expect(explained("touch: cannot touch '/opt/new': Read-only file system\n", true, false)).toHaveLength(1);
    expect(explained("cat: /home/ann/.ssh/id: No such file or directory\n", true, false)).toEqual([]);
  });

  test("of 32 paths at most", () => {
    const lines = Array.from({ length: 100 }, (_, at) => `bash: /opt/${at}: Read-only file system\n`);
    expect(explained(lines.join(""))).toHaveLength(32);
  });
});

describe("a hidden name is told by what a command says of it", () => {
  test.each([
    ["cat: /home/ann/.ssh/id: No such file or directory", "/home/ann/.ssh/id", "$HOME/.ssh"],
    ["cat: ../.env: Permission denied", "/projects/app/.env", "**/.env"],
    ["sh: 1: cannot open .env: No such file", "/projects/app/src/.env", "**/.env"],
    ["Error: ENOENT: no such file or directory, open '/home/ann/.ssh/id'", "/home/ann/.ssh/id", "$HOME/.ssh"],
    ["FileNotFoundError: [Errno 2] No such file or directory: '.env'", "/projects/app/src/.env", "**/.env"],
    [
      "error: Couldn't load public key /home/ann/.ssh/id.pub: No such file or directory?",
      "/home/ann/.ssh/id.pub",
      "$HOME/.ssh",
    ],
    [
      "Warning: Identity file /home/ann/.ssh/id not accessible: No such file or directory.",
      "/home/ann/.ssh/id",
      "$HOME/.ssh",
    ],
  ])("%s", (line, path, pattern) => {
    expect(explained(`${line}\n`, false)).toEqual([
      `'${path}' is hidden, whether it exists or not: '${pattern}' is in fs.deny_read of policy 'p' (p.yaml:1)`,
    ]);
  });

  test("and by a write of a program that makes it, because it finds none, with nothing offered", () => {
    expect(reasonOf(at(".cargo/credentials.toml"), RULES)).toMatch(/^it is hidden[^;]*\(p\.yaml:1\)$/);
    expect(reasonOf("/home/ann/.ssh", ERROR_RULES)).toBe(
      "it is hidden, whether it exists or not: '$HOME/.ssh' is in fs.deny_read of policy 'p' (p.yaml:1)",
    );
  });

  test("and a name that no list denies is not", () => {
    expect(explained("cat: none: No such file or directory\nsh: 1: x: not found\n")).toEqual([]);
  });
});

describe("a denied file that is busy, because it is a mount point, is told where the command is isolated", () => {
  const rules = { ...ERROR_RULES, policies: [policyOf({}, {})] };
  const told = (stderr: string, isolated: boolean): readonly string[] =>
    explainErrors({ said: Buffer.from(stderr), cwd: "/projects/app", failed: true, isolated }, rules);

  test.each([
    "error: could not write config file .git/config: Device or resource busy",
    "mv: cannot move 'n' to '.git/config': Device or resource busy",
    "mv: cannot move '.git/config' to 'c2': Device or resource busy",
    "OSError: [Errno 16] Device or resource busy: 'n' -> '.git/config'",
    "Error: EBUSY: resource busy or locked, rename 'n' -> '.git/config'",
  ])("%s", (line) => {
    const [sentence, ...more] = told(line, true);
    expect(more).toEqual([]);
    expect(sentence).toMatch(
      /^'\/projects\/app\/\.git\/config' was not written: .*every policy in force isolates/,
    );
    expect(told(line, false)).toEqual([]);
  });

  test("and not a busy file that no list denies", () => {
    expect(
      told("umount: '/mnt': Device or resource busy\nrm: cannot remove 'd': Device or resource busy", true),
    ).toEqual([]);
  });
});

test.each([
  "python3: can't open file '/tmp/s.py': [Errno 2] No such file or directory",
  "cat: /tmp/s.py: No such file or directory",
  "Error: Cannot find module '/tmp/s.py'",
  "sh: 0: cannot open /tmp/s.py: No such file",
])("a missing file of /tmp that the caller names is told: %s", (line) => {
  const said = { said: Buffer.from(`${line}\n`), cwd: "/projects/app", failed: true, isolated: false };
  expect(explainErrors({ ...said, command: "python3 /tmp/s.py" }, ERROR_RULES)).toEqual([
    expect.stringMatching(/^'\/tmp\/s\.py' is not in the world, which has a '\/tmp' of its own: /),
  ]);
  // What programs look for there by themselves, and what is missing elsewhere, is no news.
  expect(explainErrors({ ...said, command: "npm test" }, ERROR_RULES)).toEqual([]);
  const elsewhere = Buffer.from(`${line.replace("/tmp/s.py", "/projects/app/s.py")}\n`);
  expect(
    explainErrors({ ...said, said: elsewhere, command: "python3 /projects/app/s.py" }, ERROR_RULES),
  ).toEqual([]);
});

test("a hidden file is told of a command that ended well too, where the caller's words name it", () => {
  const said = Buffer.from("cat: /home/ann/.ssh/id_rsa: No such file or directory\n");
  const told = (command: string): readonly string[] =>
    explainErrors({ said, cwd: "/projects/app", failed: false, isolated: false, command }, ERROR_RULES);
  expect(told("cat ~/.ssh/id_rsa | wc -l")).toEqual([
    expect.stringMatching(/^'\/home\/ann\/\.ssh\/id_rsa' is hidden, whether it exists or not/),
  ]);
  expect(told("npm test")).toEqual([]);
});

test("a path whose reason lines later tell is told too, where the command is isolated", () => {
  const stderr =
    "error: failed to open: /home/ann/.cargo/.crates.toml\n\nCaused by:\n  Read-only file system (os error 30)\n";
  const said = { said: Buffer.from(stderr), cwd: "/projects/app", failed: true };
  expect(explainErrors({ ...said, isolated: true }, ERROR_RULES)).toEqual([
    expect.stringMatching(/^'\/home\/ann\/\.cargo\/\.crates\.toml' was not written: /),
  ]);
  expect(explainErrors({ ...said, isolated: false }, ERROR_RULES)).toEqual([]);
});

test("a plain command's write that modes refuse this user anyway is told where nothing else tells why it failed", () => {
  const stderr =
    "npm error EROFS: read-only file system, symlink '../../work' -> '/usr/lib/node_modules/work'\ntouch: cannot touch 'own': Read-only file system\n";
  const said = { said: Buffer.from(stderr), cwd: "/projects/app", failed: true, isolated: false };
  const rules = { ...ERROR_RULES, isWritable: () => false };
  expect(explainErrors(said, rules)).toEqual([
    expect.stringMatching(
      /^'\/usr\/lib\/node_modules\/work' was not written: .* may not write there without Substrate either/,
    ),
  ]);
  for (const other of [{ explained: true }, { failed: false }])
    expect(explainErrors({ ...said, ...other }, rules)).toEqual([]);
  expect(explainErrors(said, ERROR_RULES)).toEqual([]);
});

test("modes of a denied folder's files are told once, where nothing else tells why a plain command failed", () => {
  const stderr = ["pre-push", "pre-commit"]
    .map((name) => `chmod: changing permissions of './.git/hooks/${name}': Read-only file system\n`)
    .join("");
  const said = { said: Buffer.from(stderr), cwd: "/projects/app", failed: true, isolated: false };
  const rules = { ...ERROR_RULES, policies: [policyOf({}, {})] };
  expect(explainErrors(said, rules)).toEqual([
    expect.stringMatching(
      /^'\/projects\/app\/\.git\/hooks\/pre-push' was not written: '\$PROJECT\/\.git\/hooks' is in /,
    ),
  ]);
  expect(explainErrors({ ...said, explained: true }, rules)).toEqual([]);
});

test.each([
  ["ls ../other", "ls: cannot access '../other': No such file or directory"],
  ["git fetch ../other", "fatal: '../other' does not appear to be a git repository"],
  ["git clone /tmp/other x", "fatal: repository '/tmp/other' does not exist"],
])("what lies beside a project in /tmp is told however it is named: %s", (command, line) => {
  const said = { said: Buffer.from(`${line}\n`), cwd: "/tmp/app", failed: true, isolated: false, command };
  const rules = { ...ERROR_RULES, project: "/tmp/app" };
  expect(explainErrors(said, rules)).toEqual([
    expect.stringMatching(/^'\/tmp\/other' is not in the world, which has a '\/tmp' of its own: /),
  ]);
  for (const other of ["npm test", "cat ../other/b.txt", "ls .."])
    expect(explainErrors({ ...said, command: other }, rules)).toEqual([]);
});

test("no text that a command prints holds the broker up", () => {
  const before = process.cpuUsage();
  for (const piece of [
    "failed to open/",
    " /",
    '"a" failed ',
    "failed to open: /a\n",
    "\u2018",
    "Identity file /",
    "'a': ",
    ": a",
    "mkdir '",
  ])
    explainErrors(
      { said: Buffer.from(piece.repeat(81_920 / piece.length)), cwd: "/p", failed: true, isolated: true },
      ERROR_RULES,
    );
  // Processor time, not the clock's: the first version of one pattern took minutes.
  expect(process.cpuUsage(before).user).toBeLessThan(3_000_000);
});
