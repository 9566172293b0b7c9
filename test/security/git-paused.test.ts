import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { GIT, hostGit, triedGit } from "../support/git/git.ts";
import { actors } from "../support/users/users.ts";

/** Makes `git-merge-z/x` in the working tree, which git runs as merge strategy `z/x`. */
const PROGRAM = `mkdir -p git-merge-z && printf '#!/bin/sh\\ntouch "$PWD/RAN"\\nexit 1\\n' > git-merge-z/x && chmod +x git-merge-z/x`;
const OPTIONS = String.raw`printf '[options]\n\tstrategy = z/x\n'`;

describe.each(actors())("a person's rebase or cherry-pick that waits for --continue, as $kind", (actor) => {
  let broker: TestBroker;
  let made = 0;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nselectable: true\nmode: enforce\n" },
    });
  });
  afterAll(() => broker.stop());

  const above = (): string => join(broker.folder, "above");

  /** A repository whose branch `side` and main branch changed the same line in two commits each. */
  function repository(parent: string): string {
    const folder = join(parent, `paused${++made}`);
    broker.write(join(folder, "f"), "0\n");
    hostGit(actor, folder, "init", "-q", "-b", "main");
    const commit = (text: string): void => {
      broker.write(join(folder, "f"), `${text}\n`);
      hostGit(actor, folder, "add", "f");
      hostGit(actor, folder, "commit", "-qm", text);
    };
    commit("base");
    hostGit(actor, folder, "checkout", "-qb", "side");
    commit("side one");
    commit("side two");
    hostGit(actor, folder, "checkout", "-q", "main");
    commit("main");
    broker.write(
      join(folder, ".git/patches"),
      `${hostGit(actor, folder, "format-patch", "--stdout", "main..side")}\n\n`,
    );
    return folder;
  }
  const BEGIN = {
    "cherry-pick": ["cherry-pick", "main..side"],
    rebase: ["rebase", "-q", "side"],
    am: ["am", "-q", ".git/patches"],
  } as const;
  const ATTACKS = [
    ["cherry-pick", "the options", `${OPTIONS} > .git/sequencer/opts`],
    [
      "cherry-pick",
      "the options, in a long listing",
      `mkdir many && (cd many && seq 12000 | xargs touch); ${OPTIONS} > .git/sequencer/opts`,
    ],
    ["rebase", "a strategy", "echo z/x > .git/rebase-merge/strategy"],
    ["rebase", "a strategy behind a link", "echo z/x > s; ln -s ../../s .git/rebase-merge/strategy"],
    ["rebase", "a strategy by a second name", "echo z/x > .git/s; ln .git/s .git/rebase-merge/strategy"],
    [
      "rebase",
      "a strategy of two lines",
      `n=$(printf 'git-merge-ort\\nz'); mkdir "$n"; cp git-merge-z/x "$n/x"; printf 'ort\\nz/x' > .git/rebase-merge/strategy`,
    ],
    [
      "rebase",
      "options of a strategy that is a script",
      `echo resolve > .git/rebase-merge/strategy; echo " '--index-output=$PWD/RAN'" > .git/rebase-merge/strategy_opts`,
    ],
    [
      "cherry-pick",
      "options of a strategy that is a script",
      `printf '[options]\\n\\tstrategy = resolve\\n\\tstrategy-option = index-output=%s/RAN\\n' "$PWD" > .git/sequencer/opts`,
    ],
    ["am", "options of git apply", `echo "'--build-fake-ancestor=$PWD/RAN'" > .git/rebase-apply/apply-opt`],
    [
      "rebase",
      "a folder that was made before",
      "cp -r .git/rebase-merge before; echo z/x > before/strategy; rm -r .git/rebase-merge; sleep 0.1; mv before .git/rebase-merge",
    ],
    [
      "rebase",
      "a folder behind a link",
      "cp -r .git/rebase-merge before; echo z/x > before/strategy; rm -r .git/rebase-merge; ln -s ../before .git/rebase-merge",
    ],
  ] as const;

  describe.each(["the project", "a repository below the project"])("of %s", (where) => {
    test.each(ATTACKS)("%s runs no program of a command that wrote %s", async (kind, _what, write) => {
      const isOwn = where === "the project";
      broker.write(join(above(), ".substrate-profile"), "default\n");
      const folder = repository(isOwn ? broker.folder : above());
      triedGit(actor, folder, BEGIN[kind]);
      const run = (cmd: string): Promise<Ran> =>
        broker.run({ cmd: `cd '${folder}' && ${cmd}`, cwd: isOwn ? folder : above() });
      await run(PROGRAM);
      const ran = await run(`echo merged > f; ${write}`);
      expect(ran.exit, ran.stderr).toBe(0);
      expect(ran.notices.map(({ message }) => message).join("\n")).toMatch(
        /may run a program that it names, or write where it says|leads git to rebase-merge/,
      );
      hostGit(actor, folder, "add", "f");
      triedGit(actor, folder, ["-c", "core.editor=true", kind, "--continue"]);
      expect(existsSync(join(folder, "RAN"))).toBe(false);
    });
  });

  describe("of a worktree in the project", () => {
    /** Returns the repository, and the paused rebase's folder in it. */
    function withWorktree(): readonly [folder: string, state: string] {
      const folder = repository(broker.folder);
      hostGit(actor, folder, "worktree", "add", "-q", "tree", "side");
      triedGit(actor, join(folder, "tree"), ["rebase", "-q", "main"]);
      return [folder, ".git/worktrees/tree"];
    }
    test.each([
      [
        "in a long listing",
        (state: string) => [
          `mkdir .git/aaa +a; for d in .git/aaa +a; do (cd $d && seq 12000 | xargs touch); done; echo z/x > ${state}/rebase-merge/strategy`,
        ],
      ],
      [
        "while the folder was no git folder",
        (state: string) => [
          `mv ${state}/HEAD ${state}/H2; echo z/x > ${state}/rebase-merge/strategy`,
          `mv ${state}/H2 ${state}/HEAD`,
        ],
      ],
    ])("runs no program of a command that wrote a strategy %s", async (_what, attack) => {
      const [folder, state] = withWorktree();
      await broker.run({ cmd: `cd tree && ${PROGRAM}`, cwd: folder });
      const rans: Ran[] = [];
      for (const cmd of attack(state)) rans.push(await broker.run({ cmd, cwd: folder }));
      expect(rans.flatMap(({ notices }) => notices.map(({ message }) => message)).join()).toMatch(
        /rebase-merge\/strategy' was made although/,
      );
      broker.write(join(folder, "tree/f"), "merged\n");
      hostGit(actor, join(folder, "tree"), "add", "f");
      triedGit(actor, join(folder, "tree"), ["-c", "core.editor=true", "rebase", "--continue"]);
      expect(existsSync(join(folder, "tree/RAN"))).toBe(false);
    });
  });

  test("leaves branches alone that have the names of such files", async () => {
    const folder = repository(broker.folder);
    const names = ["refs/heads/sequencer/opts", "refs/remotes/origin/sequencer/opts"];
    const makes = [
      "git update-ref refs/remotes/origin/main HEAD",
      "git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main",
    ];
    const cmd = [...makes, ...names.map((name) => `git update-ref --create-reflog ${name} HEAD`)].join(
      " && ",
    );
    expect(await broker.run({ cmd, cwd: folder })).toMatchObject({ exit: 0, notices: [] });
    for (const name of names) expect(hostGit(actor, folder, "rev-parse", name)).toMatch(/^[0-9a-f]{40}$/);
  });

  test("is resolved by a command, and goes on on the host or inside, also with a strategy of git's own", async () => {
    for (const [kind, more] of [
      ["cherry-pick", ["-x", "-X", "patience", "--strategy=recursive"]],
      ["rebase", ["-X", "patience"]],
      ["am", ["--whitespace=nowarn", "-C1", "--exclude=none"]],
    ] as const) {
      const [one, two] = [repository(broker.folder), repository(broker.folder)];
      for (const folder of [one, two])
        triedGit(actor, folder, [BEGIN[kind][0], ...more, ...BEGIN[kind].slice(1)]);
      const resolve = "date +%N > f && git add f";
      expect(await broker.run({ cmd: resolve, cwd: one })).toMatchObject({ exit: 0, notices: [] });
      triedGit(actor, one, ["-c", "core.editor=true", kind, "--continue"]);
      const inside = `${GIT} -c core.editor=true ${kind} --continue || { ${resolve}; ${GIT} -c core.editor=true ${kind} --continue; }`;
      expect(
        await broker.run({
          cmd: `${resolve} && { ${inside}; }; test ! -e .git/rebase-merge -a ! -e .git/rebase-apply`,
          cwd: two,
        }),
      ).toMatchObject({
        exit: 0,
        notices: [],
      });
      const begun = await broker.run({
        cmd: `git reset -q --hard main && { ${GIT} ${kind} ${more.join(" ")} ${BEGIN[kind].slice(-1).join("")}; true; }`,
        cwd: two,
      });
      expect(begun.notices).toEqual([]);
    }
  });
});
