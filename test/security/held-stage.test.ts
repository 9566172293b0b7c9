/** What an apply puts together before it is in place: commands that go on meanwhile cannot open, link or exchange it. */
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { TestBroker, eventually } from "../support/broker/broker.ts";
import { change, changed, isolating } from "../support/held/changes.ts";
import { skip } from "../support/run/skips.ts";
import { hostGit } from "../support/git/git.ts";
import { actors, currentUser } from "../support/users/users.ts";

/** Takes whatever an apply stages in reach, until the file `stop` is there; its last words name what it got. */
const THIEF = `
import { existsSync, linkSync, openSync, readdirSync, renameSync, writeFileSync, writeSync } from "node:fs";
const got = new Set();
const attempt = (how, deed) => { try { deed(); got.add(how); } catch {} };
const names = (folder) => { try { return readdirSync(folder); } catch { return []; } };
writeFileSync("ready", "");
for (let at = 0; !existsSync("stop"); at++) {
  for (const place of [".", "..", "../..", ".git/hooks", ".git"]) {
    for (const stage of names(place).filter((name) => name.startsWith(".substrate-apply-"))) {
      attempt("a folder", () => writeFileSync(\`\${place}/\${stage}/mine\`, ""));
      for (const part of ["new", "old"]) {
        for (const name of names(\`\${place}/\${stage}/\${part}\`).slice(0, 3)) {
          const file = \`\${place}/\${stage}/\${part}/\${name}\`;
          attempt("a link", () => linkSync(file, \`got-\${at}-\${name}\`));
          attempt("a descriptor", () => writeSync(openSync(file, "r+"), "EVIL"));
          attempt("a swap", () => { writeFileSync("evil", "EVIL"); renameSync("evil", file); });
          attempt("a theft", () => renameSync(file, \`had-\${at}-\${name}\`));
        }
      }
    }
  }
}
writeFileSync("result", [...got].join(", "));
`;

/** Files enough that an apply takes its time. */
const FILES = 1500;

describe.each(actors())("the stage of an apply, as $kind", (actor) => {
  test.each([true, false])(
    "lies in no folder that another project's commands may write (a repository: %s): the apply is refused, and says what helps",
    async (isRepository) => {
      if (currentUser().uid !== 0)
        skip("an apply in a nested project on another file system", "only root mounts one");
      const ground = mkdtempSync(actor.uid === 0 ? "/opt/sb-stage-" : join(actor.home, "sb-stage-"));
      expect(spawnSync("mount", ["-t", "tmpfs", "none", ground]).status).toBe(0);
      const project = join(ground, "inner");
      mkdirSync(project);
      expect(spawnSync("chown", ["-R", `${actor.uid}:${actor.gid}`, ground]).status).toBe(0);
      const broker = await TestBroker.start(actor, { policies: { default: isolating() } });
      try {
        if (isRepository) hostGit(actor, ground, "init", "-q");
        hostGit(actor, project, "init", "-q", "--template=");
        const { span_id: span } = await broker.run({ cmd: "true iso; echo new > new", cwd: project });
        const refused = await change(broker, "apply", span);
        expect(refused.status).not.toBe(200);
        expect(JSON.stringify(refused.document)).toContain("An empty folder .git/hooks is enough");
        expect(existsSync(join(project, "new"))).toBe(false);
        hostGit(actor, project, "init", "-q");
        expect(existsSync(join(project, ".git/hooks"))).toBe(true);
        await changed(broker, "apply", span);
        expect(existsSync(join(project, "new"))).toBe(true);
      } finally {
        await broker.stop();
        spawnSync("umount", [ground]);
        rmSync(ground, { recursive: true });
      }
    },
  );

  test.each([
    { where: "beside Substrate's home", isElsewhere: false, git: false },
    { where: "on a file system of its own, with git", isElsewhere: true, git: true },
    { where: "on a file system of its own, without git", isElsewhere: true, git: false },
  ])("is nothing that commands can write, where the project lies $where", async ({ isElsewhere, git }) => {
    if (isElsewhere && currentUser().uid !== 0)
      skip("applies to a project on another file system", "only root mounts one");
    const ground = mkdtempSync(actor.uid === 0 ? "/opt/sb-stage-" : join(actor.home, "sb-stage-"));
    const mounted = isElsewhere && spawnSync("mount", ["-t", "tmpfs", "none", ground]).status === 0;
    expect(mounted).toBe(isElsewhere);
    const project = join(ground, "project");
    mkdirSync(project);
    expect(spawnSync("chown", ["-R", `${actor.uid}:${actor.gid}`, ground]).status).toBe(0);
    const broker = await TestBroker.start(actor, { policies: { default: isolating() } });
    try {
      const run = (cmd: string, more: object = {}) => broker.run({ cmd, cwd: project, ...more });
      if (git) hostGit(actor, project, "init", "-q");
      broker.write(join(project, ".envrc"), "export A=1\n");
      broker.write(join(project, "thief.mjs"), THIEF);
      await run("node thief.mjs > said 2>&1 &", { background: "keep" });
      expect(await eventually(() => existsSync(join(project, "ready")), 10_000)).toBe(true);
      const held = await run(
        `true iso; echo export B=1 > .envrc; mkdir t .vscode; echo '{}' > .vscode/x.json; for i in $(seq ${FILES}); do echo $i > t/f$i; done`,
      );
      const look = () => ({
        envrc: readFileSync(join(project, ".envrc"), "utf8"),
        files: existsSync(join(project, "t")) ? readdirSync(join(project, "t")).length : 0,
      });
      await changed(broker, "apply", held.span_id);
      expect(look()).toEqual({ envrc: "export B=1\n", files: FILES });
      expect(lstatSync(join(project, ".envrc")).nlink).toBe(1);
      await changed(broker, "undo", held.span_id);
      expect(look()).toEqual({ envrc: "export A=1\n", files: 0 });
      expect(lstatSync(join(project, ".envrc")).nlink).toBe(1);
      broker.write(join(project, "stop"), "");
      expect(await eventually(() => existsSync(join(project, "result")), 10_000)).toBe(true);
      expect(readFileSync(join(project, "result"), "utf8")).toBe("");
      const left = [project, ground, ...(git ? [join(project, ".git/hooks")] : [])].flatMap((folder) =>
        readdirSync(folder).filter((name) => /^\.substrate-apply-|^got-|^had-/.test(name)),
      );
      expect(left).toEqual([]);
    } finally {
      await broker.stop();
      if (mounted) spawnSync("umount", [ground]);
      rmSync(ground, { recursive: true });
    }
  });
});
