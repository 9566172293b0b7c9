import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../../api/client/client.ts";
import { actors } from "../support/users/users.ts";
import type { TestBroker } from "../support/broker/broker.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { type ScopeAsker, ScopeGround } from "../support/broker/scopes.ts";

const DEFAULT = `
id: default
name: Closed
mode: enforce
fs:
  write: ["$PROJECT/**"]
`;
const POLICIES = {
  default: DEFAULT,
  brief: "id: brief\nname: Brief\nselectable: true\nmode: enforce\napproval:\n  timeout_secs: 1\n",
  other: "id: other\nname: Other\nselectable: true\nmode: enforce\n",
};
const CONFIG = "agents:\n  named: {}\n";

/** Tries to change the memory file on descriptor 8 in each way there is, and says which seals it has. */
const CHANGER = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static void told(const char *what, int done) { printf("%s %s\\n", what, done ? "done" : errno == EPERM ? "refused" : strerror(errno)); }
int main(void) {
  printf("seals %d\\n", fcntl(8, F_GET_SEALS));
  told("write", pwrite(8, "x", 1, 0) == 1);
  told("grow", ftruncate(8, 4096) == 0);
  told("shrink", ftruncate(8, 0) == 0);
  told("map", mmap(NULL, 47, PROT_READ | PROT_WRITE, MAP_SHARED, 8, 0) != MAP_FAILED);
  told("unseal", fcntl(8, F_ADD_SEALS, 0) == 0);
  int again = open("/proc/self/fd/8", O_RDWR);
  told("reopen and write", again >= 0 && write(again, "x", 1) == 1);
  char token[128] = {0};
  told("read", pread(8, token, sizeof token - 1, 0) == 47 && strncmp(token, "scp_", 4) == 0);
}
`;

describe.each(actors())("tokens for scopes, as $kind", (actor) => {
  let ground: ScopeGround;
  let broker: TestBroker;
  let asker: ScopeAsker;
  beforeAll(async () => {
    ground = await ScopeGround.make(actor, { policies: POLICIES, config: CONFIG });
    ({ broker, asker } = ground);
  });
  afterAll(() => ground.remove());

  const at = (name: string): string => ground.at(name);
  const shared = (): string => `fs.write:${at("shared")}`;
  const marks = (name: string): string => `touch ${at(`shared/${name}`)}`;
  const isThere = (name: string): boolean => existsSync(at(`shared/${name}`));

  /** Runs the command that would leave a mark, and says how it was refused. */
  async function tried(name: string, body: Readonly<Record<string, unknown>>): Promise<string> {
    const refused = await broker.refused({ cmd: marks(name), ...body });
    expect(isThere(name)).toBe(false);
    return `${refused.status} ${refused.code}`;
  }

  test("a token works for its agent in its project, and for nobody else, nowhere else", async () => {
    const scope_token = await asker.granted([shared()], "session", { agent_id: "named-not" });
    broker.write(join(ground.path, "second/.substrate-profile"), "other\n");
    expect(await tried("stolen", { scope_token, agent_id: "thief" })).toBe("403 scope_denied");
    expect(await tried("stolen", { scope_token, agent_id: "named-not", cwd: at("second") })).toBe(
      "403 scope_denied",
    );
    const named = await call(join(broker.home, "sock/agents/named.sock"), "POST", "/v1/execute", {
      cmd: marks("stolen"),
      cwd: broker.project,
      scope_token,
    });
    expect(named).toMatchObject({ status: 403, document: { error: { code: "scope_denied" } } });
    expect(isThere("stolen")).toBe(false);
    await broker.run({ cmd: marks("own"), scope_token, agent_id: "named-not" });
    expect(isThere("own")).toBe(true);
  });

  test("a token for one command runs one command, also when forty ask at once", async () => {
    const scope_token = await asker.granted([shared()]);
    const racing = Array.from({ length: 40 }, (_each, n) =>
      broker.post({ cmd: marks(`race-${n}`), scope_token }),
    );
    const statuses = (await Promise.all(racing)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(readdirSync(at("shared")).filter((name) => name.startsWith("race-"))).toHaveLength(1);
    expect(await tried("replayed", { scope_token })).toBe("403 scope_denied");
  });

  test("a token that was never given is worth nothing, and its words tell nothing", async () => {
    const used = await asker.granted([shared()]);
    await broker.run({ cmd: "true", scope_token: used });
    const guesses = ["scp_", `scp_${"A".repeat(43)}`, "' OR 1=1", used, `${used} `];
    const answers = await Promise.all(
      guesses.map((scope_token) => broker.refused({ cmd: "true", scope_token })),
    );
    expect(new Set(answers.map(({ message }) => message)).size).toBe(1);
  });

  test("a token ends with its time, and a question for it is asked again", async () => {
    const body = { profile: "brief" };
    const scope_token = await asker.granted([shared()], "once", body);
    await sleep(1100);
    expect(await tried("late", { scope_token, ...body })).toBe("403 scope_denied");
    expect(await asker.ask([shared()], body)).toMatchObject({ code: "approval_required" });
    const fresh = await asker.granted([`fs.write:${at("other")}`], "once", body);
    expect(
      (await broker.run({ cmd: `touch ${at("other/in-time")}`, scope_token: fresh, ...body })).exit,
    ).toBe(0);
  });

  test("a token ends with a changed policy, also when the old words come back, and under another profile", async () => {
    const scope_token = await asker.granted([shared()], "session");
    expect(await tried("profile", { scope_token, profile: "other" })).toBe("403 scope_denied");
    await broker.run({ cmd: marks("before"), scope_token });
    const policy = join(broker.home, "policies/default.yaml");
    broker.write(policy, DEFAULT.replace("fs:", 'fs:\n  deny_read: ["$PROJECT/more"]'));
    expect(await tried("changed", { scope_token })).toBe("403 scope_denied");
    broker.write(policy, DEFAULT);
    expect(await tried("back", { scope_token })).toBe("403 scope_denied");
    expect([isThere("before")]).toEqual([true]);
    expect(await asker.ask([shared()])).toMatchObject({ code: "approval_required" });
  });

  test("the memory file is sealed: it is read, and in no way changed", async () => {
    buildProgram(broker, "changer", CHANGER);
    const scope_token = await asker.granted([shared()]);
    expect((await broker.run({ argv: ["./changer"], scope_token })).stdout).toBe(
      "seals 15\nwrite refused\ngrow refused\nshrink refused\nmap refused\nunseal refused\nreopen and write refused\nread done\n",
    );
  });

  test("the token is in no variable, no argument, no file, no log and no line of the trace, only on its descriptor", async () => {
    const scope_token = await asker.granted([shared()], "session");
    const { stdout } = await broker.run({
      cmd: `env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; sh -c 'cat /proc/$PPID/fd/$SUBSTRATE_SCOPE_FD'`,
      scope_token,
    });
    expect(stdout.split(scope_token)).toHaveLength(2);
    expect(stdout.endsWith(scope_token)).toBe(true);
    expect(stdout).toMatch(/^SUBSTRATE_SCOPE_FD=8$/m);
    // A caller that writes it where it does not belong: the record has another word in its place.
    await broker.run({ cmd: `: ${scope_token}`, scope_token, env: { TOKEN: scope_token } });
    await broker.refused({ cmd: `: ${scope_token}`, scope_token, profile: "other" });
    await broker.run({ cmd: "true", parent_span: scope_token });
    await broker.kill("SIGTERM");
    const found = filesBelow(broker.home).filter((path) => readFileSync(path).includes(scope_token));
    expect(found).toEqual([]);
    ({ broker, asker } = await ground.restarted());
    expect(await tried("restarted", { scope_token })).toBe("403 scope_denied");
  });

  test("another command of the same agent sees neither the process nor the descriptor of one with scopes", async () => {
    const scope_token = await asker.granted([`fs.write:${at("other")}`], "session");
    const running = broker.run({ cmd: `touch started; sleep 3; true`, scope_token });
    const looks = `until [ -e started ]; do sleep 0.05; done; cat /proc/[0-9]*/fd/8 2>/dev/null; cat /proc/[0-9]*/cmdline | tr '\\0' ' '`;
    const { stdout, world_id } = await broker.run(looks);
    expect(stdout).not.toContain("scp_");
    expect(stdout).not.toContain("sleep 3");
    const reply = await running;
    expect(reply.exit).toBe(0);
    expect(reply.world_id).not.toBe(world_id);
  });

  test("a token with 'keep' leaves nothing behind that still has the scope", async () => {
    const scope_token = await asker.granted([shared()], "session", { agent_id: "keeper" });
    const refused = await broker.refused({
      cmd: `(sleep 1; ${marks("kept")}) & true`,
      scope_token,
      agent_id: "keeper",
      background: "keep",
    });
    expect(refused).toMatchObject({ status: 400, code: "invalid_request" });
    await broker.run({
      cmd: `(setsid sh -c 'sleep 0.5; ${marks("kept")}' &) ; true`,
      scope_token,
      agent_id: "keeper",
    });
    await sleep(1000);
    expect(isThere("kept")).toBe(false);
  });
});

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
