/**
 * Settings of repositories that commands make, whose values are programs and places that look like everybody's. Judged by what the
 * person's next git on the host does.
 */
import { existsSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { hostGit, triedGit } from "../support/git/git.ts";

const IDENTITY = "-c user.name=a -c user.email=a@example.org";

describe.each(actors())(
  "common programs and places in the settings of a command's repository, as $kind",
  (actor) => {
    let broker: TestBroker;
    const at = (path: string): string => join(broker.project, path);
    const settingsOf = (path: string): string => (existsSync(at(path)) ? readFileSync(at(path), "utf8") : "");
    beforeAll(async () => {
      broker = await TestBroker.start(actor, {
        policies: { default: "id: default\nname: x\nmode: enforce\n" },
      });
      hostGit(actor, broker.project, "init", "-q");
      hostGit(actor, broker.project, "commit", "-q", "--allow-empty", "-m", "x");
    });
    afterAll(() => broker.stop());

    async function made(cmd: string): Promise<Ran> {
      const ran = await broker.run(cmd);
      expect(ran.stderr.replaceAll(/^substrate: .*\n/gm, "")).toBe("");
      expect(ran.exit).toBe(0);
      return ran;
    }

    test("an editor that is a filter types what a file holds, so the person's git status does not start it", async () => {
      await made(
        `git init -q sub && cd sub && echo 'x filter=v' > .gitattributes && printf ':!touch ${at("VI-RAN")}\\r:q!\\r' > x && git add . && git ${IDENTITY} commit -qm one && git config filter.v.clean vi && cd .. && git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub`,
      );
      // Another time makes git read the file again.
      utimesSync(at("sub/x"), 1, 1);
      triedGit(actor, broker.project, ["status"]);
      expect(existsSync(at("VI-RAN"))).toBe(false);
    });

    test.each([
      ["core.pager", "vim"],
      ["pager.log", "vi"],
      ["diff.external", "ssh"],
      ["diff.x.textconv", "vi"],
      ["interactive.diffFilter", "less"],
      ["merge.x.driver", "ssh"],
      ["core.sshCommand", "vi"],
      ["core.editor", "ssh"],
      ["core.fsmonitor", "vi"],
      ["rebase.instructionFormat", "%s%nexec id"],
    ])("%s = %s is taken out", async (key, value) => {
      const name = `a-${key.replaceAll(".", "-")}`;
      await made(`git init -q ${name} && git -C ${name} config ${key} '${value}'`);
      expect(settingsOf(`${name}/.git/config`)).toBe("");
    });

    test.each([
      ["core.pager", "less"],
      ["pager.log", "false"],
      ["core.editor", "vim"],
      ["sequence.editor", "true"],
      ["core.sshCommand", "ssh"],
      ["core.fsmonitor", "true"],
      ["gpg.program", "gpg"],
      ["credential.helper", "cache"],
      ["diff.x.textconv", "cat"],
      ["url.https://github.com/.insteadOf", "gh:"],
      ["url.git@github.com:.insteadOf", "https://github.com/"],
      ["url.https://.insteadOf", "git://"],
    ])("its twin: %s = %s stays", async (key, value) => {
      const name = `b-${key.replaceAll(/[^A-Za-z]+/g, "-")}`;
      await made(`git init -q ${name} && git -C ${name} config '${key}' '${value}'`);
      expect(settingsOf(`${name}/.git/config`)).toContain(value);
    });

    test("lines for a rebase's to-do list do not reach the person's git pull", async () => {
      await made(
        `git init -q -b m pulled && cd pulled && git ${IDENTITY} commit -q --allow-empty -m base && git switch -qc f && echo f > f && git add f && git ${IDENTITY} commit -qm f && git switch -q m && echo m > m && git add m && git ${IDENTITY} commit -qm m && git switch -q f && git config branch.f.remote . && git config branch.f.merge refs/heads/m && git config pull.rebase true && git config rebase.instructionFormat '%s%nexec touch ${at("PULL-RAN")}'`,
      );
      triedGit(actor, at("pulled"), ["pull"]);
      expect(existsSync(at("PULL-RAN"))).toBe(false);
    });

    test("two parts of an address that are plain alone do not make a command", async () => {
      await made(
        "git init -q joined && cd joined && git config remote.origin.url 'https://x/xt::touch EXT-RAN' && git config remote.origin.fetch '+refs/*:refs/*' && git config url.e.insteadOf https://x/",
      );
      triedGit(actor, at("joined"), ["-c", "protocol.ext.allow=always", "fetch"]);
      expect(existsSync(at("joined/EXT-RAN"))).toBe(false);
    });

    /** The commands that put a commit with one file into the git folder that `GIT_DIR` names. */
    const COMMIT = `b=$(echo agent | git hash-object -w --stdin) && t=$(printf '100644 blob %s\\tmine\\n' $b | git mktree) && c=$(git ${IDENTITY} commit-tree -m x $t) && git update-ref refs/heads/master $c`;

    test.each([
      [
        "named as a submodule's",
        (tree: string) =>
          `mkdir -p docs s.git/modules && git init -q -b master --separate-git-dir=s.git/modules/x docs && export GIT_DIR=$PWD/s.git/modules/x && ${COMMIT} && git config core.worktree ${tree}`,
        "docs",
      ],
      [
        "that is made after the link to it, for a folder that becomes a link",
        (tree: string) =>
          `mkdir -p linked && echo 'gitdir: ../t.git/modules/y' > linked/.git; mkdir -p lib t.git/modules && git init -q -b master --separate-git-dir=t.git/modules/y lib && (export GIT_DIR=$PWD/t.git/modules/y && ${COMMIT} && git config core.worktree ../../../lib); rm -rf lib; ln -s ${tree} lib`,
        "linked",
      ],
      [
        "behind a name that leads to it later",
        (tree: string) =>
          `mkdir late && echo 'gitdir: ../alias.git/v' > late/.git; mkdir -p lib3 v.git/modules && git init -q -b master --separate-git-dir=v.git/modules/v lib3 && (export GIT_DIR=$PWD/v.git/modules/v && ${COMMIT} && git config core.worktree ../../../lib3); ln -s v.git/modules alias.git; rm -rf lib3; ln -s ${tree} lib3`,
        "late",
      ],
      [
        "by a second .git that leads to it, of a folder that becomes a link",
        (tree: string) =>
          `mkdir -p lib2 u.git/modules && git init -q -b master --separate-git-dir=u.git/modules/z lib2 && (export GIT_DIR=$PWD/u.git/modules/z && ${COMMIT} && git config core.worktree ../../../lib2); mkdir second && cp lib2/.git second/.git && sed -i 's|^gitdir: .*|gitdir: ../u.git/modules/z|' second/.git; rm -rf lib2; ln -s ${tree} lib2`,
        "second",
      ],
    ])("the person's git reset does not write elsewhere by a git folder %s", async (_what, cmd, folder) => {
      const other = join(broker.folder, `other-${folder}`);
      broker.write(join(other, "mine"), "a person's\n");
      // One command per step: the broker judges git folders at the end of a command.
      for (const step of cmd(other).split("; ")) await broker.run(step);
      triedGit(actor, at(folder), ["reset", "--hard"]);
      expect(readFileSync(join(other, "mine"), "utf8")).toBe("a person's\n");
    });

    test("its twin: a submodule is added, removed, brought back and cloned", async () => {
      await made(
        `git init -q -b m lib-of-mine && cd lib-of-mine && echo a > a && git add a && git ${IDENTITY} commit -qm a`,
      );
      await made(
        `git init -q -b m super && cd super && git -c protocol.file.allow=always submodule --quiet add ../lib-of-mine deep/lib && git ${IDENTITY} commit -qm with`,
      );
      const config = "super/.git/modules/deep/lib/config";
      expect(settingsOf(config)).toContain("worktree = ../../../../../deep/lib".replace("../", ""));
      await made(`cd super && git rm -q deep/lib && git ${IDENTITY} commit -qm without`);
      await made(
        "cd super && git checkout -q HEAD~1 && git -c protocol.file.allow=always submodule --quiet update --init && cat deep/lib/a",
      );
      expect(hostGit(actor, at("super/deep/lib"), "status", "--short")).toBe("");
      expect(hostGit(actor, at("super"), "submodule", "status")).toContain("deep/lib");
      const clone = await made(
        "git -c advice.detachedHead=false -c protocol.file.allow=always clone -q --recurse-submodules super cloned && cat cloned/deep/lib/a",
      );
      expect(clone.stdout).toBe("a\n");
      expect(hostGit(actor, at("cloned/deep/lib"), "status", "--short")).toBe("");
    });
  },
);
