import { existsSync, readFileSync, renameSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";

const POLICY = `id: default
name: Asks
mode: enforce
fs:
  write: ["$PROJECT/**"]
commands:
  ask: ["touch *", "./deploy.sh *", "tool *", "sh deploy.sh", "sh link.sh", "echo *"]
  denied: ["touch never*"]
  opaque: ask
`;
const POLICIES = {
  default: POLICY,
  other: "id: other\nname: Other\nselectable: true\nmode: enforce\n",
};

describe.each(actors())("what an answer is bound to, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: POLICIES });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  const inProject = (name: string): string => join(broker.project, name);

  test("an answer for always holds for the folder, not for another one that is put in its place", async () => {
    const [cwd, aside] = [join(broker.folder, "swapped"), join(broker.folder, "aside")];
    broker.write(join(cwd, ".substrate-profile"), "other\n");
    const body = { cmd: "touch by-answer", cwd, agent_id: "human" };
    const policy = join(broker.home, "policies/other.yaml");
    const was = readFileSync(policy, "utf8");
    broker.write(policy, `${was}commands:\n  ask: ["touch *"]\n`);
    const asked = async (): Promise<string | undefined> =>
      ((await broker.operator("POST", "/v1/execute", body)).document as { error?: { code: string } }).error
        ?.code;
    expect(await asked()).toBe("approval_required");
    const [question] = (await person.list()).approvals.filter(({ cwd: folder }) => folder === cwd);
    await person.answer(question?.approval_id, "always");
    expect(await asked()).toBeUndefined();
    renameSync(cwd, aside);
    broker.write(join(cwd, ".substrate-profile"), "other\n");
    expect(await asked()).toBe("approval_required");
    expect(existsSync(join(cwd, "by-answer"))).toBe(false);
    // The folder itself, back in its place, is the one that was meant; and an entry of an earlier version names none.
    renameSync(cwd, `${aside}-2`);
    renameSync(aside, cwd);
    expect(await asked()).toBeUndefined();
    renameSync(cwd, aside);
    renameSync(`${aside}-2`, cwd);
    const file = join(broker.home, "approvals.yaml");
    broker.write(file, readFileSync(file, "utf8").replace(/^ *project_folder: .*\n/m, ""));
    expect(await asked()).toBeUndefined();
    broker.write(policy, was);
  });

  test("an answer for always in a folder below the project holds for that folder alone, also when another has its path", async () => {
    const [cwd, aside] = [inProject("below"), inProject("below-aside")];
    broker.write(join(cwd, "is"), "the one that was meant");
    broker.write(join(aside, "is"), "another");
    const body = { cmd: "touch by-answer", cwd };
    await person.approve(body, "always");
    expect(await person.told(body)).toMatchObject({ status: 200 });
    await broker.run("mv below was && mv below-aside below");
    expect(await person.told(body)).toMatchObject({ status: 403, code: "approval_required" });
    await broker.run("mv below below-aside && ln -s below-aside below");
    expect(await person.told(body)).toMatchObject({ status: 403, code: "approval_required" });
    expect(existsSync(join(aside, "by-answer"))).toBe(false);
    await broker.run("rm below && mv was below");
    expect(await person.told(body)).toMatchObject({ status: 200 });
  });

  test("an answer holds for exactly what was asked, and for nothing beside it", async () => {
    broker.write(inProject("sub/kept"), "");
    const body = { cmd: "touch bound", env: { A: "1" }, stdin_b64: "eA==" };
    await person.approve(body, "session");
    const path = (await broker.run({ argv: ["sh", "-c", "printf %s $PATH"] })).stdout;
    const others: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
      "other words": { ...body, cmd: "touch bound-2" },
      "more white space": { ...body, cmd: "touch  bound" },
      "the same words without a shell": { env: body.env, stdin_b64: "eA==", argv: ["touch", "bound"] },
      "another shell": { ...body, shell: "bash" },
      "another folder": { ...body, cwd: inProject("sub") },
      "another value": { ...body, env: { A: "2" } },
      "one variable more": { ...body, env: { A: "1", B: "" } },
      "one variable less": { cmd: body.cmd, stdin_b64: "eA==" },
      "another PATH": { ...body, env: { A: "1", PATH: `${broker.project}/sub:${path}` } },
      "the usual PATH, but said": { ...body, env: { A: "1", PATH: path } },
      "other input": { ...body, stdin_b64: "eQ==" },
      "no input": { cmd: body.cmd, env: body.env },
      "another agent": { ...body, agent_id: "somebody" },
      "a narrowing profile": { ...body, profile: "other" },
      "processes that stay": { ...body, background: "keep" },
      "files that others may write": { ...body, umask: "0000" },
    };
    for (const [what, other] of Object.entries(others))
      expect(await person.told(other), what).toMatchObject({ status: 403, code: "approval_required" });
    expect(existsSync(inProject("bound"))).toBe(false);
    const notes = (await person.list()).approvals.flatMap((question) => question.notes);
    expect(notes).toContain("Processes that the command leaves go on after it");
    expect(notes).toContain(
      "Other users of this machine can write files that the command makes (umask 0000)",
    );
    expect(await person.told({ ...body, umask: "022" })).toMatchObject({ status: 200 });
    expect(await person.told({ ...body, timeout_ms: 5000 })).toMatchObject({ status: 200 });
    expect(existsSync(inProject("bound"))).toBe(true);
  });

  test.each(["session", "always"] as const)(
    "a script that was replaced after its approval for %s asks again",
    async (how) => {
      const names = ["./deploy.sh now", "sh deploy.sh", "sh link.sh"];
      const script = (word: string): void => {
        broker.write(inProject("deploy.sh"), `#!/bin/sh\n: touch ${how}\nprintf ${word}\n`);
      };
      script("good");
      await broker.run("chmod +x deploy.sh; ln -sf deploy.sh link.sh");
      for (const cmd of names) {
        script("good");
        await person.approve({ cmd }, how);
        expect(await person.told({ cmd })).toMatchObject({ status: 200, stdout: "good" });
        script("evil");
        expect(await person.told({ cmd }), cmd).toMatchObject({ code: "approval_required" });
        script("good");
        expect(await person.told({ cmd })).toMatchObject({ status: 200, stdout: "good" });
      }
      broker.write(inProject("evil.sh"), "printf evil");
      unlinkSync(inProject("link.sh"));
      symlinkSync("evil.sh", inProject("link.sh"));
      expect(await person.told({ cmd: "sh link.sh" })).toMatchObject({ code: "approval_required" });
      unlinkSync(inProject("link.sh"));
    },
  );

  test("an answer for the session is not one for another folder that took the project's place", async () => {
    const cwd = join(broker.folder, "replaced");
    broker.write(join(cwd, ".git/HEAD"), "ref: refs/heads/main\n");
    const body = { cmd: "touch placed", cwd };
    await person.approve(body, "session");
    expect(await person.told(body)).toMatchObject({ status: 200 });
    renameSync(cwd, `${cwd}-before`);
    broker.write(join(cwd, ".git/HEAD"), "ref: refs/heads/main\n");
    expect(await person.told(body)).toMatchObject({ code: "approval_required" });
    expect(existsSync(join(cwd, "placed"))).toBe(false);
    renameSync(cwd, `${cwd}-after`);
    renameSync(`${cwd}-before`, cwd);
    expect(await person.told(body)).toMatchObject({ status: 200 });
  });

  test("an answer to a question about a folder that was replaced meanwhile says so", async () => {
    const cwd = join(broker.folder, "exchanged");
    broker.write(join(cwd, ".git/HEAD"), "ref: refs/heads/main\n");
    const waiting = person.told({ cmd: "touch placed", cwd, approval_wait_ms: 20_000 });
    const { approval_id: id } = await person.waitedFor();
    renameSync(cwd, `${cwd}-before`);
    broker.write(join(cwd, ".git/HEAD"), "ref: refs/heads/main\n");
    const message = expect.stringContaining(`The folder '${cwd}' was replaced`);
    const answer = await broker.operator("POST", `/v1/approvals/${id}`, { decision: "once" });
    expect(answer).toMatchObject({ status: 409, document: { error: { code: "policy_changed", message } } });
    expect(await waiting).toMatchObject({ code: "policy_changed", message });
    expect(existsSync(join(cwd, "placed"))).toBe(false);
  });

  test("a program that steps before the approved one in PATH asks again", async () => {
    broker.write(inProject("late/tool"), "#!/bin/sh\nprintf good");
    broker.write(inProject("early/other"), "");
    await broker.run("chmod +x late/tool");
    const body = { cmd: "tool x", env: { PATH: `${inProject("early")}:${inProject("late")}:/usr/bin:/bin` } };
    await person.approve(body, "session");
    expect(await person.told(body)).toMatchObject({ status: 200, stdout: "good" });
    broker.write(inProject("early/tool"), "#!/bin/sh\nprintf evil");
    expect(await person.told(body)).toMatchObject({ code: "approval_required" });
    unlinkSync(inProject("early/tool"));
    expect(await person.told(body)).toMatchObject({ status: 200, stdout: "good" });
  });

  test("a script that is replaced while its question waits does not run by the answer", async () => {
    broker.write(inProject("deploy.sh"), "printf one > ran");
    const waiting = person.told({ cmd: "sh deploy.sh", approval_wait_ms: 20_000 });
    const { approval_id: first } = await person.waitedFor();
    broker.write(inProject("deploy.sh"), "printf two > ran");
    await person.answer(first, "once");
    const { approval_id: second } = await person.waitedFor();
    expect(second).not.toBe(first);
    expect(existsSync(inProject("ran"))).toBe(false);
    await person.answer(second, "once");
    expect(await waiting).toMatchObject({ status: 200 });
    expect(readFileSync(inProject("ran"), "utf8")).toBe("two");
  });

  test.each([
    ["a link to another", "ln -s other sub"],
    ["another", "mv other sub"],
    ["a new one of the same name", "mkdir sub"],
  ])("a folder that %s takes the place of, is not the one of the answer", async (_what, swap) => {
    const fresh = "rm -rf sub sub.old other; mkdir sub other";
    await broker.run(fresh);
    const body = { cmd: "touch here; id", cwd: inProject("sub") };
    const waiting = person.told({ ...body, approval_wait_ms: 20_000 });
    const { approval_id: first } = await person.waitedFor();
    await broker.run(`mv sub sub.old; ${swap}`);
    await person.answer(first, "once");
    expect(await waiting).toMatchObject({ status: 409, code: "policy_changed" });
    expect(["sub", "sub.old", "other"].some((name) => existsSync(inProject(`${name}/here`)))).toBe(false);
    await broker.run(fresh);
    await person.approve(body, "session");
    expect(await person.told(body)).toMatchObject({ status: 200 });
    await broker.run(`mv sub sub.old; ${swap}`);
    expect(await person.told(body)).toMatchObject({ code: "approval_required" });
  });

  test("a script behind a link is the one that the kernel finds, and what only its world can see is approved once", async () => {
    broker.write(inProject("near/there/kept"), "");
    broker.write(inProject("far/kept"), "");
    broker.write(inProject("near/run.sh"), "printf good");
    broker.write(inProject("run.sh"), "printf beside");
    symlinkSync("near/there", inProject("way"));
    const body = { cmd: "touch w; sh way/../run.sh" };
    await person.approve(body, "session");
    expect(await person.told(body)).toMatchObject({ status: 200, stdout: "good" });
    broker.write(inProject("run.sh"), "printf changed");
    expect(await person.told(body)).toMatchObject({ status: 200, stdout: "good" });
    broker.write(inProject("near/run.sh"), "printf evil");
    expect(await person.told(body)).toMatchObject({ code: "approval_required" });
    symlinkSync(`/tmp/world-${broker.folder.slice(-6)}/x.sh`, inProject("dead.sh"));
    symlinkSync(`/tmp/world-${broker.folder.slice(-6)}`, inProject("dead"));
    for (const cmd of ["touch w; sh dead.sh", "touch w; sh dead/x.sh", "touch w; ./dead.sh"]) {
      const { approval_id: id } = await person.told({ cmd });
      expect((await person.question(id)).offers, cmd).toEqual(["once", "deny"]);
    }
    const { approval_id: id } = await person.told({
      cmd: "touch w",
      env: { PATH: `${inProject("dead")}:/usr/bin` },
    });
    expect((await person.question(id)).offers).toEqual(["once", "deny"]);
  });

  test("what cannot be known before it runs, or seen from the host, is approved for one run only", async () => {
    const commands = [
      "$TOOL x",
      'eval "touch $y"',
      "PATH=.:$PATH touch z",
      "touch y; sh /tmp/made-inside.sh",
      // A question shows the beginning and the end.
      `touch ${"a".repeat(200)}; ${": ;".repeat(700)} touch unseen; ${": ;".repeat(700)} touch z`,
    ];
    for (const cmd of commands) {
      const { approval_id: id } = await person.told({ cmd });
      const { offers, notes } = await person.question(id);
      expect(offers, cmd).toEqual(["once", "deny"]);
      expect(notes[0]).toContain("can only be approved for one run");
      for (const more of ["session", "always"] as const)
        expect(await person.answer(id, more), cmd).toMatchObject({ status: 400, code: "invalid_request" });
    }
    const { approval_id: id } = await person.told({ cmd: "touch known" });
    expect((await person.question(id)).offers).toEqual(["once", "session", "always", "deny"]);
  });
});
