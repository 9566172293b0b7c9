import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Actor, actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";

const ENFORCE = "id: default\nname: x\nmode: enforce\n";
const ISOLATES = `${ENFORCE}commands:\n  isolated: ['touch *']\n`;
const IDENTITY = "-c user.name=a -c user.email=a@example.org";

/** Makes a repository on the host, as a person does. */
function repository(actor: Actor, broker: TestBroker, name: string, ...more: readonly string[]): string {
  const folder = join(broker.project, name);
  broker.write(join(folder, "f"), "x\n");
  hostGit(actor, folder, "init", "-q", ...more);
  return folder;
}

/** The next command begins a world of its own. */
async function restart(broker: TestBroker): Promise<void> {
  const { status } = await broker.operator("POST", "/v1/world/restart", { all: true, force: true });
  expect(status).toBe(200);
}

/** All files below a folder with what they hold. */
function contents(folder: string): Readonly<Record<string, string>> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  return Object.fromEntries(
    files
      .map((each) => join(each.parentPath, each.name))
      .sort()
      .map((path) => [path, readFileSync(path, "latin1")]),
  );
}

describe.each(actors())("repositories below a project, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: ENFORCE } });
    hostGit(actor, broker.project, "init", "-q");
  });
  afterAll(() => broker.stop());

  const attacks: readonly (readonly [string, string])[] = [
    ["sets a monitor", `git config -f app/.git/config core.fsmonitor "touch ran; :"`],
    ["writes its config", "echo '[core] pager = touch ran' >> app/.git/config"],
    ["puts another config in place", "cp app/.git/config c; echo evil >> c; mv -f c app/.git/config"],
    ["adds a hook", "printf '#!/bin/sh\\ntouch ran\\n' > app/.git/hooks/post-commit"],
    ["moves its hooks away", "mv app/.git/hooks app/.git/old; mkdir app/.git/hooks"],
    ["moves its git folder away", "mv app/.git app/old; git init -q app"],
    ["moves the repository away", "mv app old; git init -q app"],
    ["adds a second config", "echo '[core] pager = x' > app/.git/config.worktree"],
    ["leads it to another folder", "cp -r app/.git evil; echo ../../evil > app/.git/commondir"],
    ["does it in one that lies deep", "git config -f a/b/c/.git/config core.pager evil"],
    [
      "does it in a bare one",
      "git config -f shared.git/config core.pager evil; echo x > shared.git/hooks/post-update",
    ],
    ["does it in a submodule's folder of one below", "echo evil >> app/.git/modules/lib/config"],
  ];

  test.each(attacks)("a command that %s changes nothing that git reads there", async (_claim, cmd) => {
    const deep = repository(actor, broker, "a/b/c");
    const app = repository(actor, broker, "app");
    broker.write(join(app, ".git/modules/lib/config"), "[core]\n");
    hostGit(actor, broker.project, "init", "-q", "--bare", "shared.git");
    const guarded = [join(app, ".git"), join(deep, ".git"), join(broker.project, "shared.git")];
    const before = guarded.map(contents);
    // A world of its own: it begins with the repositories there.
    await restart(broker);
    const ran = await broker.run(`${cmd}; true`);
    expect(ran.exit).toBe(0);
    expect(guarded.map(contents)).toEqual(before);
    for (const name of ["app", "a", "shared.git", "evil"])
      rmSync(join(broker.project, name), { recursive: true, force: true });
  });

  test("a command that leads one to another folder changes nothing behind thousands of folders either", async () => {
    const far = repository(actor, broker, "z/z/z/z/far");
    for (let at = 0; at < 2200; at++) mkdirSync(join(broker.project, `many/${at}`), { recursive: true });
    await restart(broker);
    const ran = await broker.run(
      "cp -r z/z/z/z/far/.git evil; echo ../../evil > z/z/z/z/far/.git/commondir; touch z/z/z/z/far/g",
    );
    expect(ran.exit).toBe(0);
    expect(existsSync(join(far, ".git/commondir"))).toBe(false);
    expect(existsSync(join(far, "g"))).toBe(true);
    for (const name of ["many", "z", "evil"])
      rmSync(join(broker.project, name), { recursive: true, force: true });
    await restart(broker);
  });

  test("one that the person clones while a world is warm is sealed there too", async () => {
    await broker.run("true");
    const late = repository(actor, broker, "late");
    const before = contents(join(late, ".git"));
    await broker.run("true");
    await broker.run("git config -f late/.git/config core.pager evil; true");
    expect(contents(join(late, ".git"))).toEqual(before);
  });

  test("its twin: in a repository below, a command commits, branches and stashes; files beside it move", async () => {
    const twin = repository(actor, broker, "twin");
    await restart(broker);
    const ran = await broker.run(
      `cd twin && git add f && git ${IDENTITY} commit -qm one && git checkout -qb other && echo y > f && git ${IDENTITY} stash -q && git stash list | wc -l && mv f g && mkdir -p sub && mv g sub/ && cp sub/g f`,
    );
    expect(ran).toMatchObject({ exit: 0, stdout: "1\n", stderr: "" });
    expect(hostGit(actor, twin, "log", "--format=%s")).toBe("one");
  });

  test("its twin: a command makes a repository, and clones one, and works in both", async () => {
    const ran = await broker.run(
      `git init -q made && cd made && git ${IDENTITY} commit -q --allow-empty -m one && cd .. && git clone -q made copy && cd copy && git config user.name b && git ${IDENTITY} commit -q --allow-empty -m two && git log --oneline | wc -l`,
    );
    expect(ran).toMatchObject({ exit: 0, stdout: "2\n" });
    expect(existsSync(join(broker.project, "copy/.git/config"))).toBe(true);
  });

  test("a profile in a folder below is not rewritten, and can be read", async () => {
    const path = join(broker.project, "reports/deep/.substrate-profile");
    broker.write(path, "readonly\n");
    await restart(broker);
    const ran = await broker.run(
      "echo default > reports/deep/.substrate-profile; rm -rf reports; mv reports r; cat reports/deep/.substrate-profile",
    );
    expect(ran.stdout).toBe("readonly\n");
    expect(readFileSync(path, "utf8")).toBe("readonly\n");
  });
});

describe.each(actors())("held changes to a repository below, as $kind", (actor) => {
  test("are not applied where it stands, and those beside it are", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: ISOLATES } });
    try {
      hostGit(actor, broker.project, "init", "-q");
      const app = repository(actor, broker, "app");
      const before = readFileSync(join(app, ".git/config"), "utf8");
      const ran = await broker.run("touch held; echo evil >> app/.git/config; true");
      await broker.operator("POST", `/v1/apply/${ran.span_id}`, { paths: ["held"] });
      const refused = await broker.operator("POST", `/v1/apply/${ran.span_id}`, {});
      expect(JSON.stringify(refused.document)).toContain(".git/config");
      expect(readFileSync(join(app, ".git/config"), "utf8")).toBe(before);
      expect(existsSync(join(broker.project, "held"))).toBe(true);
    } finally {
      await broker.stop();
    }
  });
});
