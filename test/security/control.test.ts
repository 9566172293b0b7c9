import { existsSync, lstatSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { everyActor, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { skip } from "../support/run/skips.ts";

const POLICY = `id: default
name: Control
mode: enforce
fs:
  write: ["/**"]
commands:
  denied: ["touch forbidden"]
`;
const WIDE = "id: wide\nname: Wide\nmode: observe\nselectable: true\n";
const SECRET_POLICY = "id: secret\nname: Not to be chosen\nmode: observe\n";
const AGENTS = "agents:\n  named: {}\n";

/** Says "reached" when something listens there, and the error's name otherwise. */
const CONNECT = `const s = require("node:net").connect(process.argv[1]);
s.on("connect", () => { console.log("reached"); process.exit(); });
s.on("error", (error) => console.log(error.code));`;

describe.each(everyActor())("who controls the broker, as $kind", (actor) => {
  let broker: TestBroker;

  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY, wide: WIDE, secret: SECRET_POLICY },
      config: AGENTS,
    });
  });
  afterAll(() => broker.stop());

  test("nobody but the owner can open a socket, or look at where they lie", () => {
    const modeOf = (path: string): string => (statSync(join(broker.home, path)).mode & 0o7777).toString(8);
    for (const folder of ["", "sock", "sock/agents"])
      expect([folder, modeOf(folder)]).toEqual([folder, "700"]);
    for (const socket of ["sock/agent.sock", "sock/control.sock", "sock/agents/named.sock"]) {
      expect(lstatSync(join(broker.home, socket)).isSocket()).toBe(true);
      expect([socket, modeOf(socket)]).toEqual([socket, "600"]);
    }
  });

  test("another user of the machine reaches no socket; the owner does", async () => {
    if (process.getuid?.() !== 0)
      return skip(`another user at the sockets, as ${actor.kind}`, "only root can become another user");
    const stranger = { ...actor, name: "nobody", uid: 65_534, gid: 65_534, home: "/" };
    for (const name of ["agent", "control", "agents/named"]) {
      const socket = join(broker.home, `sock/${name}.sock`);
      const reach = (who: typeof stranger) => runAs(who, [process.execPath, "-e", CONNECT, socket]);
      expect((await reach(stranger)).stdout).toBe("EACCES\n");
      expect((await reach(actor)).stdout).toBe("reached\n");
    }
  });

  test("a command that may write everywhere changes no policy, trace, setting, shim or database", async () => {
    // The first command in a folder without a repository leaves a note of that.
    await broker.run("true");
    const before = listed(broker);
    const { stdout } = await broker.run({
      argv: [
        "sh",
        "-c",
        `for name in policies/default.yaml config.yaml trace/trace.jsonl db/data.mdb shims/git run/broker.json approvals.yaml
         do echo 'mode: observe' >> "$1/$name" && echo "wrote $name"; done 2>/dev/null
         mkdir -p "$1/policies" && echo made && echo x > "$1/policies/evil.yaml"; rm -rf "$1"; mv "$1" "$1.old"; echo own > own`,
        "-",
        broker.home,
      ],
    });
    expect(stdout).not.toContain("wrote");
    expect(listed(broker)).toEqual(before);
    expect(readFileSync(join(broker.home, "policies/default.yaml"), "utf8")).toBe(POLICY);
    expect(readFileSync(join(broker.project, "own"), "utf8")).toBe("own\n");
    expect(await broker.refused({ cmd: "touch forbidden" })).toMatchObject({ code: "policy_denied" });
  });

  test("a command that works where a person keeps policies, settings and approvals changes none of them", async () => {
    const kept = join(broker.project, "dots");
    const names = ["default.yaml", "base.yaml", "config.yaml", "approvals.yaml"];
    // Through a second link: replacing that one would be as good.
    const places = ["policies/default.yaml", "policies/base.yaml", "config.yaml", "approvals.yaml"];
    const config = readFileSync(join(broker.home, "config.yaml"), "utf8");
    const files: readonly string[] = [POLICY, WIDE.replace("wide", "base"), config, "approvals: []\n"];
    for (const [at, name] of names.entries()) {
      broker.write(join(kept, name), files[at] ?? "");
      symlinkSync(`dots/${name}`, join(broker.project, `way-${name}`));
      rmSync(join(broker.home, places[at] ?? ""), { force: true });
      symlinkSync(join(broker.project, `way-${name}`), join(broker.home, places[at] ?? ""));
    }
    const { stdout } = await broker.run(
      `for name in ${names.join(" ")}; do
         echo 'mode: observe' >> dots/$name && echo "wrote $name"
         echo 'mode: observe' > new && { mv -f new dots/$name || rm -f dots/$name; } && echo "replaced $name"
         ln -sfn new way-$name && echo "led $name"
       done 2>/dev/null; mv dots gone 2>/dev/null && echo moved; echo beside > dots/beside && cat dots/beside`,
    );
    expect(stdout).toBe("beside\n");
    expect(names.map((name) => readFileSync(join(kept, name), "utf8"))).toEqual(files);
    expect(await broker.refused({ cmd: "touch forbidden" })).toMatchObject({ code: "policy_denied" });
    // The person edits on, and the edit holds.
    broker.write(join(kept, "default.yaml"), POLICY.replace("touch forbidden", "touch other"));
    expect(await broker.refused({ cmd: "touch other" })).toMatchObject({ code: "policy_denied" });
    expect((await broker.run("touch forbidden && rm forbidden")).exit).toBe(0);
    broker.write(join(kept, "default.yaml"), POLICY);
  });

  test("no socket can be connected to from inside, also by another name of its folder", async () => {
    for (const name of ["agent", "control", "agents/named"]) {
      const socket = join(broker.home, `sock/${name}.sock`);
      for (const path of [socket, `/proc/self/root${socket}`, `/proc/1/root${socket}`]) {
        const { stdout } = await broker.run({ argv: [process.execPath, "-e", CONNECT, path] });
        expect([path, stdout]).toEqual([path, expect.stringMatching(/^(ENOENT|EACCES|ECONNREFUSED)\n$/)]);
      }
    }
  });

  test("neither variables of a request nor a project's file widen what the policy says", async () => {
    const switches = {
      SUBSTRATE_WORLD: "disabled",
      SHIM_BYPASS: "1",
      SUBSTRATE_BACKEND: "none",
      SUBSTRATE_PROFILE: "wide",
      SUBSTRATE_HOME: join(broker.project, "fake"),
      SUBSTRATE_AGENT_ID: "somebody-else",
      SUBSTRATE_SPAN_ID: "spn_forged",
    };
    const denied = { cmd: "touch forbidden", env: switches };
    expect(await broker.refused(denied)).toMatchObject({ code: "policy_denied", policy_id: "default" });
    const twin = await broker.run({ cmd: "env; ls -A /proc | grep -c '^[0-9]'", env: switches });
    const seen = twin.stdout.trim().split("\n");
    expect(seen).toEqual(
      expect.arrayContaining(["SUBSTRATE_AGENT_ID=test", `SUBSTRATE_SPAN_ID=${twin.span_id}`]),
    );
    expect(twin.isolation).toMatchObject({ mount: "on", pid: "on", net: "on" });
    expect(Number(seen.at(-1))).toBeLessThan(10);

    await broker.run("echo wide > .substrate-profile");
    expect(await broker.refused({ cmd: "touch forbidden" })).toMatchObject({ code: "policy_denied" });
    await broker.run("rm -f .substrate-profile; echo fine");
    expect(existsSync(join(broker.project, "forbidden"))).toBe(false);
  });

  test("a policy that is not selectable cannot be chosen, by request or by file", async () => {
    expect(await broker.refused({ cmd: "true", profile: "secret" })).toMatchObject({
      code: "unknown_profile",
    });
    expect(await broker.refused({ cmd: "true", profile: "../policies/wide" })).toMatchObject({ status: 400 });
    expect(await broker.run({ cmd: "true", profile: "wide" })).toMatchObject({ exit: 0 });
  });

  test("an agent cannot speak for one that has a socket of its own, nor see what is that one's", async () => {
    expect(await broker.refused({ cmd: "true", agent_id: "named" })).toMatchObject({ status: 400 });
    const own = await runAs(actor, [
      process.execPath,
      "-e",
      ASK,
      join(broker.home, "sock/agents/named.sock"),
      broker.project,
    ]);
    const {
      span_id: span,
      agent_id: agent,
      session_id: session,
    } = JSON.parse(own.stdout) as Record<string, string>;
    expect(agent).toBe("named");
    expect((await broker.call("GET", `/v1/trace/${span}`)).status).toBe(404);
    expect((await broker.call("GET", `/v1/spans?session_id=${session}`)).status).toBe(404);
    expect(await broker.refused({ cmd: "true", session_id: session })).toMatchObject({ code: "not_found" });
    expect((await broker.operator("GET", `/v1/trace/${span}`)).status).toBe(200);
  });

  test("what an operator does has no path on an agent's socket", async () => {
    const calls = [
      ["POST", "/v1/world/warm"],
      ["POST", "/v1/world/restart"],
      ["POST", "/v1/policy/reload"],
      ["GET", "/v1/approvals"],
      ["POST", "/v1/approvals/apr_0"],
      ["GET", "/v1/budgets/test"],
      ["DELETE", "/v1/budgets/test"],
    ] as const;
    for (const [method, path] of calls) {
      const answer = await broker.call(method, path, method === "POST" ? {} : undefined);
      expect([path, answer.status]).toEqual([path, 404]);
    }
  });

  test.each([
    ["a variable", { cmd: "true", env: { DEPLOY_TOKEN: "tok-8fbd5a90c3" } }, "tok-8fbd5a90c3"],
    ["a URL", { cmd: "echo https://me:pa55-4c1d@example.org/x" }, "pa55-4c1d"],
    ["a header", { cmd: "echo -H 'Authorization: Basic bWU6czNjcjN0'" }, "bWU6czNjcjN0"],
    ["an argument", { argv: ["echo", "--api-key", "key-51f0aa77"] }, "key-51f0aa77"],
    ["an assignment", { cmd: "API_TOKEN=val-99e8d7c6 true" }, "val-99e8d7c6"],
    ["a locale", { cmd: "true", env: { LC_ALL: `ghp_${"5eCr3t".repeat(6)}` } }, "5eCr3t"],
    ["a PATH", { cmd: "true", env: { PATH: `/bin:/ghp_${"Pa7h00".repeat(6)}` } }, "Pa7h00"],
    ["standard input", { cmd: "cat >/dev/null", stdin_b64: btoa("pin-2468-aces") }, "pin-2468-aces"],
  ])("a secret in %s reaches neither trace nor log", async (_place, body, secret) => {
    const { span_id: span } = await broker.run(body);
    for (const file of ["trace/trace.jsonl", "log/broker.log"])
      expect(readFileSync(join(broker.home, file), "utf8")).not.toContain(secret);
    expect((await broker.span(span)).replayable).toBe(false);
    const plain = await broker.run("echo --monkey banana https://example.org/x?page=2");
    expect(await broker.span(plain.span_id)).toMatchObject({ replayable: true, redacted: [] });
  });
});

/** One execute on a socket of the agent's own; prints the answer. */
const ASK = `const [, socketPath, cwd] = process.argv;
const body = JSON.stringify({ cwd, cmd: "true" });
const call = require("node:http").request({ socketPath, method: "POST", path: "/v1/execute" }, (r) => r.pipe(process.stdout));
call.end(body);`;

/** Files of the home that no call changes, with what tells that they were touched. */
function listed(broker: TestBroker): readonly string[] {
  return ["", "policies", "shims", "run", "sock", "homes"].flatMap((folder) =>
    readdirSync(join(broker.home, folder)).map((name) => {
      const { ino, mode } = lstatSync(join(broker.home, folder, name));
      return `${folder}/${name} ${ino} ${mode}`;
    }),
  );
}
