/** What the native front asks the broker for, and what it leaves to Node. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { FrontPlace, NODE } from "../../support/front/front-place.ts";

const place = new FrontPlace();
afterAll(() => place.remove());
afterEach(() => place.stopServing());

describe("the request", () => {
  test("has what Node sends: words, folder, agent, profile, span, time limit and variables", async () => {
    let request: Record<string, unknown> = {};
    await place.serve(async (call) => {
      request = await call.start();
      call.exit(0);
    });
    const env = {
      SUBSTRATE_AGENT_ID: "some-label",
      SUBSTRATE_PARENT_SPAN: "spn_0",
      SUBSTRATE_PROFILE: "",
      QUOTED: '"\\\n\u0001ü',
    };
    const options = ["--profile=ci", "--env", "A=1", "--env", "A=2", "--env=QUOTED", "--timeout", "2m"];
    await place.run(["exec", ...options, "--", "printf", "%s", "a b", ""], { env });
    expect(request).toEqual({
      agent_id: "some-label",
      cwd: place.folder,
      profile: "ci",
      argv: ["printf", "%s", "a b", ""],
      caller_env: { HOME: place.folder, PATH: "/usr/bin:/bin", QUOTED: env.QUOTED },
      env: { A: "2", QUOTED: env.QUOTED },
      parent_span: "spn_0",
      timeout_ms: 120_000,
      stdin: true,
    });
  });

  test("has options before the command alone: what follows the first word is the command's", async () => {
    let request: Record<string, unknown> = {};
    await place.serve(async (call) => {
      request = await call.start();
      call.exit(0);
    });
    await place.run(["exec", "--shell", "bash", "--", "--json"]);
    expect(request).toMatchObject({ cmd: "--json", shell: "bash", no_time_limit: true });
  });
});

describe("the request for", () => {
  test.each([
    [["--keep"], { background: "keep" }],
    [["--require-approval"], { require_approval: true }],
    [["--wait"], { approval_wait_ms: 86_400_000, questions: true }],
    [["--agent", "nobody"], { agent_id: "nobody" }],
  ])("%s has its field", async (options, field) => {
    let request: Record<string, unknown> = {};
    await place.serve(async (call) => {
      request = await call.start();
      call.exit(0);
    });
    expect(await place.run(["exec", ...options, "--", "true"])).toMatchObject({ code: 0, stderr: "" });
    expect(request).toMatchObject({ cmd: "true", ...field });
  });
});

describe("Node takes over", () => {
  test.each([
    ["another verb", ["status", "--json"]],
    ["no verb", []],
    ["help", ["exec", "--help"]],
    ["an unknown option", ["exec", "--new", "--", "true"]],
    ["--stdin", ["exec", "--stdin", "--", "true"]],
    ["--json", ["exec", "--json", "--", "true"]],
    ["no command", ["exec", "--"]],
    ["an option without value", ["exec", "--timeout"]],
    ["a wrong time limit", ["exec", "--timeout", "25h", "--", "true"]],
    ["a wrong shell", ["exec", "--shell", "zsh", "--", "true"]],
    ["a shell for several words", ["exec", "--shell", "sh", "--", "echo", "x"]],
    ["an unset variable", ["exec", "--env", "UNSET", "--", "true"]],
    ["an agent without a socket beside others", ["exec", "--agent", "nobody", "--", "true"]],
    ["a time limit for check", ["check", "--timeout", "1s", "--", "true"]],
  ])("for %s, with the same words", async (_what, words) => {
    await place.serve(() => undefined);
    writeFileSync(join(place.home, "sock/agents/other.sock"), "");
    const { stdout } = await place.run(words);
    expect(stdout.toString()).toBe(words.length === 0 ? "Node: " : `Node: ${words.join(" ")}`);
    expect(place.calls.length).toBe(0);
  });

  test.each<[string, Record<string, string>]>([
    ["SUBSTRATE_WORLD=disabled", { SUBSTRATE_WORLD: "disabled" }],
    ["a home that is no plain path", { SUBSTRATE_HOME: `${place.home}/../home` }],
    ["a home relative to the folder", { SUBSTRATE_HOME: "home" }],
    ["no broker", { SUBSTRATE_HOME: place.folder }],
  ])("for %s", async (_what, env) => {
    await place.serve(() => undefined);
    expect((await place.run(["exec", "--", "true"], { env })).stdout.toString()).toBe("Node: exec -- true");
    expect(place.calls.length).toBe(0);
  });

  test("for a broker that has no streams, with standard input untouched", async () => {
    await place.serve((call) =>
      call.answer(404, '{"error":{"code":"not_found","message":"No","hint":"No"}}'),
    );
    place.setNode(`${NODE}cat\n`);
    const { stdout } = await place.run(["exec", "--", "cat"], { stdin: "all of it" });
    place.setNode(NODE);
    expect(stdout.toString()).toBe("Node: exec -- catall of it");
  });

  test("from PATH where the Node of the build is gone; without any, an error names both places", async () => {
    const { folder } = place;
    rmSync(join(folder, ".build/node"));
    mkdirSync(join(folder, "bin"), { recursive: true });
    writeFileSync(join(folder, "bin/node"), NODE, { mode: 0o755 });
    const found = await place.run(["status"], { env: { PATH: `${join(folder, "bin")}:/usr/bin:/bin` } });
    const without = await place.run(["status"], { env: { PATH: folder } });
    place.setNode(NODE);
    expect(found.stdout.toString()).toBe("Node: status");
    expect([without.code, without.stderr]).toEqual([
      125,
      `substrate: cannot start Node: neither '${folder}/.build/node' nor a 'node' on PATH can be run: No such file or directory\n`,
    ]);
  });
});
