import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";

const IDENTITY = "-c user.name=a -c user.email=a@example.org";

describe.each(actors())("what git's settings name in a project, as $kind", (actor) => {
  let broker: TestBroker;
  let folder: string;
  const at = (path: string): string => join(broker.project, path);
  beforeAll(async () => {
    folder = mkdtempSync(join(actor.home, "sb-named-"));
    mkdirSync(join(folder, "person"));
    writeFileSync(join(folder, "person/.gitconfig"), "[core]\n\thooksPath = tools/hooks\n");
    broker = await TestBroker.start(actor, {
      folder,
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
      environment: { HOME: join(folder, "person") },
    });
    broker.write(at("tools/format.sh"), "#!/bin/sh\ncat\n");
    broker.write(at("settings/git.inc"), "[core]\n\tpager = cat\n");
    chmodSync(at("tools/format.sh"), 0o755);
    hostGit(actor, broker.project, "init", "-q");
    hostGit(actor, broker.project, "config", "include.path", "../settings/git.inc");
    hostGit(actor, broker.project, "config", "filter.x.clean", "tools/format.sh --fast");
    broker.write(at("tools/lint.sh"), "#!/bin/sh\n");
    hostGit(actor, broker.project, "config", "hook.lint.command", "tools/lint.sh");
  });
  afterAll(async () => {
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("a hook in the folder that the person's own settings name is not made, and not run on the host", async () => {
    await broker.run(
      `mkdir -p tools/hooks && printf '#!/bin/sh\\ntouch ${folder}/ran\\n' > tools/hooks/post-commit; chmod +x tools/hooks/post-commit; true`,
    );
    expect(existsSync(at("tools/hooks/post-commit"))).toBe(false);
    hostGit(
      actor,
      broker.project,
      "-c",
      "core.hooksPath=tools/hooks",
      "commit",
      "-q",
      "--allow-empty",
      "-m",
      "x",
    );
    expect(existsSync(join(folder, "ran"))).toBe(false);
  });

  test("one that is there keeps its content, and so do included settings and the programs of a filter and of a hook in the settings", async () => {
    broker.write(at("tools/hooks/pre-commit"), "#!/bin/sh\n");
    for (const path of ["tools/hooks/pre-commit", "settings/git.inc", "tools/format.sh", "tools/lint.sh"]) {
      const before = readFileSync(at(path), "utf8");
      await broker.run(`echo evil >> ${path}; rm -f ${path}; mv tools t2; mv settings s2; true`);
      expect(readFileSync(at(path), "utf8")).toBe(before);
    }
  });

  test("a folder that the person names later is sealed from the next command on", async () => {
    expect(
      (await broker.run("mkdir -p .hooks && echo one > .hooks/pre-push && cat .hooks/pre-push")).stdout,
    ).toBe("one\n");
    hostGit(actor, broker.project, "config", "core.hooksPath", ".hooks");
    await broker.run("echo two > .hooks/pre-push; true");
    expect(readFileSync(at(".hooks/pre-push"), "utf8")).toBe("one\n");
    hostGit(actor, broker.project, "config", "--unset", "core.hooksPath");
  });

  /** A link of the person's, who may be another user than the one who runs the tests. */
  const link = (target: string, path: string): void => {
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(target, path);
  };

  test("the script that a hook links to keeps its content, and the links on the way stay", async () => {
    for (const name of ["check.sh", "other.sh"]) {
      broker.write(at(`scripts/${name}`), "#!/bin/sh\n");
      chmodSync(at(`scripts/${name}`), 0o755);
    }
    link("../scripts/check.sh", at("tools/current"));
    link("../../tools/current", at(".git/hooks/pre-commit"));
    const ran = await broker.run("echo evil >> scripts/check.sh");
    expect(readFileSync(at("scripts/check.sh"), "utf8")).toBe("#!/bin/sh\n");
    expect(JSON.stringify(ran.notices)).toContain("as the hook 'pre-commit'");
    await broker.run(
      "mv scripts s2; rm -f scripts/check.sh; ln -sfn ../scripts/other.sh tools/current; mv -f scripts/other.sh tools/current; true",
    );
    expect(readFileSync(at("scripts/check.sh"), "utf8")).toBe("#!/bin/sh\n");
    expect(readlinkSync(at("tools/current"))).toBe("../scripts/check.sh");
    const twin = await broker.run("echo more >> scripts/other.sh && tail -1 scripts/other.sh");
    expect(twin).toMatchObject({ exit: 0, stdout: "more\n" });
    rmSync(at(".git/hooks/pre-commit"));
    const after = await broker.run("echo mine >> scripts/check.sh && tail -1 scripts/check.sh");
    expect(after).toMatchObject({ exit: 0, stdout: "mine\n" });
  });

  test("the script that a hook is a hard link of keeps its content, wherever its folder goes", async () => {
    for (const path of ["checks/lint.sh", "checks/other.sh", "checks/deep/more.sh"]) {
      broker.write(at(path), "#!/bin/sh\n");
      chmodSync(at(path), 0o755);
    }
    mkdirSync(at(".git/hooks"), { recursive: true });
    linkSync(at("checks/lint.sh"), at(".git/hooks/post-commit"));
    const attack = (path: string): string =>
      `ln ${path} twin; echo 'touch ${folder}/ran' >> ${path}; echo 'touch ${folder}/ran' >> twin; ln .git/hooks/post-commit own; echo 'touch ${folder}/ran' >> own; rm -f ${path} twin own; true`;
    const ran = await broker.run(attack("checks/lint.sh"));
    expect(JSON.stringify(ran.notices)).toContain("as the hook 'post-commit'");
    await broker.run("chmod 0 checks; true");
    await broker.run(`chmod 755 checks; ${attack("checks/lint.sh")}`);
    renameSync(at("checks"), at("kontrol"));
    await broker.run(attack("kontrol/lint.sh"));
    linkSync(at("kontrol/lint.sh"), at("kontrol/deep/again.sh"));
    await broker.run(attack("kontrol/deep/again.sh"));
    expect(readFileSync(at("kontrol/lint.sh"), "utf8")).toBe("#!/bin/sh\n");
    hostGit(actor, broker.project, "commit", "-q", "--allow-empty", "-m", "x");
    expect(existsSync(join(folder, "ran"))).toBe(false);
    const twin = await broker.run("echo more >> kontrol/other.sh && tail -1 kontrol/other.sh");
    expect(twin).toMatchObject({ exit: 0, stdout: "more\n", notices: [] });
    rmSync(at(".git/hooks/post-commit"));
    rmSync(at("kontrol/deep/again.sh"));
    const after = await broker.run("echo mine >> kontrol/lint.sh && tail -1 kontrol/lint.sh");
    expect(after).toMatchObject({ exit: 0, stdout: "mine\n" });
  });

  test("settings that have a name in the project keep their content", async () => {
    const settings = join(folder, "person/.gitconfig");
    linkSync(settings, at("tools/gitconfig"));
    const before = readFileSync(settings, "utf8");
    await broker.run("printf '[core]\\n\\tfsmonitor = evil\\n' >> tools/gitconfig; true");
    expect(readFileSync(settings, "utf8")).toBe(before);
    rmSync(at("tools/gitconfig"));
  });

  test("a name of a hook that nobody can find is told", async () => {
    broker.write(at("shut/check.sh"), "#!/bin/sh\n");
    linkSync(at("shut/check.sh"), at(".git/hooks/pre-push"));
    chmodSync(at("shut"), 0o000);
    const told = (await broker.run("true")).notices?.map(({ message }) => message).join() ?? "";
    // Root opens every folder, and finds it.
    if (actor.kind === "root") expect(told).toBe("");
    else expect(told).toMatch(/pre-push' has another name .* was not found/);
    chmodSync(at("shut"), 0o755);
    const ran = await broker.run("echo evil >> shut/check.sh; true");
    expect(JSON.stringify(ran.notices)).toContain("as the hook 'pre-push'");
    expect(readFileSync(at("shut/check.sh"), "utf8")).toBe("#!/bin/sh\n");
    rmSync(at(".git/hooks/pre-push"));
  });

  test("settings and hooks that are links keep what they lead to", async () => {
    mkdirSync(at("kept"));
    renameSync(at(".git/config"), at("kept/config"));
    link("../kept/config", at(".git/config"));
    const person = join(folder, "person");
    broker.write(at("kept/home"), readFileSync(join(person, ".gitconfig"), "utf8"));
    renameSync(join(person, ".gitconfig"), join(person, "before"));
    link(at("kept/home"), join(person, ".gitconfig"));
    broker.write(at("kept/git/config"), "[user]\n\tname = a\n");
    link(at("kept/git"), join(person, ".config/git"));
    rmSync(at(".git/hooks"), { recursive: true });
    broker.write(at("kept/hooks/pre-push"), "#!/bin/sh\n");
    link("../kept/hooks", at(".git/hooks"));
    for (const path of ["kept/config", "kept/home", "kept/git/config", "kept/hooks/pre-push"]) {
      const before = readFileSync(at(path), "utf8");
      await broker.run(`echo '# evil' >> ${path}; rm -f ${path}; mv kept k2; true`);
      expect(readFileSync(at(path), "utf8"), path).toBe(before);
    }
    await broker.run("echo evil > kept/hooks/post-commit; true");
    expect(existsSync(at("kept/hooks/post-commit"))).toBe(false);
    expect(await broker.run("echo x > kept/notes && cat kept/notes")).toMatchObject({ stdout: "x\n" });
    for (const path of [join(person, ".gitconfig"), join(person, ".config/git"), at(".git/hooks")])
      rmSync(path);
    renameSync(join(person, "before"), join(person, ".gitconfig"));
    rmSync(at(".git/config"));
    renameSync(at("kept/config"), at(".git/config"));
  });

  test("what hooks and settings of a repository below the project lead to is kept too", async () => {
    const outer = join(folder, "outer");
    broker.write(join(outer, "app/check.sh"), "#!/bin/sh\n");
    broker.write(join(outer, "app/hooks-of-app/pre-push"), "#!/bin/sh\n");
    broker.write(join(outer, "shared.sh"), "#!/bin/sh\n");
    hostGit(actor, outer, "init", "-q");
    hostGit(actor, join(outer, "app"), "init", "-q");
    hostGit(actor, join(outer, "app"), "config", "core.hooksPath", "hooks-of-app");
    link("../../check.sh", join(outer, "app/.git/hooks/pre-commit"));
    link("../../shared.sh", join(outer, "app/hooks-of-app/commit-msg"));
    for (const path of ["app/check.sh", "app/hooks-of-app/pre-push", "shared.sh"]) {
      await broker.run({ cwd: outer, cmd: `echo evil >> ${path}; true` });
      expect(readFileSync(join(outer, path), "utf8"), path).toBe("#!/bin/sh\n");
    }
    const twin = await broker.run({ cwd: outer, cmd: "echo x > app/other.sh && cat app/other.sh" });
    expect(twin).toMatchObject({ exit: 0, stdout: "x\n" });
  });

  test("its twin: what lies beside them is written, and commits go on", async () => {
    const ran = await broker.run(
      `echo x > tools/other.sh && echo y > settings/other && mkdir -p hooks && echo z > hooks/a && git add tools/other.sh && git ${IDENTITY} commit -qm two && git log -1 --format=%s`,
    );
    expect(ran).toMatchObject({ exit: 0, stdout: "two\n" });
  });
});
