/** What a command changes outside of its project, where `fs.write` lets it: listed, and a scope that was used. */
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { GIT, hostGit } from "../support/git/git.ts";

describe.each(actors())("changes outside the project, as $kind", (actor) => {
  let broker: TestBroker;
  const beside = (path = ""): string => join(broker.folder, "beside", path);

  beforeAll(async () => {
    // Not below /tmp, which is the world's own.
    const folder = mkdtempSync(join(actor.uid === 0 ? "/opt" : actor.home, "sb-outside-"));
    const write = `["$PROJECT/**", "${folder}/beside/**", "${folder}/single"]`;
    broker = await TestBroker.start(actor, {
      folder,
      policies: {
        default: `id: default\nname: Outside\nmode: enforce\nfs: { write: ${write} }\ncommands: { isolated: [": held"] }\n`,
      },
    });
    for (const name of ["old", "gone", "kept", "folder/in"]) broker.write(beside(name), "as it was\n");
    broker.write(join(folder, "single"), "as it was\n");
  });
  afterAll(() => broker.stop());

  test("new, changed and removed files and folders are listed by absolute paths, apart from the project's", async () => {
    const ran = await broker.run(
      `cd ${beside()}; echo x > new; echo more >> old; rm gone; mkdir made; cat kept; echo x > $OLDPWD/own; echo z > ../single`,
    );
    expect(ran).toMatchObject({ exit: 0, notices: [] });
    expect(ran.fs_diff).toMatchObject({ writes: ["own"], mods: [], deletes: [], truncated: false });
    const expected = [...["gone", "made", "new", "old"].map(beside), join(broker.folder, "single")];
    expect(ran.fs_diff?.outside).toEqual(expected);
    expect(ran.fs_diff?.tree_hash).toMatch(/^sha256:/);
    expect(ran.scopes_used).toEqual([
      `fs.write:${broker.project}/own`,
      `fs.write:${broker.folder}/beside`,
      `fs.write:${broker.folder}/single`,
    ]);
    expect(readFileSync(beside("new"), "utf8")).toBe("x\n");
    const span = await broker.span(ran.span_id);
    expect(span.fs_diff?.outside).toEqual(expected);
  });

  test("what a moved folder brought along, and what came from the project, are listed where they are now", async () => {
    broker.write(join(broker.project, "from/file"), "x");
    const ran = await broker.run(`mv ${beside("folder")} ${beside("other")}; mv from ${beside("to")}`);
    expect(ran).toMatchObject({ exit: 0 });
    const names = ["folder", "folder/in", "other", "other/in", "to", "to/file"];
    expect(ran.fs_diff?.outside).toEqual(names.map(beside));
    expect(ran.fs_diff?.deletes).toEqual(["from", "from/file"]);
  });

  test("a command that only reads there, or writes what stands there, lists nothing", async () => {
    const ran = await broker.run(
      `cat ${beside("kept")}; chmod 644 ${beside("kept")}; mkdir -p ${beside()}; true`,
    );
    expect(ran.fs_diff).toMatchObject({ outside: [], writes: [] });
    expect(ran.scopes_used).toEqual([]);
  });

  test("more than a thousand are cut, and the reply says how many there are", async () => {
    const ran = await broker.run(
      `mkdir ${beside("many")}; cd ${beside("many")}; for i in $(seq 1100); do : >$i; done`,
    );
    expect(ran.fs_diff?.outside).toHaveLength(1000);
    expect(ran.fs_diff).toMatchObject({
      truncated: true,
      summary: "1101 paths outside the project changed; the first 1000 are listed",
    });
  });

  test("what git writes in the git folder of a worktree is listed, and that folder is the scope that was used", async () => {
    const [main, tree] = [join(broker.folder, "main"), join(broker.folder, "tree")];
    broker.write(join(main, "file"), "x");
    hostGit(actor, main, "init", "-q");
    hostGit(actor, main, "commit", "-q", "--allow-empty", "-m", "first");
    hostGit(actor, main, "worktree", "add", "-q", tree);
    const ran = await broker.run({ cmd: `${GIT} commit -q --allow-empty -m second`, cwd: tree });
    expect(ran).toMatchObject({ exit: 0, fs_diff: { writes: [], truncated: false } });
    const changed = ["logs/refs/heads/tree", "refs/heads/tree", "worktrees/tree/COMMIT_EDITMSG"];
    expect(ran.fs_diff?.outside).toEqual(
      expect.arrayContaining(changed.map((name) => join(main, ".git", name))),
    );
    expect(ran.scopes_used).toEqual([`fs.write:${main}/.git`]);
    const looked = await broker.run({ cmd: "git log --oneline", cwd: tree });
    expect(looked.fs_diff?.outside).toEqual([]);
  });

  test("an isolated command's stay in its world, and are listed as that", async () => {
    const ran = await broker.run(`: held; echo x > ${beside("isolated")}`);
    expect(ran).toMatchObject({ exit: 0 });
    expect(ran.fs_diff).toMatchObject({ outside: [], world_only: [beside("isolated")] });
  });
});
