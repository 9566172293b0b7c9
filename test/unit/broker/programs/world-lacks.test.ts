import { describe, expect, test } from "vitest";
import { type CommandEnd, WorldLacks } from "../../../../broker/programs/world-lacks.ts";
import type { ProgramEvent } from "../../../../world/backend.ts";

const at = 0n;

function ran(path: string, end: { code: number | null; signal?: number | null }, number = 1): ProgramEvent[] {
  const { code, signal = null } = end;
  return [
    { kind: "started", number, parent: 0, pid: 7, path, argv: [path], cut: false, at },
    { kind: "ended", number, at, code, signal, replaced: false },
  ];
}

const END: CommandEnd = {
  argv: ["/bin/sh", "-c", "x"],
  failed: true,
  explained: false,
  namespacesTold: false,
  sockets: [],
  builtins: [],
  said: () => "",
};

function told(
  uid: number,
  events: readonly ProgramEvent[],
  end: Partial<CommandEnd> = {},
): readonly string[] {
  const lacks = new WorldLacks(uid);
  lacks.add(events);
  return lacks.told({ ...END, ...end }).map(({ message }) => message.slice(0, 60));
}

describe("what a world lacks is told", () => {
  test.each([0, 1000])("of a program that failed and makes namespaces, to uid %s", (uid) => {
    const words = ["'unshare' failed: commands in a world cannot make namespaces, mo"].map((one) =>
      one.slice(0, 60),
    );
    expect(told(uid, ran("/usr/bin/unshare", { code: 1 }))).toEqual(words);
    expect(told(uid, ran("/usr/bin/unshare", { code: null, signal: 9 }))).toEqual(words);
    expect(told(uid, [], { argv: ["/usr/bin/unshare", "-U"] })).toEqual(words);
    // The line went on after it.
    expect(told(uid, ran("/usr/bin/unshare", { code: 1 }), { failed: false })).toEqual(words);
  });

  test("and which programs read the user's .npmrc, whether they failed or not", () => {
    const lacks = new WorldLacks(1000);
    const started = (path: string, ...words: string[]): ProgramEvent => ({
      ...{ kind: "started", number: 1, parent: 0, pid: 7, path, argv: [path, ...words], cut: false, at },
    });
    lacks.add([started("/usr/bin/npm", "install"), started("/usr/bin/bun", "run", "lint")]);
    expect([...lacks.npmrcReaders]).toEqual([]);
    lacks.add([started("/usr/bin/pnpm", "add", "x"), started("/usr/bin/bunx", "tool")]);
    expect([...lacks.npmrcReaders]).toEqual(["pnpm", "bunx"]);
  });

  test("of root's chattr, and of anybody's dmesg, also before a pipe", () => {
    const chattr = {
      said: () => "chattr: Operation not permitted while setting flags on f\n",
      failed: false,
    };
    const dmesg = {
      said: () => "dmesg: read kernel buffer failed: Operation not permitted\n",
      failed: false,
    };
    expect(told(0, ran("/usr/bin/chattr", { code: 1 }), chattr)).toHaveLength(1);
    for (const uid of [0, 1000])
      expect(told(uid, ran("/usr/bin/dmesg", { code: 1 }), dmesg)).toEqual([
        expect.stringMatching(/^'dmesg' failed: a world does not read/),
      ]);
  });

  test("of programs that send datagrams, by what they print, and root is not told of capabilities then", () => {
    const said: Readonly<Record<string, string>> = {
      "/usr/bin/dig": ";; communications error to 8.8.8.8#53: timed out\n;; no servers could be reached\n",
      "/usr/bin/socat": "2026/11/30 socat[2621] E write(5, 0x55875132d000, 2): Operation not permitted\n",
      "/usr/bin/traceroute.db": "send: Operation not permitted\n",
      "/usr/bin/node": "Error: send EPERM 8.8.8.8:53\n    at doSend (node:dgram:721:16)\n",
      "/usr/bin/script.py":
        '  File "/p/s.py", line 2, in <module>\n    s.sendto(b"x", ("8.8.8.8", 53))\nPermissionError: [Errno 1] Operation not permitted\n',
    };
    for (const [path, text] of Object.entries(said))
      for (const uid of [0, 1000]) {
        const [words, ...more] = told(uid, ran(path, { code: 1 }), { argv: [path], said: () => text });
        expect(words, path).toMatch(/^'[\w.]+' failed: a world car/);
        expect(more).toEqual([]);
      }
    expect(told(1000, ran("/usr/bin/dig", { code: 1 }), { said: () => "dig: invalid option\n" })).toEqual([]);
    expect(
      told(1000, [], { said: () => "open('x')\nPermissionError: [Errno 1] Operation not permitted: 'x'\n" }),
    ).toEqual([]);
  });

  test("of a mount that was refused, and of no other failure of mount's", () => {
    const refused = { said: () => "umount: /tmp: must be superuser to unmount.\n" };
    expect(told(1000, ran("/usr/bin/umount", { code: 32 }), refused)).toHaveLength(1);
    const missing = { said: () => "umount: /tmp/x: no mount point specified.\n" };
    expect(told(1000, ran("/usr/bin/umount", { code: 32 }), missing)).toEqual([]);
    expect(told(1000, ran("/usr/bin/mount", { code: null, signal: 13 }))).toEqual([]);
  });

  test("of an agent's socket that the world does not share", () => {
    const add = ran("/usr/bin/ssh-add", { code: 2 });
    const sign = ran("/usr/bin/gpg", { code: 2 });
    const noKey = { said: () => "gpg: signing failed: No secret key\n" };
    const noAgent = { said: () => "Could not open a connection to your authentication agent.\n" };
    expect(told(1000, add)).toEqual([]);
    expect(told(1000, add, noAgent)).toEqual([
      "'ssh-add' failed: this world has no ssh-agent. 'world.socket",
    ]);
    expect(told(1000, add, { ...noAgent, sockets: ["ssh-agent"] })).toEqual([]);
    const refused = { said: () => 'Could not add identity "id": agent refused operation\n' };
    expect(told(1000, add, { ...refused, sockets: ["ssh-agent"] })).toEqual([
      "'ssh-add' failed: commands in a world list the keys of your ",
    ]);
    expect(told(1000, add, refused)).toEqual([]);
    expect(told(1000, sign, noKey)).toEqual(["'gpg' failed: this world has no gpg-agent, and so no secret "]);
    expect(told(1000, sign, { ...noKey, sockets: ["ssh-agent"] })).toHaveLength(1);
    expect(told(1000, sign, { ...noKey, sockets: ["gpg-agent"] })).toEqual([]);
    expect(told(1000, sign, { said: () => "gpg: BAD signature\n" })).toEqual([]);
  });

  test.each([
    ["sudo", 'sudo: The "no new privileges" flag is set', "rights of its user"],
    ["ping", "ping: prctl: Operation not permitted", "TCP connections alone"],
    ["crontab", "crontab: permission denied", "runs jobs later"],
    ["nft", "mnl.c:60: Unable to initialize Netlink socket: Address family not supported", "net.allowed"],
    ["date", "date: cannot set date: Operation not permitted", "clock"],
    ["systemctl", "Failed to connect to bus: Host is down", "no service manager"],
    ["perf", "Error:\nNo permission to enable task-clock event.", "no performance counters"],
    ["perf", "Error:\tUnable to find debugfs/tracefs", "no kernel traces"],
    ["xclip", "Error: Can't open display: (null)", "no display"],
    ["docker", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "container engine"],
    [
      "git",
      "fatal: could not read Username for 'https://example.org': No such device or address",
      "accounts",
    ],
    ["gh", "To get started with GitHub CLI, please run:  gh auth login", "world.env"],
    [
      "aws",
      'Unable to locate credentials. You can configure credentials by running "aws login".',
      "accounts",
    ],
    ["npm", "npm error code ENEEDAUTH", "accounts"],
    ["kubectl", "The connection to the server localhost:8080 was refused", "accounts"],
    ["ssh", "Host key verification failed.", "known hosts"],
    ["ssh", "git@example.org: Permission denied (publickey).", "ssh-agent"],
  ])("of '%s', which says %j of what the world keeps from it", (program, says, words) => {
    const lacks = new WorldLacks(1000);
    lacks.add(ran(`/usr/bin/${program}`, { code: 1 }));
    const [told, ...more] = lacks.told({ ...END, said: () => `${says}\n` });
    expect(more).toEqual([]);
    expect(told).toMatchObject({ program, message: expect.stringContaining(words) });
  });

  test.each([
    "sh: 1: cannot create x: Permission denied",
    "nginx: [emerg] bind() to 0.0.0.0:80 failed (13: Permission denied)",
    "PermissionError: [Errno 13] Permission denied",
    "Error: listen EACCES: permission denied 0.0.0.0:80",
  ])("of root, which has no capabilities, where a failed command says %j", (says) => {
    const said = (): string => `${says}\n`;
    expect(told(0, ran("/usr/bin/some", { code: 1 }), { said })).toEqual([
      expect.stringContaining("root has no capabilities"),
    ]);
    expect(told(1000, ran("/usr/bin/some", { code: 1 }), { said })).toEqual([]);
    expect(told(0, ran("/usr/bin/some", { code: 0 }), { said, failed: false })).toEqual([]);
  });

  test("not of accounts where a tool that has them fails for another reason", () => {
    for (const [program, says] of [
      ["git", "error: pathspec 'x' did not match any file(s) known to git"],
      ["npm", "npm error code ELIFECYCLE\n1) answers 401 to who is not logged in: Unauthorized"],
      ["git", "pre-commit: Unauthorized, wrong credentials"],
      ["npm", "npm error 404 Not Found - GET https://registry.example/no-such-package"],
    ] as const)
      expect(told(1000, ran(`/usr/bin/${program}`, { code: 1 }), { said: () => `${says}\n` })).toEqual([]);
  });

  test("not of owners, access lists and later jobs that fail on the host too", () => {
    for (const [uid, program, says] of [
      [1000, "chown", "chown: cannot access 'none': No such file or directory"],
      [0, "chown", "chown: invalid user: 'nobody-here'"],
      [1000, "setfacl", "setfacl: Option -m: Invalid argument near character 3"],
      [1000, "crontab", "/none: No such file or directory"],
    ] as const)
      expect(told(uid, ran(`/usr/bin/${program}`, { code: 1 }), { said: () => `${says}\n` })).toEqual([]);
    const owner = { said: () => "chown: changing ownership of 'a': Invalid argument\n" };
    expect(told(1000, ran("/usr/bin/chown", { code: 1 }), owner)).toHaveLength(1);
  });

  test("not of docker or ssh where they fail for another reason, or the socket is shared", () => {
    const docker = ran("/usr/bin/docker", { code: 1 });
    expect(told(1000, docker, { said: () => "no such image\n" })).toEqual([]);
    expect(told(1000, ran("/usr/bin/ssh", { code: 2 }), { said: () => "usage: ssh\n" })).toEqual([]);
    const stderr = (): string => "Is the docker daemon running?\n";
    expect(told(1000, docker, { said: stderr })).toHaveLength(1);
    expect(told(1000, docker, { said: stderr, sockets: ["/run/docker.sock"] })).toEqual([]);
  });

  test("not of perf where it reads no file, or the program that it watched failed", () => {
    const perf = ran("/usr/bin/perf", { code: 255 });
    for (const says of ["failed to open perf.data: No such file or directory", "make: *** [all] Error 1"])
      expect(told(1000, perf, { said: () => `${says}\n` })).toEqual([]);
    const stderr = (): string => "Error:\nNo permission to enable cycles:u event.\n";
    expect(told(1000, perf, { said: stderr })).toHaveLength(1);
    expect(told(1000, ran("/usr/bin/perf", { code: 0 }), { said: stderr, failed: false })).toEqual([]);
  });

  test("once of a kind, however many fail", () => {
    const events = [...ran("/usr/bin/unshare", { code: 1 }), ...ran("/usr/bin/bwrap", { code: 1 }, 2)];
    expect(told(0, events)).toHaveLength(1);
  });

  test("where nobody knows how the program ended only of a command that failed", () => {
    expect(told(0, ran("/usr/bin/unshare", { code: null }))).toHaveLength(1);
    expect(told(0, ran("/usr/bin/unshare", { code: null }), { failed: false })).toEqual([]);
  });

  test("of an access list that names others, but to root", () => {
    const said = (): string => "setfacl: a: Invalid argument\n";
    expect(told(1000, ran("/usr/bin/setfacl", { code: 1 }), { said })).toHaveLength(1);
    expect(told(0, ran("/usr/bin/setfacl", { code: 1 }), { said })).toEqual([]);
  });

  test("of core files and descriptors where the line raises them, and failed", () => {
    const said = (): string =>
      "bash: line 1: ulimit: open files: cannot modify limit: Operation not permitted\n";
    for (const fragment of ["ulimit -c unlimited", "ulimit -Hn 999999", "ulimit -S -n 99999"])
      expect(told(1000, [], { builtins: [fragment], said })).toHaveLength(1);
    expect(told(1000, [], { builtins: ["ulimit -t 5"], said })).toEqual([]);
    // Another program of the line failed.
    expect(told(1000, [], { builtins: ["ulimit -n 256"] })).toEqual([]);
    const builtins = ["ulimit -c unlimited"];
    expect(told(1000, [], { builtins, failed: false })).toEqual([]);
    // A script that goes on after the refusal.
    for (const said of [
      "error setting limit (Operation not permitted)",
      "core file size: cannot modify limit: x",
    ])
      expect(
        told(1000, [], { builtins, failed: false, said: () => `sh: 1: ulimit: ${said}\n` }),
      ).toHaveLength(1);
  });

  test("of root's rights where something was not permitted and nothing else says why", () => {
    const stderr = (): string => "cat: f: Permission denied\n";
    expect(told(0, [], { said: stderr })).toHaveLength(1);
    expect(told(0, [], { said: stderr, explained: true })).toEqual([]);
    expect(told(0, [], { said: stderr, failed: false })).toEqual([]);
    expect(told(1000, [], { said: stderr })).toEqual([]);
    expect(told(0, [], { said: () => "cat: f: No such file or directory\n" })).toEqual([]);
  });
});

test("a program that failed for other reasons, or did not fail, is told of nothing", () => {
  expect(
    told(1000, [...ran("/usr/bin/grep", { code: 1 }), ...ran("/usr/bin/unshare", { code: 0 }, 2)]),
  ).toEqual([]);
});
