import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit, triedGit } from "../support/git/git.ts";

const IDENTITY = "-c user.name=a -c user.email=a@example.org";

describe.each(actors())("repositories that commands make, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (path: string): string => join(broker.project, path);
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
    });
    hostGit(actor, broker.project, "init", "-q");
  });
  afterAll(() => broker.stop());

  test.each([
    [
      "a monitor of a nested one",
      "git init -q n && git config -f n/.git/config core.fsmonitor 'touch RAN; :'",
      "n/.git/config",
    ],
    ["an alias", "git init -q al && git -C al config alias.z '!id'", "al/.git/config"],
    [
      "a hook of its settings, as later releases of git have them",
      "git init -q ch && git -C ch config hook.lint.event pre-commit && git -C ch config hook.lint.command id",
      "ch/.git/config",
    ],
    [
      "the program that git-svn asks for authors",
      "git init -q sv && git -C sv config svn.authorsprog ./id",
      "sv/.git/config",
    ],
    [
      "a setting that nobody knows, behind a .git file",
      "git init -q --bare un && git -C un config some.thing id && mkdir unw && echo 'gitdir: ../un' > unw/.git",
      "un/config",
    ],
    ["settings from elsewhere", "git init -q i && git -C i config include.path ../../evil", "i/.git/config"],
    [
      "in the old spelling",
      "git init -q o && printf '[filter.x]\\nclean = id\\n' >> o/.git/config",
      "o/.git/config",
    ],
    [
      "a hook",
      "git init -q h && printf '#!/bin/sh\\nid\\n' > h/.git/hooks/post-commit && chmod +x h/.git/hooks/post-commit",
      "h/.git/hooks/post-commit",
    ],
    [
      "behind a .git file",
      "git init -q --bare g && git config -f g/config core.pager 'id;' && mkdir w && echo 'gitdir: ../g' > w/.git",
      "g/config",
    ],
    [
      "before there is a HEAD",
      "mkdir late && printf '[core]\\nfsmonitor = id;\\n' > late/config",
      "late/config",
    ],
    [
      "a link as its settings",
      "git init -q ln && echo '[core]' > plain && ln -sf ../../plain ln/.git/config",
      "ln/.git/config",
    ],
    [
      "another folder's settings, behind a link",
      "git init -q t && mkdir b e && cp -r t/.git/objects t/.git/refs e/ && echo '[core]' > e/cc && ln -s cc e/config && echo 'ref: refs/heads/a' > b/HEAD && echo ../e > b/commondir",
      "b/commondir",
    ],
    [
      "hooks behind a link",
      "git init -q lh && mkdir hk && rm -r lh/.git/hooks && ln -s ../../hk lh/.git/hooks",
      "lh/.git/hooks",
    ],
    [
      "a remote whose name is an option",
      "git init -q rn && git -C rn config 'remote.--upload-pack=touch RAN;git-upload-pack.promisor' true",
      "rn/.git/config",
    ],
    [
      "settings with a second name",
      "git init -q --bare hl && ln hl/config second && mkdir hw && echo 'gitdir: ../hl' > hw/.git",
      "hl/config",
    ],
    [
      "a .git file that leads to no git folder yet",
      "mkdir lw && echo 'gitdir: ../lstuff' > lw/.git",
      "lw/.git",
    ],
    [
      "a link that is called as a git folder",
      "mkdir ls && cd ls && mkdir stuff && ln -s stuff x.git",
      "ls/x.git",
    ],
    [
      "settings that lead to the files of another folder",
      'git init -q wk && git -C wk config core.worktree "$HOME"',
      "wk/.git/config",
    ],
    [
      "a HEAD beside settings of which nobody knows what they say",
      "mkdir hd && echo '[core]' > hd/cc && ln -s cc hd/config && echo 'ref: refs/heads/a' > hd/HEAD",
      "hd/config",
    ],
  ])("bring no code that git runs: %s", async (_claim, cmd, path) => {
    const ran = await broker.run(cmd);
    expect(ran.exit).toBe(0);
    expect(existsSync(at(path))).toBe(false);
    expect(ran.fs_diff?.writes).not.toContain(path);
    const kept = readdirSync(join(broker.home, "quarantine"), {
      recursive: true,
    }).map(String);
    expect(kept.some((name) => name.endsWith(path.slice(path.lastIndexOf("/"))))).toBe(true);
    const told = ran.notices.map(({ message }) => message).join("\n");
    if (path.endsWith("/config")) expect(told).toContain("', with every other setting in it");
  });

  test("the person's git status in the project's own folder runs nothing that a command brought", async () => {
    hostGit(actor, broker.project, "commit", "-q", "--allow-empty", "-m", "x");
    await broker.run(
      `git init -q sub && git -C sub ${IDENTITY} commit -q --allow-empty -m y && git config -f sub/.git/config core.fsmonitor "touch ${broker.project}/RAN; :" && git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub`,
    );
    hostGit(actor, broker.project, "status");
    expect(existsSync(at("RAN"))).toBe(false);
  });

  /** A commit whose one file git lacks, and fetches from `evil` when somebody looks at it. */
  const PARTIAL = (name: string): string =>
    `git init -q ${name} && cd ${name} && echo hi > f && git add f && git ${IDENTITY} commit -qm one && b=$(git rev-parse HEAD:f) && rm -f .git/objects/\${b%\${b#??}}/\${b#??} && git config core.repositoryformatversion 1 && git config extensions.partialClone evil && git config remote.evil.promisor true && mkdir .git/remotes .git/branches 2>/dev/null; true`;

  /** How git on the host is called: by a person whose own settings allow what `ext::` names, and who has a helper for addresses. */
  const ALLOWED = ["-c", "protocol.ext.allow=always"];
  const helpers = (): string => {
    const helper = join(broker.folder, "helpers/git-remote-probe");
    if (!existsSync(helper)) {
      broker.write(helper, "#!/bin/sh\nexec ${2#probe://}\n");
      chmodSync(helper, 0o755);
    }
    return `${join(broker.folder, "helpers")}:`;
  };

  const LOOKS: readonly (readonly [string, string, string])[] = [
    ["an address that is a command", "git config remote.evil.url 'ext::touch RAN'", "log"],
    ["an address for a helper", "git config remote.evil.url 'probe::touch RAN'", "log"],
    ["the same as a scheme", "git config remote.evil.url 'probe://touch RAN'", "log"],
    [
      "another address in its place",
      "git config remote.evil.url https://example.invalid/x && git config 'url.ext::touch RAN .insteadOf' https://",
      "log",
    ],
    [
      "a program of the far side",
      "git config remote.evil.url . && git config remote.evil.uploadpack 'touch RAN;'",
      "log",
    ],
    [
      "a program that connects",
      "git config remote.evil.url ssh://x.invalid/y && git config core.sshCommand 'touch RAN;'",
      "log",
    ],
    ["a helper by name", "git config remote.evil.vcs probe && git config remote.evil.url 'touch RAN'", "log"],
    ["an old file of a remote", "echo 'URL: ext::touch RAN' > .git/remotes/evil", "log"],
    ["an older one", "echo 'ext::touch RAN' > .git/branches/evil", "log"],
    ["an alias with a setting in it", `git config alias.st "-c core.fsmonitor='touch RAN;' status"`, "st"],
  ];

  const look = (project: string, name: string, verb: string): boolean => {
    const words = [...ALLOWED, ...(verb === "log" ? ["log", "-p"] : [verb])];
    triedGit(actor, join(project, name), words, helpers());
    const ran = existsSync(join(project, name, "RAN"));
    rmSync(join(project, name, "RAN"), { force: true });
    return ran;
  };

  test.each(LOOKS)(
    "a person's look at what a command cloned in part runs nothing: %s",
    async (claim, setting, verb) => {
      const name = claim.replaceAll(/[^a-z]/g, "-");
      await broker.run(`${PARTIAL(name)}; ${setting}`);
      expect(look(broker.project, name, verb)).toBe(false);
      // Made by the person, the same runs: the attack is one.
      const own = join(broker.folder, "own");
      broker.write(join(own, ".keep"), "");
      const made = spawnSync("sh", ["-c", `${PARTIAL(name)}; ${setting}`], {
        cwd: own,
        env: { PATH: "/usr/bin:/bin", HOME: actor.home },
        ...(actor.uid === process.getuid?.() ? {} : { uid: actor.uid, gid: actor.gid }),
      });
      expect(made.status).toBe(0);
      expect(look(own, name, verb)).toBe(true);
    },
  );

  test("its twin: a partial clone from a plain address stays, with plain aliases, and fetches what it lacks", async () => {
    const ran = await broker.run(
      `git init -q far && cd far && echo hi > f && git add f && git ${IDENTITY} commit -qm one && git config uploadpack.allowFilter true && cd .. && git -c protocol.file.allow=always clone -q --no-checkout --filter=blob:none "file://$PWD/far" part && cd part && git config alias.st status && git config alias.lg 'log --oneline --graph' && git config url.https://example.org/.insteadOf ex: && echo 'URL: ../far' > .git/branches/old`,
    );
    expect(ran).toMatchObject({ exit: 0, notices: [] });
    expect(hostGit(actor, at("part"), "log", "-p")).toContain("+hi");
  });

  const CODE = (project: string): string => `printf '[core]\\n\\tfsmonitor = touch %s; :\\n' ${project}/RAN`;

  test("nothing runs that a later command wrote by a second name of the settings", async () => {
    await broker.run("git init -q tn && : > tn/f");
    const linked = await broker.run("ln tn/.git/config tn-second");
    await broker.run(`${CODE(broker.project)} >> tn-second; rm -f tn-second`);
    hostGit(actor, at("tn"), "status");
    expect(existsSync(at("RAN"))).toBe(false);
    expect(linked.exit).not.toBe(0);
    expect(existsSync(at("tn/.git/config"))).toBe(true);
  });

  test("nor in a git folder that is called otherwise, behind a submodule", async () => {
    hostGit(actor, broker.project, "commit", "-q", "--allow-empty", "-m", "x");
    const made = await broker.run(
      `git init -q --bare tb && git -C tb config core.bare false && mkdir tbw && echo 'gitdir: ../tb' > tbw/.git && : > tbw/f && git -C tbw add f && git -C tbw ${IDENTITY} commit -qm x && git update-index --add --cacheinfo 160000,$(git -C tbw rev-parse HEAD),tbw`,
    );
    expect(made).toMatchObject({ exit: 0, stderr: "" });
    await broker.run("ln tb/config tb-second");
    await broker.run(`${CODE(broker.project)} >> tb-second; rm -f tb-second`);
    hostGit(actor, broker.project, "status");
    expect(existsSync(at("RAN"))).toBe(false);
    await broker.run("git update-index --force-remove tbw");
  });

  test.each([
    ["that is older than the broker", "ob", "true", true],
    ["that a command closed for a while", "oc", "chmod 0 oc-all; true", false],
    ["that a command moved", "om", "mv om-all om-else", false],
  ])("nor in one %s", async (_claim, name, between, isNewBroker) => {
    rmSync(at("RAN"), { force: true });
    const first = `mkdir ${name}-all && cd ${name}-all && git init -q --bare ${name} && git -C ${name} config core.bare false && mkdir w && echo 'gitdir: ../${name}' > w/.git && : > w/f && git -C w add f`;
    expect(await broker.run(first)).toMatchObject({ exit: 0, stderr: "", notices: [] });
    await broker.run(between);
    if (isNewBroker) {
      await broker.kill("SIGTERM");
      broker = await broker.again();
    }
    const place = existsSync(at(`${name}-else`)) ? `${name}-else` : `${name}-all`;
    await broker.run(`chmod 700 ${place}; ln ${place}/${name}/config ${name}-second`);
    await broker.run(`${CODE(broker.project)} >> ${name}-second; rm -f ${name}-second`);
    triedGit(actor, at(`${place}/w`), ["status"]);
    expect(existsSync(at("RAN"))).toBe(false);
    expect(existsSync(at(`${place}/${name}/HEAD`))).toBe(true);
  });

  test("its twin: one that is older than the broker stays as it is, and is removed by commands", async () => {
    const made = `git init -q --bare older-one && git -C older-one config core.bare false && mkdir older-w && echo 'gitdir: ../older-one' > older-w/.git`;
    expect(await broker.run(made)).toMatchObject({ exit: 0, notices: [] });
    await broker.kill("SIGTERM");
    broker = await broker.again();
    const used = `cd older-w && echo x > f && git add f && git ${IDENTITY} commit -qm one && git config user.name b && git log --format=%s`;
    expect(await broker.run(used)).toMatchObject({ exit: 0, stdout: "one\n", notices: [] });
    expect(await broker.run("rm -rf older-w older-one")).toMatchObject({ exit: 0, notices: [] });
  });

  test("nor in a folder of settings that becomes one after them, where a worktree leads to it", async () => {
    const made = await broker.run(
      `git init -q cn && git -C cn ${IDENTITY} commit -q --allow-empty -m x && git -C cn worktree add -q ../cnw`,
    );
    expect(made).toMatchObject({ exit: 0 });
    await broker.run("ln cn/.git/worktrees/cnw/commondir cny");
    await broker.run(
      `mkdir stuff; { echo '[core]'; echo repositoryformatversion=0; ${CODE(broker.project)}; } > conf.txt; ln -s ../conf.txt stuff/config`,
    );
    await broker.run("mkdir stuff/objects stuff/refs; echo ../../../../stuff > cny");
    hostGit(actor, at("cnw"), "status");
    expect(existsSync(at("RAN"))).toBe(false);
  });

  const MONITORED = "init -q NAME && git config -f NAME/.git/config core.fsmonitor 'id;'";
  test.each([
    ["the end of its own world", "ended", "; kill -9 -1"],
    ["a git folder that is closed", "closed", " && chmod 0 closed/.git"],
    ["a folder above it that is closed", "shut", " && chmod 0 shut"],
    [
      "more files than are listed",
      "many",
      " && mkdir few && cd few && seq 1500 | xargs touch && seq -f d%g 1500 | xargs mkdir && for i in d*; do : > $i/Makefile; done",
    ],
  ])("bring no code behind %s", async (_claim, name, end) => {
    const ran = await broker.run(`git ${MONITORED.replaceAll("NAME", name)}${end}`);
    expect(ran.notices?.filter(({ kind }) => kind === "quarantined")).toHaveLength(1);
    await broker.run(`chmod 700 ${name} ${name}/.git`);
    expect(existsSync(at(`${name}/.git/config`))).toBe(false);
    expect(existsSync(at(`${name}/.git/HEAD`))).toBe(true);
  });

  test("bring no hooks in a folder that is older than the command, nor settings of another folder", async () => {
    await broker.run(
      "mkdir older && printf '#!/bin/sh\nid\n' > older/pre-commit && chmod +x older/pre-commit",
    );
    await setTimeout(50);
    await broker.run("git init -q mv && rm -rf mv/.git/hooks && mv older mv/.git/hooks; kill -9 -1");
    expect(existsSync(at("mv/.git/hooks"))).toBe(true);
    expect(existsSync(at("mv/.git/hooks/pre-commit"))).toBe(false);
    await broker.run("git init -q cd && mkdir led && echo ../../led > cd/.git/commondir; kill -9 -1");
    expect(existsSync(at("cd/.git/objects"))).toBe(true);
    expect(existsSync(at("cd/.git/commondir"))).toBe(false);
  });

  test("its twin: what the person's own repositories have stays when a command ends its world", async () => {
    hostGit(actor, broker.project, "init", "-q", "mine");
    hostGit(actor, join(broker.project, "mine"), "config", "alias.z", "!true");
    // A tick of the kernel later: the clock of files has no finer one.
    await setTimeout(50);
    await broker.run("mkdir -p closed2 && chmod 0 closed2; echo x > y; kill -9 -1");
    expect(readFileSync(at("mine/.git/config"), "utf8")).toContain("!true");
  });

  test("its twin: an ordinary repository, clone and submodule keep all they have, and the next command works in them", async () => {
    const made = await broker.run(
      `git init -q made && git -C made ${IDENTITY} commit -q --allow-empty -m one && git clone -q made copy && git -C copy config user.name b && git -C copy config core.fsmonitor true && git -c protocol.file.allow=always submodule --quiet add ./made lib`,
    );
    expect(made).toMatchObject({ exit: 0 });
    expect(made.fs_diff?.writes).toContain("copy/.git/config");
    expect(readFileSync(at("copy/.git/config"), "utf8")).toContain("name = b");
    expect((await broker.run("git -C copy log --format=%s && git -C lib log --format=%s")).stdout).toBe(
      "one\none\n",
    );
  });

  test("its twin: what git itself and its tools write of settings stays, and works on the host", async () => {
    const made = await broker.run(
      [
        `git init -q or && cd or && git ${IDENTITY} commit -q --allow-empty -m one`,
        "git config uploadpack.allowFilter true && git checkout -qb 'föö/(bär)' && git checkout -q -",
        "git init -q --bare --shared=group ../or-shared.git && git remote add up ../or-shared.git && git push -qu up HEAD",
        "git -c protocol.file.allow=always submodule --quiet add ../or-shared.git 'libs/My Lib'",
        `git ${IDENTITY} commit -qam two && git worktree add -q ../or-tree 2> /dev/null && git -C ../or-tree sparse-checkout set --cone x`,
        'git -c protocol.file.allow=always clone -q --filter=blob:none --sparse "file://$PWD" ../or-part && cd ../or-part',
        "git config maintenance.auto false && git config maintenance.strategy incremental && git config branch.main.mergeOptions --no-ff",
        "git config gitflow.branch.develop develop && git config svn-remote.svn.url https://svn.example.org/a && git config core.editor vim",
        "git config blame.ignoreRevsFile .git-blame-ignore-revs && git config branch.main.gh-merge-base main && git config merge.tool vimdiff",
      ].join(" && "),
    );
    expect(made).toMatchObject({ exit: 0, stderr: "" });
    expect(made.notices).toEqual([]);
    for (const path of ["or", "or/libs/My Lib", "or-tree", "or-part"])
      expect(hostGit(actor, at(path), "status", "--short"), path).toBe("");
    expect(hostGit(actor, at("or-shared.git"), "config", "core.sharedrepository").trim()).toBe("1");
    expect(hostGit(actor, at("or-part"), "config", "gitflow.branch.develop").trim()).toBe("develop");
    const removed = await broker.run("rm -rf or or-tree or-part or-shared.git");
    expect(removed).toMatchObject({ exit: 0, notices: [] });
  });

  test("its twin: a setting that a person adds to a command's repository stays, and one that nobody knows goes with its repository", async () => {
    await broker.run(`git init -q pa && git -C pa ${IDENTITY} commit -q --allow-empty -m one`);
    hostGit(actor, at("pa"), "config", "hook.lint.command", "./lint");
    const ran = await broker.run(
      `git -C pa ${IDENTITY} commit -q --allow-empty -m two && git -C pa branch next`,
    );
    expect(ran).toMatchObject({ exit: 0, notices: [] });
    expect(hostGit(actor, at("pa"), "config", "hook.lint.command").trim()).toBe("./lint");
    const gone = await broker.run("git init -q go && git -C go config some.thing x && rm -rf go");
    expect(gone).toMatchObject({ exit: 0, notices: [] });
  });

  test("a HEAD that comes in a later command than the settings is taken out", async () => {
    await broker.run("mkdir two && echo '[core]' > two/cc && ln -s cc two/config");
    await broker.run("mkdir two/objects two/refs && echo 'ref: refs/heads/a' > two/HEAD");
    expect(existsSync(at("two/HEAD"))).toBe(false);
  });

  test("so is one that comes in a later command than hooks", async () => {
    await broker.run("mkdir -p hooked/hooks && printf '#!/bin/sh\\nid\\n' > hooked/hooks/post-index-change");
    await broker.run("mkdir hooked/objects hooked/refs && echo 'ref: refs/heads/a' > hooked/HEAD");
    expect(existsSync(at("hooked/HEAD"))).toBe(false);
  });

  test("its twin: a worktree of a repository that a command made, and of a bare one under any name", async () => {
    const made = await broker.run(
      `git init -q wt && git -C wt ${IDENTITY} commit -q --allow-empty -m one && git -C wt worktree add -q ../wt2 && git clone -q --bare wt bare3 && git -C bare3 worktree add -q ../wt3 -b three`,
    );
    expect(made).toMatchObject({ exit: 0 });
    expect((await broker.run("git -C wt2 log --format=%s && git -C wt3 log --format=%s")).stdout).toBe(
      "one\none\n",
    );
  });

  test("its twin: files that are only called so stay", async () => {
    const ran = await broker.run(
      "mkdir -p src/config src/hooks etc && echo 'export {}' > src/hooks/useState.ts && printf '[server]\\nport = 1\\n' > etc/config && echo x > src/config/a",
    );
    expect(ran.fs_diff?.writes.toSorted()).toEqual(["etc/config", "src/config/a", "src/hooks/useState.ts"]);
    for (const path of ran.fs_diff?.writes ?? []) expect(existsSync(at(path))).toBe(true);
  });
});
