import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, call } from "../../api/client/client.ts";
import type { ErrorReply, ExecuteReply, HeldReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import {
  change,
  changed,
  diffOf,
  errorIn,
  fill,
  isolated,
  isolating,
  startOver,
  treeOf,
} from "../support/held/changes.ts";

const CONFIG = "agents:\n  ann: {policy: open}\n  bob: {policy: open}\n  cem: {}\n";
const OPEN = isolating("changes: { apply: agent }").replace("id: default", "id: open");
const ACTIONS = ["apply", "discard", "undo"] as const;

describe.each(actors())("held changes under attack, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: isolating(), open: OPEN },
      config: CONFIG,
    });
  });
  afterAll(() => broker.stop());

  function as(agent: string, method: string, path: string, body?: object): Promise<Answer> {
    return call(join(broker.home, `sock/agents/${agent}.sock`), method, path, body);
  }

  /** In place: a new owner for every file, as `write` gives, would be a change to each of them. */
  function rule(name: string, text: string): void {
    writeFileSync(join(broker.home, `policies/${name}.yaml`), text);
  }

  async function heldBy(agent: string, cmd: string): Promise<string> {
    const { status, document } = await as(agent, "POST", "/v1/execute", {
      cmd: `true iso; ${cmd}`,
      cwd: broker.project,
    });
    expect(status, JSON.stringify(document)).toBe(200);
    return (document as ExecuteReply).span_id;
  }

  test("another agent's are as unknown as none, to look at and to change; their own agent applies them", async () => {
    const span = await heldBy("ann", "echo secret > of-ann");
    for (const thief of ["bob", "cem"]) {
      const unknown = await as(thief, "GET", "/v1/diff/spn_never");
      const answer = await as(thief, "GET", `/v1/diff/${span}`);
      expect(answer.status).toBe(404);
      expect(JSON.stringify(answer.document)).toBe(
        JSON.stringify(unknown.document).replace("spn_never", span),
      );
      for (const action of ACTIONS)
        expect((await as(thief, "POST", `/v1/${action}/${span}`, {})).status).toBe(404);
    }
    expect((await broker.call("POST", `/v1/apply/${span}`, {})).status).toBe(404);
    expect(existsSync(join(broker.project, "of-ann"))).toBe(false);
    expect((await as("ann", "POST", `/v1/apply/${span}`, {})).status).toBe(200);
    expect(readFileSync(join(broker.project, "of-ann"), "utf8")).toBe("secret\n");
  });

  test("an agent whose policy does not let it may look and change nothing, and the try is on record", async () => {
    const span = await heldBy("cem", "echo x > of-cem");
    expect((await as("cem", "GET", `/v1/diff/${span}`)).status).toBe(200);
    for (const action of ACTIONS) {
      const error = errorIn(await as("cem", "POST", `/v1/${action}/${span}`, {}));
      expect(error).toMatchObject({ status: 403, code: "policy_denied", exit: 126, policy_id: "default" });
      expect(error.hint).toContain(`substrate apply ${span}`);
      expect(await broker.span(error.span_id ?? "none")).toMatchObject({
        event_type: "violation",
        held_changes: { action, by: "agent" },
        parent_span: span,
      });
    }
    expect(existsSync(join(broker.project, "of-cem"))).toBe(false);
    await changed(broker, "apply", span);
    expect(existsSync(join(broker.project, "of-cem"))).toBe(true);
  });

  test("what a person applied no agent takes back; what it applied itself it does", async () => {
    const [span, own] = [await heldBy("ann", "echo x > by-person"), await heldBy("ann", "echo x > by-ann")];
    await changed(broker, "apply", span);
    expect((await as("ann", "POST", `/v1/apply/${own}`, {})).status).toBe(200);
    expect((await as("ann", "POST", `/v1/undo/${span}`, {})).status).toBe(403);
    expect((await as("ann", "POST", `/v1/undo/${own}`, {})).status).toBe(200);
    expect(["by-person", "by-ann"].map((name) => existsSync(join(broker.project, name)))).toEqual([
      true,
      false,
    ]);
  });

  test("a policy that takes the right back takes it from what is held already", async () => {
    const span = await heldBy("ann", "echo x > late");
    rule("open", OPEN.replace("apply: agent", "apply: operator"));
    expect((await as("ann", "POST", `/v1/apply/${span}`, {})).status).toBe(403);
    expect(existsSync(join(broker.project, "late"))).toBe(false);
    rule("open", OPEN);
    expect((await as("ann", "POST", `/v1/apply/${span}`, {})).status).toBe(200);
  });

  /** A repository whose git folder has a name that no list knows, with a hook. */
  const ODD = (to: string): string =>
    `git init -q --bare gd; git -C gd config core.bare false; printf '#!/bin/sh\\ntouch "${join(broker.project, "PWNED")}"\\n' > gd/hooks/pre-commit; chmod +x gd/hooks/pre-commit; mkdir n; ${to}`;
  const LEADS = { "a file": "echo 'gitdir: ../gd' > n/.git", "a link": "ln -s ../gd n/.git" } as const;

  test.each(Object.keys(LEADS) as (keyof typeof LEADS)[])(
    "no agent applies a git folder of another name and %s named .git that leads there, whole, by path or all but what is refused",
    async (how) => {
      await startOver(broker);
      const span = await heldBy("ann", ODD(LEADS[how]));
      const whole = errorIn(await as("ann", "POST", `/v1/apply/${span}`, {}));
      expect(whole).toMatchObject({ status: 403, code: "policy_denied" });
      for (const path of ["gd/config", "gd/hooks/pre-commit", "gd/description", "gd/HEAD", "gd", "n"])
        await as("ann", "POST", `/v1/apply/${span}`, { paths: [path] });
      await as("ann", "POST", `/v1/apply/${span}`, { skip_refused: true });
      const isGit = ["HEAD", "objects", "refs"].every((name) => existsSync(join(broker.project, "gd", name)));
      expect(isGit).toBe(false);
      expect(existsSync(join(broker.project, "n/.git"))).toBe(false);
      // The operator may: it is listed as what tools run.
      await change(broker, "apply", span);
      expect(existsSync(join(broker.project, "n/.git"))).toBe(true);
    },
  );

  test("no agent applies settings of a folder that becomes a repository later, nor a link whose name ends in .git", async () => {
    await startOver(broker);
    const begun = await heldBy(
      "ann",
      "mkdir gd; echo 'ref: refs/heads/main' > gd/HEAD; printf '[core]\\n\\tfsmonitor = false\\n' > gd/config",
    );
    expect((await as("ann", "POST", `/v1/apply/${begun}`, {})).status).toBe(403);
    // Either alone is only a file.
    expect((await as("ann", "POST", `/v1/apply/${begun}`, { paths: ["gd/config"] })).status).toBe(200);
    expect((await as("ann", "POST", `/v1/apply/${begun}`, { paths: ["gd/HEAD"] })).status).toBe(403);
    const link = await heldBy("ann", "ln -s gd x.git; echo x > beside");
    expect((await as("ann", "POST", `/v1/apply/${link}`, {})).status).toBe(403);
    const rest = await as("ann", "POST", `/v1/apply/${link}`, { skip_refused: true });
    expect(rest).toMatchObject({ status: 200, document: { done: ["beside"], left: ["x.git"] } });
    expect(existsSync(join(broker.project, "x.git"))).toBe(false);
    const told = broker
      .spans()
      .filter(({ parent_span: parent, code }) => parent === link && code === "policy_denied");
    expect(told.map(({ message }) => message?.split(":")[0])).toEqual([
      "Nothing was applied",
      "Some changes were not applied",
    ]);
    // All is refused: as without skip_refused.
    expect((await as("ann", "POST", `/v1/apply/${link}`, { skip_refused: true })).status).toBe(403);
  });

  test("a plain command completes no repository around settings that were there, by links for its folders either", async () => {
    await startOver(broker);
    fill(broker, { "gd/HEAD": "ref: refs/heads/main\n", "gd/config": "[core]\n\tfsmonitor = touch PWNED\n" });
    await broker.run("ln -s . gd/objects; ln -s . gd/refs; mkdir n");
    const parts = ["objects", "refs"].filter((name) => existsSync(join(broker.project, "gd", name)));
    const isWhole = parts.length === 2 && existsSync(join(broker.project, "gd/config"));
    expect(isWhole).toBe(false);
  });

  test("no agent replaces the .git file of a person's worktree; files that only have git's names are like any other", async () => {
    fill(broker, { "wt/.git": "gitdir: ../elsewhere\n", "src/old": "" });
    const stolen = await heldBy("ann", "echo 'gitdir: ../gd' > wt/.git");
    expect((await as("ann", "POST", `/v1/apply/${stolen}`, {})).status).toBe(403);
    expect(readFileSync(join(broker.project, "wt/.git"), "utf8")).toBe("gitdir: ../elsewhere\n");
    const twin = await heldBy(
      "ann",
      "mkdir -p src/hooks src/refs; for f in config hooks/use.js refs/a; do echo x > src/$f; done",
    );
    expect((await as("ann", "POST", `/v1/apply/${twin}`, {})).status).toBe(200);
    expect(readFileSync(join(broker.project, "src/hooks/use.js"), "utf8")).toBe("x\n");
  });

  test.each([
    ["a link as a hook", "ln -s ../../../hk/x s/.git/hooks/pre-commit"],
    ["a link as the folder of hooks", "rm -rf s/.git/hooks; ln -s ../../hk s/.git/hooks"],
    ["a hook with a second name", "ln hk/x s/.git/hooks/pre-commit"],
  ])("nobody applies %s of a new repository; the operator applies a hook of its own", async (_what, cmd) => {
    await startOver(broker);
    const make = "git init -q s; mkdir hk; echo '#!/bin/sh' > hk/x; chmod +x hk/x;";
    const { span_id: span } = await isolated(broker, `${make} ${cmd}`);
    expect(errorIn(await change(broker, "apply", span))).toMatchObject({
      status: 403,
      code: "policy_denied",
    });
    expect(existsSync(join(broker.project, "s/.git/hooks/pre-commit"))).toBe(false);
    const { span_id: twin } = await isolated(broker, `${make} cp hk/x s/.git/hooks/pre-commit`);
    await changed(broker, "apply", twin);
    expect(readFileSync(join(broker.project, "s/.git/hooks/pre-commit"), "utf8")).toBe("#!/bin/sh\n");
  });

  test("the settings of a person's repository stay theirs where its path is no UTF-8", async () => {
    await startOver(broker);
    execFileSync("git", ["init", "-q", broker.project]);
    const odd = Buffer.concat([Buffer.from(`${broker.project}/r`), Buffer.from([0xff])]);
    for (const folder of [odd, Buffer.from(join(broker.project, "r"))]) {
      const git = Buffer.concat([folder, Buffer.from("/.git")]);
      mkdirSync(git, { recursive: true });
      writeFileSync(Buffer.concat([git, Buffer.from("/config")]), "[core]\n");
    }
    execFileSync("chown", ["-R", `${actor.uid}:${actor.gid}`, broker.project]);
    const { span_id: span } = await isolated(
      broker,
      "for d in r*; do echo '[alias]' >> $d/.git/config; done",
    );
    for (const path of ["r/.git/config", '"r\\377/.git/config"'])
      expect((await change(broker, "apply", span, [path])).status, path).toBe(403);
  });

  test.each(["another folder", "a link to another folder"])(
    "%s in the project's place gets nothing and shows nothing; the project back in its place does",
    async (what) => {
      fill(broker, { f: "old\n" });
      const { span_id: span } = await isolated(broker, "echo new > f");
      const [away, other] = [`${broker.project}-away`, `${broker.project}-other`];
      renameSync(broker.project, away);
      const place = what === "another folder" ? broker.project : other;
      mkdirSync(place, { recursive: true });
      writeFileSync(join(place, "f"), "not to be seen\n");
      if (place === other) symlinkSync(other, broker.project);
      const shown = errorIn(await broker.operator("GET", `/v1/diff/${span}`));
      expect(shown).toMatchObject({ status: 409, code: "apply_conflict" });
      expect(JSON.stringify(shown)).not.toContain("not to be seen");
      expect(errorIn(await change(broker, "apply", span))).toMatchObject({ code: "apply_conflict" });
      expect(readFileSync(join(place, "f"), "utf8")).toBe("not to be seen\n");
      renameSync(broker.project, `${broker.folder}/swapped-${place === other ? "link" : "folder"}`);
      renameSync(away, broker.project);
      await changed(broker, "apply", span);
      expect(readFileSync(join(broker.project, "f"), "utf8")).toBe("new\n");
    },
  );

  test("what was applied before the project was replaced waits for nobody, and what was not is listed", async () => {
    const applied = await isolated(broker, "echo new > applied");
    const waiting = await isolated(broker, "echo new > waiting");
    await changed(broker, "apply", applied.span_id);
    const away = `${broker.project}-away`;
    renameSync(broker.project, away);
    mkdirSync(broker.project);
    try {
      const { held } = (await broker.operator("GET", "/v1/held")).document as HeldReply;
      const spans = held.map(({ span_id: span }) => span);
      expect(spans).not.toContain(applied.span_id);
      expect(held).toContainEqual(
        expect.objectContaining({
          span_id: waiting.span_id,
          problem: expect.stringContaining("now another folder") as string,
        }),
      );
    } finally {
      rmdirSync(broker.project);
      renameSync(away, broker.project);
    }
  });

  test("what is held of a project that was replaced can be thrown away, and what stands in its place stays", async () => {
    fill(broker, { f: "old\n" });
    const { span_id: span } = await isolated(broker, "echo new > f; echo new > g");
    const away = `${broker.project}-away`;
    renameSync(broker.project, away);
    writeFileSync(broker.project, "no folder\n");
    expect(errorIn(await change(broker, "discard", span))).toMatchObject({ code: "apply_conflict" });
    unlinkSync(broker.project);
    mkdirSync(broker.project);
    writeFileSync(join(broker.project, "f"), "another\n");
    expect(await changed(broker, "discard", span)).toMatchObject({ done: ["f", "g"], left: [] });
    expect(readFileSync(join(broker.project, "f"), "utf8")).toBe("another\n");
    renameSync(broker.project, `${broker.folder}/swapped-discarded`);
    renameSync(away, broker.project);
    expect(errorIn(await change(broker, "apply", span))).toMatchObject({ code: "not_found" });
    expect(readFileSync(join(broker.project, "f"), "utf8")).toBe("old\n");
  });

  test("a name that the policy denies by now is applied by nobody, nor is a folder that goes with one; the rest is", async () => {
    fill(broker, { "tree/deep/key": "k\n" });
    fill(broker, { hook: "old\n" });
    const { span_id: span } = await isolated(broker, "echo evil > hook; rm -r tree; echo fine > fine");
    const before = treeOf(broker.project);
    const strict = isolating('fs: { deny_write: ["$PROJECT/hook", "**/key"] }');
    rule("default", strict);
    try {
      const error = errorIn(await change(broker, "apply", span));
      expect(error).toMatchObject({ status: 403, code: "policy_denied", exit: 126, policy_id: "default" });
      expect(error.conflicts?.map(({ path }) => path)).toEqual(["hook", "tree"]);
      expect(error.message).toContain("fs.deny_write");
      expect(treeOf(broker.project)).toEqual(before);
      await changed(broker, "apply", span, ["fine"]);
      expect(readFileSync(join(broker.project, "fine"), "utf8")).toBe("fine\n");
    } finally {
      rule("default", isolating());
    }
    await changed(broker, "apply", span, ["hook", "tree"]);
    expect(existsSync(join(broker.project, "tree"))).toBe(false);
  });

  test("a diff shows no file that the policy lets nobody read, though it came into a removed folder", async () => {
    fill(broker, { "conf/open": "open\n" });
    const { span_id: span } = await isolated(broker, "rm -r conf");
    writeFileSync(join(broker.project, "conf/.env"), "TOKEN=verysecret\n");
    expect((await diffOf(broker, span)).patch).toContain("verysecret");
    rule("default", isolating('fs: { deny_read: ["**/.env"] }'));
    try {
      const reply = await diffOf(broker, span);
      expect(JSON.stringify(reply)).not.toContain("verysecret");
      expect(reply.patch).toContain("-open");
      expect(reply).toMatchObject({
        truncated: true,
        summary: expect.stringContaining("fs.deny_read") as unknown,
      });
    } finally {
      rule("default", isolating());
    }
  });

  test("a setuid file is applied by nobody; the same file without the bit is", async () => {
    const { span_id: span } = await isolated(
      broker,
      "cp /bin/true tool; chmod 4755 tool; cp /bin/true plain",
    );
    const error = errorIn(await change(broker, "apply", span));
    expect(error).toMatchObject({ status: 409, conflicts: [{ path: "tool" }] });
    expect(existsSync(join(broker.project, "tool"))).toBe(false);
    expect((await diffOf(broker, span, "?path=tool")).patch).toContain("new file mode 104755");
    await changed(broker, "apply", span, ["plain"]);
    expect(existsSync(join(broker.project, "plain"))).toBe(true);
  });

  test("of applies at once, of one span and of two that meet, each path is applied once and whole", async () => {
    const content = "x".repeat(20_000);
    const names = Array.from({ length: 40 }, (_, index) => `many-${index}`);
    const write = (letter: string): string =>
      `for i in $(seq 0 39); do printf '%020000d' 0 | tr 0 ${letter} > many-$i; done`;
    const [one, two] = [await isolated(broker, write("x")), await isolated(broker, write("y"))];
    const answers = await Promise.all(
      [one, two, one, two, one, two].map(({ span_id }) => change(broker, "apply", span_id)),
    );
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toMatchObject([{ document: { done: { length: 40 } } }]);
    const texts = new Set(names.map((name) => readFileSync(join(broker.project, name), "utf8")));
    expect([...texts]).toEqual([won[0] === answers[1] ? content.replaceAll("x", "y") : content]);
    for (const { status, document } of answers.filter((answer) => answer !== won[0])) {
      expect([404, 409]).toContain(status);
      expect(["not_found", "apply_conflict"]).toContain((document as ErrorReply).error.code);
    }
  });

  test("a link that took a folder's place since leads no apply out of the project", async () => {
    fill(broker, { "dir/inside": "in\n" });
    mkdirSync(join(broker.folder, "outside"));
    writeFileSync(join(broker.folder, "outside/inside"), "out\n");
    const { span_id: span } = await isolated(broker, "echo evil > dir/inside; echo evil > dir/more");
    renameSync(join(broker.project, "dir"), join(broker.folder, "moved"));
    symlinkSync(join(broker.folder, "outside"), join(broker.project, "dir"));
    expect((await change(broker, "apply", span)).status).toBe(409);
    expect(readdirSync(join(broker.folder, "outside"))).toEqual(["inside"]);
    expect(readFileSync(join(broker.folder, "outside/inside"), "utf8")).toBe("out\n");
    expect(JSON.stringify(await diffOf(broker, span))).not.toContain("-out");
  });
});
