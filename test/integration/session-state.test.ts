/** A session's folder and variables, as an agent leaves them: events through the installed hook, the rewritten command in a shell. */
import { existsSync, mkdirSync, renameSync, rmdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExecuteReply, SpansReply } from "../../schemas/generated/types.ts";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { actors, type Ended, runAs } from "../support/users/users.ts";

const POLICY = `id: default
name: Sessions
mode: enforce
fs:
  deny_read: ["$PROJECT/secret"]
commands:
  isolated: ["touch isolated*"]
  ask: ["touch asked*"]
  denied: ["cat wide *", { pattern: "rm -rf sub", reason: "kept" }]
`;

const NARROW = `id: narrow
name: Narrow
mode: enforce
selectable: true
commands: { denied: ["cat deep/a", "cat sub/deep/a"] }
`;

describe.each(actors())("the commands of one session, as $kind", (actor) => {
  let broker: TestBroker;
  let front = "";
  beforeAll(async () => {
    front = join((await installationFor(actor)).root, ".build/substrate");
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY, narrow: NARROW },
      config: "agents:\n  claude-code: {}\n  codex: {}\n  opencode: {}\n",
    });
    for (const name of ["sub/deep/a", "secret/key", ".git/HEAD", "inner/.git/HEAD"])
      broker.write(join(broker.project, name), "a\n");
  });
  afterAll(() => broker.stop());

  let number = 0;
  const newKey = (): string => `session-${number++}`;

  /** One tool call of an agent: the hook first, then the shell. */
  async function tool(session: string, command: string, agent = "claude-code"): Promise<Ended> {
    const env = { SUBSTRATE_HOME: broker.home };
    const cwd = broker.project;
    const event = { session_id: session, cwd, hook_event_name: "PreToolUse", tool_name: "Bash" };
    const stdin = JSON.stringify({ ...event, tool_input: { command } });
    const answer = await runAs(actor, [front, "hook", agent], { cwd, env, stdin });
    const { hookSpecificOutput: output } = JSON.parse(answer.stdout) as {
      hookSpecificOutput: {
        permissionDecision: string;
        permissionDecisionReason?: string;
        updatedInput?: { command: string };
      };
    };
    if (output.updatedInput === undefined)
      return { ...answer, code: 126, stderr: output.permissionDecisionReason ?? "" };
    return await runAs(actor, ["sh", "-c", output.updatedInput.command], { cwd, env });
  }

  async function call(key: string, cmd: string, more: object = {}): Promise<ExecuteReply> {
    const body = { agent_id: "me", session_key: key, cwd: broker.project, cmd, ...more };
    return (await broker.call("POST", "/v1/execute", body)).document as ExecuteReply;
  }

  const text = ({ stdout_b64 }: ExecuteReply): string => Buffer.from(stdout_b64, "base64").toString();

  test.each(["codex", "opencode"])(
    "begin anew where the agent's own shell does, and share a session: %s",
    async (agent) => {
      const key = newKey();
      expect(await tool(key, "cd sub && export X=left", agent)).toMatchObject({ code: 0 });
      const next = await tool(key, 'echo "${PWD##*/} $X"', agent);
      expect(next.stdout).toBe(`${broker.project.split("/").pop() ?? ""} \n`);
      const [one, other] = broker.spans().filter(({ agent_id: id }) => id === agent);
      expect(one?.session_id).toBe(other?.session_id);
    },
  );

  test("a folder that the command removed is told as gone", async () => {
    const gone = await broker.run({ cmd: "mkdir q; cd q; rmdir ../q", session_key: "gone" });
    expect(gone.notices.map(({ message }) => message)).toEqual([
      `The folder in which the command ended is gone: the next one begins in '${broker.project}'`,
    ]);
  });

  test("keep the folder alone where the caller asks for that", async () => {
    const key = newKey();
    await call(key, "cd sub && export X=left", { session_state: "folder" });
    expect(text(await call(key, 'echo "${PWD##*/},$X"', { session_state: "folder" }))).toBe("sub,\n");
  });

  test("keep the folder and the exported variables of the one before, and share a session", async () => {
    const key = newKey();
    expect(await tool(key, "cd sub && export X='a b' Y=\"two\nlines\"; Z=3; exit 4")).toMatchObject({
      code: 4,
    });
    expect(await tool(key, 'pwd; echo "$X|$Y|$Z"')).toMatchObject({
      code: 0,
      stdout: `${broker.project}/sub\na b|two\nlines|\n`,
      stderr: "",
    });
    expect(await tool(newKey(), 'pwd; echo "$X"')).toMatchObject({ stdout: `${broker.project}\n\n` });
  });

  test("have spans of one session, apart from another key's, and no value in them", async () => {
    const [one, other] = [newKey(), newKey()];
    const first = await call(one, "export TOKEN=hunter2hunter2; cd sub");
    const second = await call(one, "true");
    const third = await call(other, "true");
    expect(second.session_id).toBe(first.session_id);
    expect(third.session_id).not.toBe(first.session_id);
    expect(third.world_id).toBe(first.world_id);
    const path = `/v1/spans?session_id=${first.session_id}`;
    const { spans } = (await broker.call("GET", path)).document as SpansReply;
    const commands = spans.filter(({ event_type }) => event_type === "command_complete");
    expect(commands.map(({ cwd, replayable }) => [cwd, replayable])).toEqual([
      [join(broker.project, "sub"), false],
      [broker.project, false],
    ]);
    expect(JSON.stringify(spans)).not.toContain("hunter2");
  });

  test.each(["sh", "bash"])("run in %s exactly as without a session", async (shell) => {
    const commands = [
      "exec 1>&- 2>&- 3>&-; cd sub",
      "cat <<E\n$(cd /; echo in)\nE",
      "cd sub # a comment",
      "echo 'unfinished",
      "cd sub; if",
      "; true",
      "set -eux; cd sub; false; echo no",
      "exec 8>lock; flock 8; echo locked; rm lock",
      "sleep 1 & cd sub; echo $LINENO $-",
      "cd sub; exec ls",
      "sh -c 'kill -SEGV $$'",
      "trap 'echo bye $?' EXIT; cd sub; (exit 3)",
    ];
    const key = newKey();
    for (const cmd of commands) {
      const without = await call(key, cmd, { shell, session_key: undefined });
      const got = await call(newKey(), cmd, { shell });
      const end = ({ exit, signal, stdout_b64, stderr_b64 }: ExecuteReply): unknown => [
        cmd,
        exit,
        signal,
        Buffer.from(stdout_b64, "base64").toString(),
        Buffer.from(stderr_b64, "base64").toString(),
      ];
      expect(end(got)).toEqual(end(without));
    }
  });

  test.each(["exit 3", "set -e; false; echo no", "trap 'true' EXIT; exit 1"])(
    "report a folder at the end by: %s",
    async (end) => {
      const key = newKey();
      await call(key, `cd sub; ${end}`, { shell: "bash" });
      expect(text(await call(key, "pwd"))).toBe(`${broker.project}/sub\n`);
    },
  );

  test("leave the state as it was when they are killed or out of time", async () => {
    const key = newKey();
    await call(key, "cd sub");
    await call(key, "cd deep; kill -9 $$");
    await call(key, "cd deep; sleep 60", { timeout_ms: 300, shell: "bash" });
    expect(text(await call(key, "pwd"))).toBe(`${broker.project}/sub\n`);
  });

  test("are judged where they run", async () => {
    const key = newKey();
    expect((await tool(key, "rm -rf sub")).stderr).toContain("rm -rf sub");
    await tool(key, "cd sub");
    mkdirSync(join(broker.project, "sub/isolated"), { recursive: true });
    expect(await tool(key, "cat ../secret/key")).toMatchObject({ code: 1, stdout: "" });
    expect(await tool(key, "touch isolated1; pwd")).toMatchObject({ stdout: `${broker.project}/sub\n` });
    expect(text(await call(key, "pwd", { cmd: undefined, argv: ["pwd"] }))).toContain(broker.project);
  });

  test("can be approved in a repository below the project, and not where a link took its place", async () => {
    const key = newKey();
    const inner = join(broker.project, "inner");
    const person = new Person(broker);
    await call(key, "cd inner");
    const body = { agent_id: "me", session_key: key, cwd: broker.project, cmd: "touch asked1" };
    await person.approve(body, "once");
    expect((await call(key, "touch asked1")).exit).toBe(0);
    expect(existsSync(join(inner, "asked1"))).toBe(true);
    await person.approve(body, "session");
    renameSync(inner, `${inner}-2`);
    symlinkSync("sub", inner);
    expect((await broker.call("POST", "/v1/execute", body)).status).toBe(403);
    expect(existsSync(join(broker.project, "sub/asked1"))).toBe(false);
  });

  test("begin in the folder of the call once it is another", async () => {
    const key = newKey();
    await call(key, "cd sub");
    const cwd = join(broker.project, "sub/deep");
    expect(text(await call(key, "pwd", { cwd }))).toBe(`${cwd}\n`);
    expect(text(await call(key, "pwd"))).toBe(`${broker.project}\n`);
  });

  const forged = (folder: string): string =>
    `f=$(echo /run/.substrate-*); trap '' EXIT; printf 'substrate-state\\0%s\\0end\\0' '${folder}' >"$f"; kill -0 $$; exec true`;

  test.each([
    ["a folder outside the project", "/etc"],
    ["a folder above it by name", "PROJECT/../.."],
    ["a denied folder", "PROJECT/secret"],
    ["a link out of the project", "PROJECT/out"],
    ["a missing folder", "PROJECT/none"],
  ])("cannot forge %s", async (_what, folder) => {
    const key = newKey();
    rmSync(join(broker.project, "out"), { force: true });
    symlinkSync("/etc", join(broker.project, "out"));
    await call(key, forged(folder.replace("PROJECT", broker.project)));
    const reply = await call(key, "pwd");
    expect([text(reply), reply.exit]).toEqual([`${broker.project}\n`, 0]);
  });

  test.each(["sh", "bash"])(
    "are read by their %s alone: another command cannot add to what it runs",
    async (shell) => {
      const key = newKey();
      const watch =
        "while :; do for f in /run/.substrate-*; do [ -e $f ] && echo 'echo ADDED' >> $f; done 2> /dev/null; done";
      const agent = { agent_id: `watched-${shell}` };
      await call(key, `timeout 20 sh -c '${watch.replaceAll("'", `'"'"'`)}' & :`, {
        ...agent,
        background: "keep",
      });
      for (let round = 0; round < 15; round++) {
        const reply = await call(
          key,
          "echo one && ls /proc/self/fd | tail -n 1; [ -e /proc/$$/fd/7 ] || echo none",
          { ...agent, shell },
        );
        expect(text(reply)).toBe("one\n3\nnone\n");
      }
      await call(key, "pkill -f substrate-[*]; :", agent);
    },
  );

  test("that are isolated leave their folder, and no variable for a plain command to run", async () => {
    const key = newKey();
    broker.write(join(broker.project, "other"), "b\n");
    await call(key, "export KEPT=1");
    const report = `printf 'substrate-state\\0%s\\0GIT_EXTERNAL_DIFF=touch escaped;:\\0KEPT=2\\0end\\0' "$PWD"`;
    const script = `f=$(echo /run/.substrate-*); ${report} > "$f"; chmod 400 "$f"`;
    const isolated = await call(key, `touch isolated2; cd sub; (${script})`);
    const diff = await call(key, 'git diff --no-index deep/a ../other; pwd; echo "$KEPT"');
    expect(diff.decision.verdict).toBe("allow");
    expect(text(diff)).toContain(`${broker.project}/sub\n1\n`);
    expect(existsSync(join(broker.project, "sub/escaped"))).toBe(false);
    expect(isolated.decision.verdict).toBe("isolate");
    expect(isolated.notices.map(({ kind }) => kind)).toContain("session");
    // The twin: what a plain command exports runs in the next one, which could have said it as well.
    await call(key, "export GIT_EXTERNAL_DIFF='touch own;:'");
    await call(key, "git diff --no-index deep/a ../other");
    expect(existsSync(join(broker.project, "sub/own"))).toBe(true);
  });

  test("that are isolated leave the folder that their text names, and none that a program reported", async () => {
    const key = newKey();
    const isolated = await call(
      key,
      `touch isolated3; cd sub && cd ./deep; ${forged(`${broker.project}/sub/deep`)}`,
    );
    expect(isolated.decision.verdict).toBe("isolate");
    expect(text(await call(key, "pwd"))).toBe(`${broker.project}/sub/deep\n`);
    const other = await call(key, `touch isolated4; cd ..; ${forged(broker.project)}`);
    expect(other.notices.map(({ message }) => message).join()).toContain("its text does not name the folder");
    expect(text(await call(key, "pwd"))).toBe(`${broker.project}/sub/deep\n`);
    await call(key, "cd ..; touch isolated5; D=deep; cd link || cd 'deep'; pwd");
    expect(text(await call(key, "pwd"))).toBe(`${broker.project}/sub/deep\n`);
  });

  test("can go to a folder of the project through a link, and to one that they write into the report", async () => {
    const key = newKey();
    await call(key, "ln -sfn sub link; cd link");
    expect(text(await call(key, "pwd"))).toBe(`${broker.project}/sub\n`);
    await call(key, forged(`${broker.project}/sub/deep`));
    expect(text(await call(key, "pwd"))).toBe(`${broker.project}/sub/deep\n`);
  });

  test("begin in the call's folder when theirs is gone, and say so", async () => {
    const key = newKey();
    await call(key, "mkdir gone; cd gone");
    rmdirSync(join(broker.project, "gone"));
    const reply = await call(key, "pwd");
    expect(text(reply)).toBe(`${broker.project}\n`);
    expect(reply.notices).toMatchObject([{ kind: "session", message: expect.stringContaining("gone") }]);
  });

  test("are narrowed by the profile of the folder where they begin, and by that of the call's folder", async () => {
    const profile = join(broker.project, "sub/.substrate-profile");
    broker.write(profile, "narrow\n");
    const [into, outOf] = [newKey(), newKey()];
    await call(into, "cd sub");
    expect(await call(into, "cat deep/a")).toHaveProperty("error.code", "policy_denied");
    const cwd = join(broker.project, "sub");
    await call(outOf, "cd ..", { cwd });
    expect(await call(outOf, "cat sub/deep/a", { cwd })).toHaveProperty("error.code", "policy_denied");
    expect(text(await call(newKey(), "cat sub/deep/a"))).toBe("a\n");
    broker.write(profile, "missing\n");
    const reply = await call(into, "cat sub/deep/a");
    expect(text(reply)).toBe("a\n");
    expect(reply.notices).toMatchObject([
      { kind: "session", message: expect.stringContaining("Unknown policy 'missing'") },
    ]);
    rmSync(profile);
  });

  test("lose nothing to another agent's flood, and say so where their own agent has too many", async () => {
    const [key, ...flood] = Array.from({ length: 300 }, newKey);
    const [first = ""] = flood;
    await call(key ?? "", "cd sub; export A=1");
    for (const each of flood) await call(each, "cd sub; export A=1", { agent_id: "flood" });
    const kept = await call(key ?? "", 'pwd; echo "$A"');
    expect([text(kept), kept.notices]).toEqual([`${broker.project}/sub\n1\n`, []]);
    const lost = await call(first, 'pwd; echo "$A"', { agent_id: "flood" });
    expect(text(lost)).toBe(`${broker.project}/sub\n\n`);
    expect(lost.notices).toMatchObject([
      { kind: "session", message: expect.stringContaining("set them again") },
    ]);
  }, 60_000);

  test("keep no more variables than fit, and none that the broker sets", async () => {
    const key = newKey();
    await call(key, "cd sub; export A=1 SUBSTRATE_AGENT_ID=other HOME=/x SHELL=/x");
    const much = await call(key, "export BIG=$(head -c 10000000 /dev/zero | tr '\\0' x); cd deep", {
      shell: "bash",
    });
    expect(much.notices).toMatchObject([{ kind: "session" }]);
    const reply = await call(key, 'pwd; echo "$A ${#BIG} $SUBSTRATE_AGENT_ID $HOME"');
    expect(text(reply).split("\n").slice(0, 2)).toEqual([
      `${broker.project}/sub/deep`,
      expect.stringMatching(/^1 0 me \/(?!x)/),
    ]);
  });

  test("have a span in the session for each denied tool, and none for an allowed one", async () => {
    const key = newKey();
    const env = { SUBSTRATE_HOME: broker.home };
    const cwd = broker.project;
    for (const [name, input] of [
      ["Read", { file_path: "secret/key" }],
      ["Read", { file_path: "sub/deep/a" }],
      ["Bash", { command: "cat wide PASSWORD=hunter3hunter3" }],
    ] as const) {
      const event = {
        session_id: key,
        cwd,
        hook_event_name: "PreToolUse",
        tool_name: name,
        tool_input: input,
      };
      await runAs(actor, [front, "hook", "claude-code"], { cwd, env, stdin: JSON.stringify(event) });
    }
    const denied = broker
      .spans()
      .filter(({ code, agent_id: agent }) => code === "policy_denied" && agent === "claude-code");
    const [file, command] = denied.slice(-2);
    expect(file).toMatchObject({
      event_type: "violation",
      violation: { kind: "file", subject: "read secret/key" },
      decision: { verdict: "deny", rule: { list: "fs.deny_read" } },
    });
    expect(command).toMatchObject({
      event_type: "violation",
      decision: { rule: { list: "commands.denied" } },
    });
    expect(JSON.stringify(command)).not.toContain("hunter3");
    const { session_id } = JSON.parse(
      (await broker.cli(["exec", "--session", key, "--json", "--agent", "claude-code", "--", "true"])).stdout,
    ) as ExecuteReply;
    expect([file?.session_id, command?.session_id]).toEqual([session_id, session_id]);
    expect(JSON.stringify(denied)).not.toContain("sub/deep/a");
  });

  test("may run at once: each is whole, and the last to end decides", async () => {
    const key = newKey();
    const [slow] = await Promise.all([
      call(key, "cd sub; export A=slow; sleep 1; pwd"),
      call(key, "cd sub/deep; export A=fast B=fast"),
    ]);
    expect(text(slow)).toBe(`${broker.project}/sub\n`);
    expect(text(await call(key, "pwd; echo $A$B"))).toBe(`${broker.project}/sub\nslow\n`);
  });
});
