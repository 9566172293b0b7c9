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
    return folder;
  }
  const BEGIN = {
    "cherry-pick": ["cherry-pick", "main..side"],
    rebase: ["rebase", "-q", "side"],
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
        /--continue' may run a merge strategy|leads git to rebase-merge/,
      );
      hostGit(actor, folder, "add", "f");
      triedGit(actor, folder, ["-c", "core.editor=true", kind, "--continue"]);
      expect(existsSync(join(folder, "RAN"))).toBe(false);
    });
  });

  test("is resolved by a command, and goes on on the host or inside, also with a strategy of git's own", async () => {
    for (const [kind, more] of [
      ["cherry-pick", ["-x", "-X", "patience", "--strategy=recursive"]],
      ["rebase", ["-X", "patience"]],
    ] as const) {
      const [one, two] = [repository(broker.folder), repository(broker.folder)];
      for (const folder of [one, two])
        triedGit(actor, folder, [BEGIN[kind][0], ...more, ...BEGIN[kind].slice(1)]);
      const resolve = "echo merged > f && git add f";
      expect(await broker.run({ cmd: resolve, cwd: one })).toMatchObject({ exit: 0, notices: [] });
      triedGit(actor, one, ["-c", "core.editor=true", kind, "--continue"]);
      const inside = `${GIT} -c core.editor=true ${kind} --continue || { ${resolve}; ${GIT} -c core.editor=true ${kind} --continue; }`;
      expect(
        await broker.run({ cmd: `${resolve} && { ${inside}; }; test ! -e .git/rebase-merge`, cwd: two }),
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
