import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Answer, call } from "../../api/client/client.ts";
import type { CheckReply, ErrorReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { hostGit, triedGit } from "../support/git/git.ts";
import { change, changed, diffOf, errorIn, fill, isolated, startOver } from "../support/held/changes.ts";

/** Rows of the shipped policies, and two that an operator wrote otherwise. */
const DENIED = [
  ...["hooks", "config", "config.worktree", "commondir"].map((name) => `$PROJECT/.git/${name}`),
  ...[".envrc", ".husky", ".vscode", ".claude/settings.json", ".mcp.json"].map((name) => `$PROJECT/${name}`),
  ...["$PROJECT/.idea/workspace.xml", "**/.gdbinit"],
];

function policy(id: string, changes: string): string {
  return [
    `id: ${id}`,
    "name: Held names",
    "mode: enforce",
    "selectable: true",
    `fs: { deny_write: ${JSON.stringify(DENIED)} }`,
    'commands: { isolated: ["true iso"], denied: ["base64 *"] }',
    `changes: ${changes}`,
    "",
  ].join("\n");
}

/** Each with the file it leaves, as a command makes it. */
const MADE = [
  [".envrc", "echo 'touch RAN' > .envrc"],
  [".husky/pre-commit", "mkdir .husky; echo 'touch RAN' > .husky/pre-commit"],
  [
    ".vscode/tasks.json",
    "mkdir .vscode; python3 -c \"open('.vscode/tasks.json', 'w').write('{}')\" || echo {} > .vscode/tasks.json",
  ],
  [".claude/settings.json", "mkdir .claude; echo {} > .claude/settings.json"],
  [".mcp.json", "echo {} > .mcp.json"],
  [
    ".git/hooks/pre-commit",
    "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch RAN\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
  ],
] as const;

const CONFIG = "agents:\n  ann: {policy: open}\n  bob: {policy: auto}\n";

describe.each(actors())("names that tools run later, written by isolated commands, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: {
        default: policy("default", "{}"),
        open: policy("open", "{ apply: agent }"),
        alone: 'id: alone\nname: Alone\nmode: enforce\nselectable: true\ncommands: { isolated: ["*"] }\n',
        auto: policy("auto", '{ auto_apply: ["$PROJECT/**"] }'),
      },
      config: CONFIG,
    });
  });
  afterAll(() => broker.stop());
  beforeEach(async () => {
    await startOver(broker);
    hostGit(actor, broker.project, "init", "-q");
  });

  const here = (path: string): string => join(broker.project, path);

  function as(agent: string, method: string, path: string, body?: object): Promise<Answer> {
    return call(join(broker.home, `sock/agents/${agent}.sock`), method, path, body);
  }

  async function ranBy(agent: string, cmd: string): Promise<Ran> {
    const { status, document } = await as(agent, "POST", "/v1/execute", {
      cmd: `true iso; ${cmd}`,
      cwd: broker.project,
    });
    expect(status, JSON.stringify(document)).toBe(200);
    return document as Ran;
  }

  test.each(MADE)(
    "%s is held and listed as autorun, stands nowhere before the operator applies it, and can be taken back",
    async (name, cmd) => {
      const ran = await isolated(broker, `${cmd}; cat ${name} > /dev/null && echo seen`);
      expect(ran).toMatchObject({ exit: 0, stdout: "seen\n", fs_diff: { held: true } });
      expect(ran.fs_diff?.autorun).toContain(name);
      expect(ran.hint).toContain(`'${name}'`);
      expect(existsSync(here(name))).toBe(false);
      const later = await isolated(broker, `test -e ${name} || echo no`);
      expect(later.stdout).toBe("no\n");
      const { changes } = await diffOf(broker, ran.span_id);
      expect(changes.find(({ path }) => path === name)).toMatchObject({ kind: "write", autorun: true });
      const { change_span_id: id } = await changed(broker, "apply", ran.span_id);
      expect(existsSync(here(name))).toBe(true);
      expect((await broker.span(id)).fs_diff?.autorun).toContain(name);
      await changed(broker, "undo", ran.span_id);
      expect(existsSync(here(name))).toBe(false);
    },
  );

  test("settings of a submodule that git writes again as they were hold no apply up; another content does", async () => {
    const settings = ".git/modules/lib/config";
    fill(broker, { [settings]: "[core]\n", "kept.txt": "old\n" });
    const again = `cp ${settings} ${settings}.lock && mv ${settings}.lock ${settings}`;
    const same = await isolated(broker, `${again} && echo new > kept.txt`);
    expect((await diffOf(broker, same.span_id)).changes.map(({ path }) => path)).toEqual(["kept.txt"]);
    await changed(broker, "apply", same.span_id);
    expect(readFileSync(here("kept.txt"), "utf8")).toBe("new\n");
    for (const more of [
      `echo '[alias]' >> ${settings}`,
      `chmod 777 ${settings}`,
      `ln ${settings} ${settings}2`,
    ]) {
      const other = await isolated(broker, `${again} && ${more}; echo newer > kept.txt`);
      const refused = errorIn(await change(broker, "apply", other.span_id));
      expect(refused, more).toMatchObject({
        code: "policy_denied",
        message: expect.stringContaining(settings),
      });
      expect(readFileSync(here("kept.txt"), "utf8")).toBe("new\n");
    }
  });

  test("the same by plain commands is refused as ever, and the answer says that isolated ones may", async () => {
    for (const [name, cmd] of MADE) {
      const answer = await broker.post({ cmd });
      expect(JSON.stringify(answer.document), name).toContain("commands.isolated");
      expect(existsSync(here(name)), name).toBe(false);
    }
    const { error } = (await broker.post({ cmd: "echo x > .envrc" })).document as ErrorReply;
    expect(error).toMatchObject({ code: "policy_denied", rule: { list: "fs.deny_write" } });
    expect(error.hint).toContain("substrate apply");
  });

  test("a plain command that says it makes a denied folder and a file in it does not begin; where nothing denies it, it runs", async () => {
    const refused = await broker.refused({
      cmd: "mkdir -p .vscode && echo {} > .vscode/tasks.json && cat .vscode/tasks.json",
    });
    expect(refused).toMatchObject({ code: "policy_denied", rule: { list: "fs.deny_write" } });
    expect(refused.hint).toContain("commands.isolated");
    expect(existsSync(here(".vscode"))).toBe(false);
    const twin = await broker.run("mkdir -p .other/in && echo {} > .other/in/tasks.json && ls -A .other/in");
    expect(twin).toMatchObject({ exit: 0, stdout: "tasks.json\n", notices: [] });
  });

  test("a command whose words say what it writes runs where it is isolated, and not where it is plain", async () => {
    const ran = await broker.run("true iso && echo x > .envrc && cp .envrc .mcp.json");
    expect(ran).toMatchObject({ exit: 0, decision: { verdict: "isolate" }, fs_diff: { held: true } });
    expect(ran.fs_diff?.autorun.toSorted()).toEqual([".envrc", ".mcp.json"]);
    const words = { agent_id: "test", cwd: broker.project, cmd: "echo x > .envrc" };
    const verdict = async (cmd: string) =>
      ((await broker.call("POST", "/v1/check", { ...words, cmd })).document as CheckReply).decision.verdict;
    expect(await verdict("true iso && echo x > .envrc")).toBe("isolate");
    expect(await verdict("echo x > .envrc")).toBe("deny");
    expect(await verdict("true iso && echo x > .envrc && base64 f")).toBe("deny");
  });

  test("a profile that the caller chooses lifts nothing: the assigned policy itself must isolate the command", async () => {
    const refused = await broker.refused({ cmd: "echo x > .envrc", profile: "alone" });
    expect(refused).toMatchObject({ code: "policy_denied", policy_id: "default" });
    fill(broker, { ".mcp.json": "mine\n" });
    const ran = await broker.run({ cmd: "f=.mcp.json; echo x > $f; true", profile: "alone" });
    expect(ran).toMatchObject({ decision: { verdict: "isolate" }, fs_diff: { mods: [] } });
    const both = await broker.run({ cmd: "true iso && echo x > .envrc", profile: "alone" });
    expect(both).toMatchObject({ exit: 0, fs_diff: { autorun: [".envrc"], held: true } });
  });

  test("git's settings hold programs inside alone, where the gate sees them; after the operator's apply on the host too", async () => {
    const hook = "printf '#!/bin/sh\\ntouch RAN; base64 /dev/null\\n' > run; chmod +x run";
    const ran = await isolated(
      broker,
      `${hook}; git config core.fsmonitor ./run; git status > /dev/null; ls RAN`,
    );
    expect(ran.stdout).toBe("RAN\n");
    expect(ran.notices).toContainEqual(expect.objectContaining({ kind: "denied", program: "base64" }));
    expect(ran.fs_diff?.autorun).toContain(".git/config");
    triedGit(actor, broker.project, ["status"]);
    expect(existsSync(here("RAN"))).toBe(false);
    await changed(broker, "apply", ran.span_id, ["run", ".git/config"]);
    triedGit(actor, broker.project, ["status"]);
    expect(existsSync(here("RAN"))).toBe(true);
  });

  test("a replay of a plain command meets what the command met", async () => {
    fill(broker, { ".mcp.json": "mine\n" });
    const ran = await broker.run("f=.mcp.json; (echo evil > $f) 2> /dev/null || echo refused");
    expect(ran.stdout).toBe("refused\n");
    const { document } = await broker.call("POST", `/v1/replay/${ran.span_id}`, {});
    expect(document).toMatchObject({ matches: { exit: true, stdout: true, fs_diff: true } });
  });

  test("substrate apply says which of the changes tools run by themselves", async () => {
    const { span_id: span } = await isolated(broker, "echo x > .envrc; echo x > f");
    const told = await broker.cli(["apply", span]);
    expect(told).toMatchObject({ code: 0 });
    expect(told.stdout).toContain("tools run by themselves: .envrc\n");
    const { span_id: plain } = await isolated(broker, "echo x > g");
    expect((await broker.cli(["apply", plain])).stdout).not.toContain("by themselves");
  });

  test("settings that the person changed meanwhile are a conflict, and stay as the person has them", async () => {
    const ran = await isolated(broker, "git config core.hooksPath .husky");
    hostGit(actor, broker.project, "config", "user.name", "Ann");
    const mine = readFileSync(here(".git/config"), "utf8");
    expect(errorIn(await change(broker, "apply", ran.span_id))).toMatchObject({ code: "apply_conflict" });
    expect(readFileSync(here(".git/config"), "utf8")).toBe(mine);
  });

  test("no agent applies them, whatever it may apply besides; what is plain beside them it does", async () => {
    for (const [name, cmd] of MADE) {
      const { span_id: span } = await ranBy("ann", `${cmd}; echo x > plain-of-${name.replaceAll("/", "-")}`);
      const error = errorIn(await as("ann", "POST", `/v1/apply/${span}`, {}));
      expect(error).toMatchObject({ status: 403, code: "policy_denied", exit: 126, policy_id: "open" });
      expect(error.message).toContain("only the operator can apply");
      expect(error.hint).toContain(`substrate apply ${span}`);
      expect(errorIn(await as("ann", "POST", `/v1/apply/${span}`, { paths: [name] })).code).toBe(
        "policy_denied",
      );
      expect(existsSync(here(name)), name).toBe(false);
      const plain = `plain-of-${name.replaceAll("/", "-")}`;
      expect((await as("ann", "POST", `/v1/apply/${span}`, { paths: [plain] })).status).toBe(200);
      expect(existsSync(here(plain)), name).toBe(true);
      await changed(broker, "apply", span, [
        name
          .split("/")
          .slice(0, name.startsWith(".git") ? 9 : 1)
          .join("/"),
      ]);
      expect(existsSync(here(name)), name).toBe(true);
      expect(errorIn(await as("ann", "POST", `/v1/undo/${span}`, {}))).toMatchObject({
        code: "policy_denied",
        exit: 126,
        policy_id: "open",
        rule: null,
      });
    }
  });

  test("no agent applies the state of a rebase or cherry-pick, whose --continue runs what it names", async () => {
    for (const name of [".git/rebase-merge/strategy", ".git/rebase-apply/x", ".git/sequencer/opts"]) {
      const { span_id: span } = await ranBy("ann", `mkdir -p $(dirname ${name}); echo z/x > ${name}`);
      for (const body of [{}, { paths: [name] }])
        expect(errorIn(await as("ann", "POST", `/v1/apply/${span}`, body)).code).toBe("policy_denied");
      expect(existsSync(here(name)), name).toBe(false);
      await changed(broker, "apply", span);
      await changed(broker, "undo", span);
    }
  });

  test("no agent applies them where git's folder of hooks, or its settings, are missing on the host", async () => {
    renameSync(here(".git/hooks"), here(".git/away"));
    unlinkSync(here(".git/config"));
    const cmd =
      "mkdir .git/hooks; echo x > .git/hooks/pre-commit; echo '[core]' > .git/config; git init -q sub";
    const { span_id: span } = await ranBy("ann", cmd);
    for (const paths of [[".git/hooks"], [".git/config"], ["sub/.git/config"], ["sub"]])
      expect(errorIn(await as("ann", "POST", `/v1/apply/${span}`, { paths })).code).toBe("policy_denied");
    expect(existsSync(here(".git/hooks"))).toBe(false);
    expect(existsSync(here(".git/config"))).toBe(false);
    await changed(broker, "apply", span);
    expect(existsSync(here("sub/.git/config"))).toBe(true);
  });

  test("changes.auto_apply brings none of them, and all the rest waits with them; alone it comes", async () => {
    for (const [name, cmd] of MADE) {
      const ran = await ranBy("bob", `${cmd}; echo x > beside`);
      expect(ran.fs_diff?.held, name).toBe(true);
      expect(ran.hint).toContain("changes.auto_apply applied nothing");
      expect([existsSync(here(name)), existsSync(here("beside"))], name).toEqual([false, false]);
    }
    const alone = await ranBy("bob", "echo x > beside");
    expect(alone.fs_diff?.held).toBe(false);
    expect(existsSync(here("beside"))).toBe(true);
  });

  test("where a link leads from such a name stays denied: a change there would have another name", async () => {
    fill(broker, { "conf/vscode/tasks.json": "{}\n", "dot/settings.json": "{}\n", "conf/envrc": "mine\n" });
    symlinkSync("conf/vscode", here(".vscode"));
    symlinkSync("dot", here(".claude"));
    symlinkSync("conf/envrc", here(".envrc"));
    const words = "echo evil >";
    const ran = await isolated(
      broker,
      `${words} .vscode/tasks.json; ${words} conf/vscode/new.json; ${words} .claude/settings.json; ${words} dot/settings.json; ${words} .envrc; true`,
    );
    expect(ran.fs_diff).toMatchObject({ writes: [], mods: [] });
    expect(readFileSync(here("conf/vscode/tasks.json"), "utf8")).toBe("{}\n");
    expect(readFileSync(here("dot/settings.json"), "utf8")).toBe("{}\n");
    expect(readFileSync(here("conf/envrc"), "utf8")).toBe("mine\n");
  });

  test("a name that the operator denied otherwise is refused to isolated commands too, by text and by the world", async () => {
    fill(broker, { ".idea/workspace.xml": "mine\n", ".gdbinit": "mine\n", "sub/f": "" });
    for (const name of [".idea/workspace.xml", ".gdbinit", "sub/.gdbinit"]) {
      const error = await broker.refused({ cmd: `true iso && echo x > .envrc && echo x > ${name}` });
      expect(error, name).toMatchObject({ code: "policy_denied", rule: { list: "fs.deny_write" } });
      expect(error.hint, name).not.toContain("commands.isolated");
      const ran = await isolated(broker, `f=${name}; echo evil > $f; true`);
      expect(ran.fs_diff?.mods, name).toEqual([]);
      if (ran.fs_diff?.held === true)
        expect(errorIn(await change(broker, "apply", ran.span_id)).code, name).toBe("policy_denied");
    }
    expect(readFileSync(here(".gdbinit"), "utf8")).toBe("mine\n");
    expect(existsSync(here("sub/.gdbinit"))).toBe(false);
  });

  test("profiles and what leads git elsewhere are no such names", async () => {
    fill(broker, { ".substrate-profile": "default\n", "sub/.git": "gitdir: ../elsewhere\n" });
    const ran = await isolated(broker, "echo open > .substrate-profile; true");
    expect(ran.fs_diff?.mods ?? []).not.toContain(".substrate-profile");
    const moved = await isolated(broker, "mv .git real; ln -s real .git; rm -rf sub; true");
    expect(errorIn(await change(broker, "apply", moved.span_id)).status).not.toBe(200);
    expect(hostGit(actor, broker.project, "rev-parse", "--git-dir")).toBe(".git");
    expect(existsSync(here(".git/config"))).toBe(true);
  });

  test("a repository below stays as it is: the operator's apply refuses its settings, and takes the rest", async () => {
    mkdirSync(here("below"));
    fill(broker, {});
    hostGit(actor, here("below"), "init", "-q");
    const before = readFileSync(here("below/.git/config"), "utf8");
    const ran = await isolated(broker, "git -C below config core.fsmonitor evil; echo x > below/f");
    expect(errorIn(await change(broker, "apply", ran.span_id)).code).toBe("policy_denied");
    await changed(broker, "apply", ran.span_id, ["below/f"]);
    expect(readFileSync(here("below/.git/config"), "utf8")).toBe(before);
  });

  test("a second name, or a link, through which later commands could change it, is applied by nobody; a copy is", async () => {
    fill(broker, { ".mcp.json": "mine\n", "conf/f": "" });
    const cmd = [
      "echo fine > .envrc; ln .envrc notes; ln .mcp.json other",
      "ln -s late .vscode; ln -s ../../run .git/hooks/pre-commit; ln -s conf .claude; ln -s conf plain; ln notes again",
    ].join("; ");
    const { span_id: span } = await isolated(broker, cmd);
    const error = errorIn(await change(broker, "apply", span));
    expect(error).toMatchObject({ status: 403, code: "policy_denied" });
    const refused = [".claude", ".envrc", ".git/hooks/pre-commit", ".mcp.json", ".vscode"];
    expect(error.conflicts?.map(({ path }) => path).toSorted()).toEqual(refused);
    for (const path of refused)
      expect(errorIn(await change(broker, "apply", span, [path])).code, path).toBe("policy_denied");
    await changed(broker, "apply", span, ["notes", "again", "other", "plain"]);
    await broker.run("echo evil >> notes; echo evil >> other");
    expect(readFileSync(here(".mcp.json"), "utf8")).toBe("mine\n");
    expect([existsSync(here(".envrc")), existsSync(here(".vscode"))]).toEqual([false, false]);
    const copied = await isolated(broker, "cp notes .envrc");
    await changed(broker, "apply", copied.span_id);
    await broker.run("echo later >> notes");
    expect(readFileSync(here(".envrc"), "utf8")).toBe("fine\nevil\n");
  });

  test("an apply follows no link that took the name's place, or its folder's", async () => {
    fill(broker, { "elsewhere/tasks.json": "mine\n" });
    const { span_id: span } = await isolated(
      broker,
      "mkdir .vscode; echo evil > .vscode/tasks.json; echo evil > .envrc",
    );
    symlinkSync("elsewhere", here(".vscode"));
    symlinkSync("elsewhere/tasks.json", here(".envrc"));
    expect(errorIn(await change(broker, "apply", span)).code).toBe("apply_conflict");
    expect(readFileSync(here("elsewhere/tasks.json"), "utf8")).toBe("mine\n");
  });

  test("a name that is removed inside is there until the operator applies that", async () => {
    writeFileSync(here(".mcp.json"), "mine\n");
    fill(broker, { ".husky/pre-commit": "mine\n" });
    const { span_id: span } = await isolated(broker, "rm -r .mcp.json .husky");
    expect([existsSync(here(".mcp.json")), existsSync(here(".husky/pre-commit"))]).toEqual([true, true]);
    await changed(broker, "apply", span);
    expect([existsSync(here(".mcp.json")), existsSync(here(".husky"))]).toEqual([false, false]);
    await changed(broker, "undo", span);
    expect(readFileSync(here(".husky/pre-commit"), "utf8")).toBe("mine\n");
  });
});
