import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { needs } from "../support/run/needs.ts";
import { skip } from "../support/run/skips.ts";
import {
  attack,
  type Disguise,
  FORBIDDEN,
  makes,
  NOTHING_OPAQUE,
  POLICY,
} from "../support/policy/command-attacks.ts";

/** Name, the program that must be installed, and the disguise. */
const RUNNERS: readonly (readonly [string, string, Disguise["command"]])[] = [
  ["find -exec", "find", (file) => `find . -maxdepth 0 -exec touch ${file} \\;`],
  ["find -execdir +", "find", (file) => `find . -maxdepth 0 -execdir true {} + -exec touch ${file} \\;`],
  ["find -ok", "find", (file) => `echo y | find . -maxdepth 0 -ok touch ${file} \\;`],
  ["xargs", "xargs", (file) => `true | xargs touch ${file}`],
  ["xargs -I", "xargs", (file) => `echo a | xargs -I{} touch ${file}`],
  ["xargs --replace", "xargs", (file) => `echo a | xargs --replace touch ${file}`],
  ["env", "env", (file) => `env -u A B=1 touch ${file}`],
  ["env -S", "env", (file) => `env -S 'touch ${file}'`],
  ["env -S with its own blanks", "env", (file) => `env -S 'touch\\_${file}'`],
  ["env -S with options of its own", "env", (file) => `env -S '-u A touch ${file}'`],
  [
    "a row of wrappers",
    "setsid",
    (file) => `nohup nice -n 1 timeout -k 1 5 setsid -w stdbuf -oL touch ${file}`,
  ],
  ["command, exec", "sh", (file) => `command exec touch ${file}`],
  ["flock -c", "flock", (file) => `flock lock -c 'touch ${file}'`],
  ["split --filter", "split", (file) => `echo a | split --filter='touch ${file}'`],
  ["git -c alias", "git", (file) => `git -c alias.x='!touch ${file}' x`],
  ["git -c alias with its words behind it", "git", (file) => `git -c alias.x='!touch' x ${file}`],
  ["git grep -O", "git", (file) => `echo a > g; git grep --no-index -O'touch ${file};:' a g`],
  ["git --upload-pack", "git", (file) => `git ls-remote --upload-pack='touch ${file};' . ; true`],
  [
    "tar --checkpoint-action",
    "tar",
    (file) => `tar cf x.tar --checkpoint=1 --checkpoint-action=exec='touch ${file}' /etc/hostname`,
  ],
  ["tar --use-compress-program", "tar", (file) => `tar cf x.tar -I 'touch ${file}' /etc/hostname; true`],
  [
    "tar --to-command",
    "tar",
    (file) => `tar cf x.tar /etc/hostname && tar xf x.tar --to-command='touch ${file}'`,
  ],
  ["vim -c", "vim", (file) => `vim -es -c '!touch ${file}' -c q`],
  ["busybox", "busybox", (file) => `busybox touch ${file}`],
  ["busybox sh", "busybox", (file) => `busybox sh -c 'touch ${file}'`],
  ["the loader", "touch", (file) => `/lib64/ld-linux-x86-64.so.2 /usr/bin/touch ${file}`],
  ["/proc/self/root", "touch", (file) => `/proc/self/root/usr/bin/touch ${file}`],
];

describe.each(actors())("a program that runs programs, as $kind", (actor) => {
  let broker: TestBroker;
  const installed = new Set<string>();
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    const names = [...new Set(RUNNERS.map(([, program]) => program))];
    const { stdout } = await broker.run(
      `for p in ${names.join(" ")}; do command -v $p > /dev/null && echo $p; done; true`,
    );
    for (const name of stdout.split("\n")) installed.add(name);
  });
  afterAll(() => broker.stop());

  test.each(RUNNERS)("%s hides nothing; the same for another file runs", async (what, program, command) => {
    await attack(broker, { command }, "commands.denied");
    if (!installed.has(program))
      return skip(`that ${what} runs what is allowed`, `${program} is not installed`);
    await makes(broker, command, "permitted");
  });
});

