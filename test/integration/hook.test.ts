/** `substrate hook`: recorded events of coding agents, through both fronts, and the rewritten commands in real worlds. */
import { existsSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ApprovalsReply, HealthReply } from "../../schemas/generated/types.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { eventOf, HOOK_CASES, HOOK_POLICY, type HookCase, RAN_ALIKE } from "../support/front/hook-cases.ts";
import { needs } from "../support/run/needs.ts";
import { actors, type Ended, runAs } from "../support/users/users.ts";

type Answer = {
  readonly decision?: string;
  readonly reason?: string;
  readonly permission?: string;
  readonly permissionDecision?: string;
  readonly permissionDecisionReason?: string;
  readonly user_message?: string;
  readonly agent_message?: string;
  readonly updated_input?: { readonly command?: string };
  readonly hookSpecificOutput?: {
    readonly permissionDecision?: string;
    readonly permissionDecisionReason?: string;
    readonly updatedInput?: { readonly command?: string };
    readonly tool_input?: { readonly command?: string };
  };
};

const QUOTES = String.raw`printf '%s\n' "a'b \"c\" "'$HOME'`;

describe.each(actors())("the hook of both fronts, as $kind", (actor) => {
  let broker: TestBroker;
  let fronts: readonly (readonly string[])[] = [];
  beforeAll(async () => {
    const { root, node, launcher } = await installationFor(actor);
    fronts = [[join(root, ".build/substrate")], [node, launcher]];
    broker = await TestBroker.start(actor, {
      policies: { default: HOOK_POLICY },
      config: "agents:\n  claude-code: {}\n",
    });
    for (const name of [
      "src/main.ts",
      "secret/key",
      "locked",
      "my docs/a",
      "docs/a",
      "a*/x",
      "q[1]/x",
      "app/[id]/page.tsx",
    ])
      broker.write(join(broker.project, name), "a\n");
    symlinkSync("../../secret", join(broker.project, "app/[id]/linked"));
  });
  afterAll(() => broker.stop());

  function hook(front: readonly string[], words: readonly string[], stdin: string): Promise<Ended> {
    const env = { SUBSTRATE_HOME: broker.home };
    return runAs(actor, [...front, "hook", ...words], { cwd: broker.project, env, stdin });
  }

  async function answers(one: Omit<HookCase, "what" | "answer">): Promise<readonly [Ended, Ended]> {
    const stdin = JSON.stringify(eventOf(one, broker.project));
    const [native, node] = await Promise.all(
      fronts.map((front) => hook(front, [one.agent ?? "claude-code"], stdin)),
    );
    if (native === undefined || node === undefined) throw new Error("Expected two fronts");
    return [native, node];
  }

  /** The command in place of a tool's own. */
  async function rewritten(command: string, input: object = {}): Promise<string> {
    const [native] = await answers({ tool: "Bash", input: { ...input, command } });
    const text = parsed(native).hookSpecificOutput?.updatedInput?.command;
    if (text === undefined) throw new Error(`Expected a command, received ${native.stdout}${native.stderr}`);
    return text;
  }

  function run(command: string, shell = "sh"): Promise<Ended> {
    return runAs(actor, [shell, "-c", command], {
      cwd: broker.project,
      env: { SUBSTRATE_HOME: broker.home },
    });
  }

  async function waiting(): Promise<readonly string[]> {
    const { approvals } = (await broker.operator("GET", "/v1/approvals")).document as ApprovalsReply;
    return approvals.map(({ approval_id }) => approval_id);
  }

  test.each(HOOK_CASES)("answers $what with: $answer", async (one) => {
    const [native, node] = await answers(one);
    expect({ ...native, stdout: documentIn(native) }).toEqual({ ...node, stdout: documentIn(node) });
    const { says = "", answer, agent, from } = one;
    const isCursor = agent === "cursor" || from === "cursor";
    if (answer === "blocks" || answer === "passes") {
      const blocks = answer === "blocks";
      expect([native.code, native.stderr]).toEqual([blocks ? 2 : 0, expect.stringContaining(says)]);
      if (isCursor && !blocks) expect(native.stdout).toBe("{}\n");
      else if (agent !== "copilot" || !blocks) expect(native.stdout).toBe("");
      // Copilot shows the model nothing of standard error.
      else expect(parsed(native)).toMatchObject({ permissionDecision: "deny" });
      return;
    }
    const { decision, reason, hookSpecificOutput: output, ...flat } = parsed(native);
    const got = output?.permissionDecision ?? decision ?? flat.permission;
    expect([native.code, native.stderr, got]).toEqual([0, "", answer]);
    const input = output?.updatedInput ?? output?.tool_input ?? flat.updated_input;
    const why = output?.permissionDecisionReason ?? reason ?? flat.user_message;
    expect(answer === "deny" ? why : input?.command).toContain(says);
    if (isCursor) expect(flat.agent_message).toBe(flat.user_message);
    // Every other field stays, and a denial runs nothing.
    expect({ ...input, command: null }).toEqual(
      answer === "deny" ? { command: null } : { ...(one.input as object), command: null },
    );
  });

  test.each(RAN_ALIKE)("runs a command as it came: $what", async ({ command }) => {
    const [wanted, received] = await Promise.all([
      runAs(actor, ["bash", "-c", command], { cwd: broker.project }),
      run(await rewritten(command)),
    ]);
    expect([received.code, received.stdout]).toEqual([wanted.code, wanted.stdout]);
  });

  test.each(["bash", "sh", "fish", "zsh"] as const)(
    "quotes a command alike for every shell: %s",
    async (shell) => {
      if (shell === "fish" || shell === "zsh") needs(shell);
      const outside = join(broker.folder, `outside-${shell}`);
      const spoken = await run(await rewritten(String.raw`echo a\'; touch ${outside}; echo \'`), shell);
      expect([spoken.stdout, existsSync(outside)]).toEqual(["a'\n'\n", false]);
      for (const text of [
        String.raw`printf '%s\n' 'a\' "b\\" c\\ d\ e; : \\`,
        "printf '%s|' a\\\n b $'\\'c'",
      ]) {
        const wanted = await runAs(actor, ["bash", "-c", text], { cwd: broker.project });
        const received = await run(await rewritten(text), shell);
        expect([received.code, received.stdout]).toEqual([wanted.code, wanted.stdout]);
      }
    },
  );

  test("lets Cursor run a changed command, as it changed it for the same session", async () => {
    const [changed] = await answers({ agent: "cursor", tool: "Shell", input: { command: QUOTES } });
    const command = parsed(changed).updated_input?.command ?? "";
    const look = (text: string): Promise<readonly [Ended, Ended]> =>
      answers({ agent: "cursor", tool: "beforeShellExecution", input: { command: text } });
    for (const { code, stdout } of await look(command)) expect([code, stdout]).toEqual([0, "{}\n"]);
    for (const other of [
      `${command}; id`,
      `${command} '$(id)'`,
      command.replace("6f2c9a52", "other"),
      command.replace(" cursor ", " human "),
      command.slice(0, -1),
      `env ${command}`,
    ])
      for (const ended of await look(other)) expect(parsed(ended)).toMatchObject({ permission: "deny" });
    expect(await run(command)).toMatchObject({ code: 0, stdout: `a'b "c" $HOME\n` });
  });

  test("judges Cursor by its own policy where config.yaml names Cursor, whichever hook it runs", async () => {
    const listed = await TestBroker.start(actor, {
      policies: { default: HOOK_POLICY },
      config: "agents:\n  claude-code: {}\n  cursor: {}\n",
    });
    try {
      const event = eventOf({ agent: "cursor", tool: "Shell", input: { command: "true" } }, listed.project);
      for (const front of fronts)
        for (const name of ["cursor", "claude-code"]) {
          const ended = await runAs(actor, [...front, "hook", name], {
            cwd: listed.project,
            env: { SUBSTRATE_HOME: listed.home },
            stdin: JSON.stringify(event),
          });
          expect(parsed(ended).updated_input?.command).toContain(" exec --agent cursor ");
        }
    } finally {
      await listed.stop();
    }
  });

  test("gives a denial of Copilot's own form where it blocks", async () => {
    for (const front of fronts) {
      const ended = await hook(front, ["copilot"], "{}{}");
      expect([ended.code, parsed(ended).permissionDecisionReason]).toEqual([
        2,
        expect.stringMatching(/not JSON.*\. Nothing ran$/),
      ]);
    }
  });

  test("runs the command of an agent that config.yaml does not name", async () => {
    const [native] = await answers({
      agent: "codex",
      tool: "Bash",
      input: { command: "echo $SUBSTRATE_AGENT_ID" },
    });
    const command = parsed(native).hookSpecificOutput?.updatedInput?.command ?? "";
    expect(await run(command)).toMatchObject({ code: 0, stdout: "codex\n" });
  });

  test("has an isolated command's changes held", async () => {
    expect(await run(await rewritten("touch isolated.txt && echo made"))).toMatchObject({
      code: 0,
      stdout: "made\n",
    });
    expect(existsSync(join(broker.project, "isolated.txt"))).toBe(false);
  });

  test("runs an isolated command in the background as the agent asked, without keeping its world", async () => {
    for (const asked of await answers({
      tool: "Bash",
      input: { command: "touch isolated.bg && echo made", run_in_background: true },
    })) {
      const command = parsed(asked).hookSpecificOutput?.updatedInput?.command ?? "";
      expect(command).not.toContain("--keep");
      expect(await run(command)).toMatchObject({ code: 0, stdout: "made\n" });
    }
  });

  test("keeps the processes that a background command leaves", async () => {
    const command = await rewritten("sleep 300 & echo begun", { run_in_background: true });
    expect(await run(command)).toMatchObject({ code: 0, stdout: "begun\n" });
    const { worlds } = (await broker.operator("GET", "/v1/health")).document as HealthReply;
    expect(worlds.flatMap(({ processes = [] }) => processes).map((one) => JSON.stringify(one))).toEqual([
      expect.stringContaining("sleep"),
    ]);
  });

  test("gives a command the agent's time limit", async () => {
    const began = performance.now();
    const ended = await run(await rewritten("echo begun; sleep 60", { timeout: 500 }));
    expect([ended.stdout, ended.code === 0, performance.now() - began < 20_000]).toEqual([
      "begun\n",
      false,
      true,
    ]);
  });

  test("leaves the question to the broker where Claude Code has nobody to ask", async () => {
    const event = eventOf({ tool: "Bash", input: { command: "make deploy" } }, broker.project);
    for (const front of fronts)
      for (const [entry, decision] of [
        ["cli", "ask"],
        ["sdk-cli", "allow"],
      ] as const) {
        const ended = await runAs(actor, [...front, "hook", "claude-code"], {
          cwd: broker.project,
          env: { SUBSTRATE_HOME: broker.home, CLAUDE_CODE_ENTRYPOINT: entry },
          stdin: JSON.stringify(event),
        });
        const output = parsed(ended).hookSpecificOutput;
        expect(output?.permissionDecision).toBe(decision);
        expect(output?.updatedInput?.command).toContain(" --wait -- ");
      }
  });

  test("has the broker hold a command until a person allows it", async () => {
    broker.write(join(broker.project, "Makefile"), "deploy:\n\t@echo deployed\n");
    const ended = run(await rewritten("make deploy"));
    await expect.poll(waiting, { timeout: 15_000 }).toHaveLength(1);
    const [id] = await waiting();
    await broker.operator("POST", `/v1/approvals/${id}`, { decision: "once" });
    expect(await ended).toMatchObject({ code: 0, stdout: "deployed\n" });
  });

  test.each(["session", "always"] as const)(
    "asks nobody about a command that a person approved before (%s)",
    async (decision) => {
      broker.write(join(broker.project, "Makefile"), "deploy:\n\t@echo deployed\n");
      const command = `make deploy # ${decision}`;
      const [asking] = await answers({ tool: "Bash", input: { command } });
      expect(parsed(asking).hookSpecificOutput?.permissionDecision).toBe("ask");
      const ended = run(await rewritten(command));
      await expect.poll(waiting, { timeout: 15_000 }).toHaveLength(1);
      const [id] = await waiting();
      expect(await broker.operator("POST", `/v1/approvals/${id}`, { decision })).toMatchObject({
        status: 200,
      });
      expect(await ended).toMatchObject({ code: 0, stdout: "deployed\n" });
      for (const one of await answers({ tool: "Bash", input: { command } })) {
        const output = parsed(one).hookSpecificOutput;
        expect(output?.permissionDecision).toBe("allow");
        expect(await run(output?.updatedInput?.command ?? "")).toMatchObject({
          code: 0,
          stdout: "deployed\n",
        });
      }
      // Another command asks again, and so does the same command with processes that it leaves running.
      for (const input of [{ command: `${command}s` }, { command, run_in_background: true }])
        for (const one of await answers({ tool: "Bash", input }))
          expect(parsed(one).hookSpecificOutput?.permissionDecision).toBe("ask");
    },
  );

  test.each([
    { what: "no agent", words: [] },
    { what: "an unknown agent", words: ["claude"] },
    { what: "an option", words: ["claude-code", "--fast"] },
    { what: "an event of another kind", words: ["gemini"] },
    { what: "half an event", words: ["claude-code"], stdin: '{"hook_event_name": "PreToolUse", ' },
    { what: "two events", words: ["claude-code"], stdin: "{}{}" },
    { what: "no event", words: ["claude-code"], stdin: "" },
    { what: "an event of 11 MiB", words: ["claude-code"], stdin: `"${"x".repeat(11 * 1024 * 1024)}"` },
    { what: "an event deeper than 64 levels", words: ["claude-code"], stdin: "[".repeat(100_000) },
    {
      what: "no folder",
      words: ["codex"],
      stdin: JSON.stringify(eventOf({ tool: "Bash", input: { command: "true" } }, "src")),
    },
  ])("blocks the tool for $what", async ({ words, stdin }) => {
    const event =
      stdin ?? JSON.stringify(eventOf({ tool: "Bash", input: { command: "true" } }, broker.project));
    const [native, node] = await Promise.all(fronts.map((front) => hook(front, words, event)));
    expect(native).toEqual(node);
    expect(native).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^substrate: .*\. Nothing ran\n$/),
    });
  });

  test("blocks the tool where the answer cannot be written", async () => {
    const stdin = JSON.stringify(eventOf({ tool: "Bash", input: { command: "true" } }, broker.project));
    for (const front of fronts) {
      const words = ["sh", "-c", '"$@" >/dev/full', "sh", ...front, "hook", "claude-code"];
      expect(await runAs(actor, words, { env: { SUBSTRATE_HOME: broker.home }, stdin })).toMatchObject({
        code: 2,
      });
    }
  });

  test("explains itself", async () => {
    for (const front of fronts)
      expect((await hook(front, ["--help"], "")).stdout).toContain(
        "claude-code, codex, gemini, opencode, cursor or copilot",
      );
    expect((await broker.cli(["help", "hook"])).stdout).toContain("hooks.PreToolUse");
  });
});

function parsed({ stdout, stderr }: Ended): Answer {
  if (stdout === "") throw new Error(`Expected an answer, received nothing and ${JSON.stringify(stderr)}`);
  return JSON.parse(stdout) as Answer;
}

function documentIn({ stdout }: Ended): unknown {
  return stdout === "" ? "" : JSON.parse(stdout);
}
