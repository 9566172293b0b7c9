import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runAtTerminal } from "../support/programs/at-terminal.ts";
import { actors, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";

const POLICY = `id: default\nname: CLI\nmode: enforce\ncommands:\n  denied: ["touch forbidden*"]\n`;

describe.each(actors())("the command line, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  test("exec gives the command's output and exit code", async () => {
    expect(await broker.cli(["exec", "--", "echo out; echo err >&2; exit 7"])).toMatchObject({
      stdout: "out\n",
      stderr: "err\n",
      code: 7,
    });
  });

  test("exec with several words runs a program without a shell", async () => {
    expect(await broker.cli(["exec", "--", "printf", "%s", "$HOME"])).toMatchObject({
      stdout: "$HOME",
      code: 0,
    });
    expect(
      await broker.cli(["exec", "--agent", "me", "--", "sh", "-c", "echo $SUBSTRATE_AGENT_ID"]),
    ).toMatchObject({ stdout: "me\n" });
  });

  test("exec passes on what is piped in", async () => {
    expect(await broker.cli(["exec", "--", "cat"], { stdin: "piped" })).toMatchObject({
      stdout: "piped",
      code: 0,
    });
  });

  test("exit codes: 126 denied, 127 not found, 128+n for a signal, 125 substrate itself", async () => {
    const denied = await broker.cli(["exec", "--", "touch forbidden"]);
    expect(denied.code).toBe(126);
    expect(denied.stderr).toMatch(/touch forbidden.*default\.yaml:5/s);
    expect(await broker.cli(["exec", "--", "no-such-program", "x"])).toMatchObject({ code: 127 });
    expect(await broker.cli(["exec", "--", "kill -15 $$"])).toMatchObject({ code: 143 });
    // A folder that there is not yet gets a broker of its own; a file in its place can hold none.
    const file = join(broker.folder, "file");
    broker.write(file, "no home");
    expect(await broker.cli(["exec", "--", "true"], { env: { SUBSTRATE_HOME: file } })).toMatchObject({
      code: 125,
    });
    expect(await broker.cli(["no-such-command"])).toMatchObject({ code: 125 });
  });

  test("a folder that was removed is named as what is wrong", async () => {
    const { root } = await installationFor(actor);
    const script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"';
    for (const words of [["status"], ["exec", "--", "true"]]) {
      const ended = await runAs(actor, ["/bin/sh", "-c", script, join(root, ".build/substrate"), ...words], {
        cwd: broker.project,
        env: { SUBSTRATE_HOME: broker.home },
      });
      expect(ended).toMatchObject({
        code: 125,
        stderr: expect.stringMatching(/^substrate: Cannot find the current folder: /),
      });
    }
  });

  test("check explains a verdict and runs nothing", async () => {
    const { stdout, code } = await broker.cli(["check", "--", "ls; touch forbidden.txt"]);
    expect(code).toBe(126);
    expect(stdout).toBe(
      [
        "deny  policy default (enforce)",
        "  means    no part of the command runs",
        "  because  touch forbidden.txt",
        "  matches  touch forbidden*   in commands.denied, default.yaml:5",
        "  next     do the task another way, or ask the operator to change that line; other spellings of the command get the same answer\n",
      ].join("\n"),
    );
    expect(await broker.cli(["check", "--", "ls"])).toMatchObject({ code: 0 });
    const late = await broker.cli(["check", "--", 'ls "$X"; make']);
    expect(late.code).toBe(0);
    expect(late.stdout).toMatch(
      /^ {2}at run {3}The value of '"\$X"' in 'ls "\$X"' is only known when the command runs$/m,
    );
    expect(late.stdout).toMatch(
      /^ {2}at run {3}'make' may start programs that the command line does not name; the same rules decide about each when it starts/m,
    );
    const write = await broker.cli(["check", "--", "echo x > /etc/motd"]);
    expect(write.code).toBe(126);
    expect(write.stdout).toMatch(
      /because {2}echo x > \/etc\/motd\n {2}against .* in fs\.write, default\.yaml:1\n/,
    );
    expect(write.stdout).toContain("no fs.write entry covers '/etc/motd'");
  });

  test("every reading command has --json", async () => {
    const { stdout: exec } = await broker.cli(["exec", "--json", "--", "true"]);
    const { span_id: span } = JSON.parse(exec) as { span_id: string };
    const commands = [
      ["check", "--json", "--", "ls"],
      ["world", "status", "--json"],
      ["trace", "list", "--json"],
      ["trace", span, "--json"],
      ["trace", "verify", "--json"],
      ["policy", "show", "--json"],
      ["policy", "validate", "--json"],
      ["policy", "test", "strict", "--json"],
      ["policy", "learn", "--json"],
      ["broker", "status", "--json"],
    ];
    for (const words of commands)
      expect(typeof JSON.parse((await broker.cli(words)).stdout), words.join(" ")).toBe("object");
  });

  test("each line of broker logs --json is JSON", async () => {
    const { stdout, code } = await broker.cli(["broker", "logs", "--json"]);
    expect(code).toBe(0);
    for (const line of stdout.trimEnd().split("\n")) expect(JSON.parse(line)).toHaveProperty("msg");
    // A name that stands twice is refused by strict readers, and others take either.
    expect(/^.*Broker is ready.*$/m.exec(stdout)?.[0].match(/"pid":/g)).toHaveLength(1);
  });

  test("a command that there is not is named, with the nearest one that there is", async () => {
    expect(await broker.cli(["chek", "--", "ls"])).toMatchObject({
      code: 125,
      stderr:
        "substrate: Unknown command 'substrate chek' (did you mean 'check'?). 'substrate --help' lists the commands\n",
    });
    expect((await broker.cli(["no-such-command"])).stderr).toContain(
      "Unknown command 'substrate no-such-command'.",
    );
    expect((await broker.cli(["publish", "4000"])).stderr).toContain(
      "(did you mean 'substrate world publish'?)",
    );
    expect((await broker.cli(["help", "world", "publsh"])).stderr).toContain("(did you mean 'publish'?)");
    expect(await broker.cli(["--no-such-option"])).toMatchObject({ code: 125 });
  });

  test("SUBSTRATE_PARENT_SPAN is the span that exec's command is below", async () => {
    const first = await broker.run("true");
    const env = { SUBSTRATE_PARENT_SPAN: first.span_id };
    const { stdout, stderr } = await broker.cli(["exec", "--json", "--", "true"], { env });
    const { span_id: second } = JSON.parse(stdout) as { span_id: string };
    expect((await broker.span(second)).parent_span, stderr).toBe(first.span_id);
  });

  test("an empty variable is one that is not set", async () => {
    const env = { SUBSTRATE_AGENT_ID: "", SUBSTRATE_PROFILE: "", SUBSTRATE_PARENT_SPAN: "" };
    expect(await broker.cli(["exec", "--", "echo $SUBSTRATE_AGENT_ID"], { env })).toMatchObject({
      stdout: "human\n",
    });
    expect(await broker.cli(["check", "--", "ls"], { env })).toMatchObject({ code: 0 });
    expect(await broker.cli(["world", "warm"], { env })).toMatchObject({ code: 0 });
  });

  test("trace shows a span, and lists the newest first", async () => {
    await broker.cli(["exec", "--", "echo first"]);
    await broker.cli(["exec", "--", "echo second"]);
    const { stdout } = await broker.cli(["trace", "list", "-n", "2"]);
    const [newest, older] = stdout.trim().split("\n");
    expect(newest).toContain("echo second");
    expect(older).toContain("echo first");
    const id = /spn_[0-9a-f-]+/.exec(newest ?? "")?.[0] ?? "";
    expect((await broker.cli(["trace", id])).stdout).toMatch(/command +echo second/);
  });

  test("trace says what happened where there was no command", async () => {
    broker.write(join(broker.home, "policies/default.yaml"), POLICY.replace("CLI", "Edited"));
    await broker.cli(["policy", "reload"]);
    const { stdout } = await broker.cli(["trace", "list", "-n", "1"]);
    expect(stdout).toMatch(/^\S+ {2}spn_\S+ {2}policy_reload {2}ended {2}policy default\n$/);
    const id = /spn_[0-9a-f-]+/.exec(stdout)?.[0] ?? "";
    expect((await broker.cli(["trace", id])).stdout).toMatch(/outcome +ended\n/);
  });

  test("escape sequences of a command do not reach the terminal of whoever reads the trace", async () => {
    await broker.cli(["exec", "--", "true \u001b[2Jgone"]);
    const { stdout } = await broker.cli(["trace", "list", "-n", "1"]);
    expect(stdout).not.toContain("\u001b");
    expect(stdout).toContain("\\x1b[2Jgone");
  });

  test("policy validate names file, line and column", async () => {
    broker.write(join(broker.project, "bad.yaml"), "id: bad\nname: Bad\ncommands:\n  denied:\n    - 5\n");
    const { code, stdout } = await broker.cli(["policy", "validate", "bad.yaml"]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/bad\.yaml:5:7/);
  });

  test("help lists every noun, and each verb has its own", async () => {
    const { stdout, code } = await broker.cli(["--help"]);
    expect(code).toBe(0);
    for (const noun of ["broker", "exec", "check", "world", "trace", "policy"])
      expect(stdout).toContain(noun);
    for (const noun of ["broker", "exec", "trace", "policy"])
      expect((await broker.cli([noun, "--help"])).stdout).toMatch(/Usage/);
  });
});

describe.each(actors().slice(0, 1))("colours, as $kind", (actor) => {
  test("are there on a terminal, and not when NO_COLOR is set", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      expect(await onTerminal(broker, {})).toContain("\u001b[31mdeny");
      expect(await onTerminal(broker, { NO_COLOR: "1" })).not.toContain("\u001b[31m");
    } finally {
      await broker.stop();
    }
  });

  async function onTerminal(broker: TestBroker, env: Readonly<Record<string, string>>): Promise<string> {
    const { node, launcher } = await installationFor(actor);
    const { text } = await runAtTerminal([node, launcher, "check", "--", "touch forbidden"], {
      cwd: broker.project,
      env: { PATH: "/usr/bin:/bin", HOME: actor.home, TERM: "xterm", SUBSTRATE_HOME: broker.home, ...env },
    });
    return text;
  }
});