/** What they run is not known, so they are opaque. The twin says it in a way that is. */
const OPAQUE: readonly (readonly [string, Disguise["command"], Disguise["command"]])[] = [
  [
    "a program by its descriptor",
    (file) => `exec 3</usr/bin/touch; /proc/self/fd/3 ${file}`,
    (file) => `exec 3</usr/bin/touch; touch ${file}`,
  ],
  [
    "a shell by its descriptor",
    (file) => `echo 'touch ${file}' > s; exec 3<s; sh /dev/fd/3`,
    (file) => `echo 'touch ${file}' > s; sh s`,
  ],
  [
    "a makefile on standard input",
    (file) => `printf 'a:\n\ttouch ${file}\n' | make -f -`,
    (file) =>
      `printf 'a:\n\ttouch ${file}\n' > m; if command -v make; then make -f m; else touch ${file}; fi`,
  ],
  [
    "git's hooks elsewhere",
    (file) => `git -c core.hooksPath=h commit -m ${file}`,
    (file) => `git -c core.hooksPath=/dev/null version; touch ${file}`,
  ],
  ["a job for parallel", (file) => `parallel touch ::: ${file}`, (file) => `xargs touch ${file} </dev/null`],
  ["a command for another machine", (file) => `ssh host touch ${file}`, (file) => `ssh -V; touch ${file}`],
  ["another shell's language", (file) => `fish -c 'touch ${file}'`, (file) => `bash -c 'touch ${file}'`],
];

describe.each(actors())("a program whose program is not known, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: NOTHING_OPAQUE } });
  });
  afterAll(() => broker.stop());

  test.each(OPAQUE)("%s is opaque; what can be known runs", async (_what, command, twin) => {
    await attack(broker, { command }, "commands.opaque");
    await makes(broker, twin, "permitted");
  });
});

const ONE_LINERS = `id: default
name: No one-liners
mode: enforce
commands:
  denied: ["perl -e *", "python -c *", "node -e *", "ruby -e *", "php -r *", "awk *"]
`;

/** Text of another language is not read: it is the option that a rule is about, however it is written. */
const WRITTEN: readonly string[] = [
  "perl -e 'print 1'",
  "perl -we 'print 1'",
  "perl -n -e 'print 1' x",
  "/usr/bin/perl -e1",
  "env -i perl -e 'print 1'",
  "perl -Mstrict -e 'print 1'",
  "python3 -c 'print(1)'",
  "python3.11 -Ic 'print(1)'",
  "python -B -c 'print(1)'",
  "timeout 5 /usr/bin/python3 -uc 'print(1)'",
  "node -e 1",
  "node --eval 1",
  "node --eval=1",
  "node --no-warnings -e 1",
  "ruby -ne 'puts 1'",
  "php -r 'echo 1;'",
  "awk 'BEGIN { system(\"touch forbidden\") }'",
];

describe.each(actors())("one-liners of another language, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: ONE_LINERS } });
  });
  afterAll(() => broker.stop());

  test.each(WRITTEN)("%s is refused by a rule about its option", async (cmd) => {
    expect(await broker.refused({ cmd })).toMatchObject({
      code: "policy_denied",
      rule: { list: "commands.denied" },
    });
  });

  test("a script in a file, and a question about the version, run", async () => {
    needs("perl");
    broker.write(join(broker.project, "x.pl"), "print 'from a file';\n");
    expect(await broker.run("perl x.pl")).toMatchObject({
      stdout: "from a file",
      decision: { verdict: "allow" },
    });
    expect(await broker.run("perl -v > /dev/null; echo done")).toMatchObject({ stdout: "done\n" });
    expect(existsSync(join(broker.project, FORBIDDEN))).toBe(false);
  });
});
