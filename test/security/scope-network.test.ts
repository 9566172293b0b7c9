import { chownSync, existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";
import { ScopeAsker } from "../support/broker/scopes.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { OWN_ADDRESS, ZONE } from "../support/network/zone.ts";

const GIVEN = "registry.example.test";
const NAME = "files.example.test";
const INSIDE = "inside.evil.test";
const POLICIES = {
  default: networkPolicy([GIVEN, "10.0.0.0/8:80", "host.internal:5432"]),
  brief: `id: brief\nname: Brief\nselectable: true\nmode: enforce\napproval: { timeout_secs: 1 }\nnet: { allowed: [] }\n`,
  silent: `id: silent\nname: Silent\nselectable: true\nmode: observe\napproval: { interactive: false }\n`,
};

/** Sends a byte each 50 ms to the echo on port 22 and says when it is cut; a file of the second name is there once it is connected. */
const HOLD = `
import socket, sys, time
s = socket.create_connection((sys.argv[1], 22), 3)
s.settimeout(3)
s.recv(100)
open(sys.argv[2], "w").close()
try:
    while True:
        s.sendall(b"x")
        if not s.recv(1): break
        time.sleep(0.05)
except OSError: pass
print("cut", flush=True)
`;

type Body = Readonly<Record<string, unknown>>;

describe.each(actorsWith("python3", "nft"))("what scopes of the network open, as $kind", (actor) => {
  let place: NetworkPlace;
  let asker: ScopeAsker;
  beforeAll(async () => {
    const zone = { ...ZONE, [INSIDE]: { addresses: ["169.254.169.254"] } };
    place = await NetworkPlace.open(actor, POLICIES, zone);
    place.broker.write(join(place.broker.project, "hold.py"), HOLD);
    asker = new ScopeAsker(place.broker);
  });
  afterAll(() => place.close());

  const dial = (targets: string, body: Body = {}): ReturnType<typeof place.broker.run> =>
    place.broker.run({ cmd: `python3 dial.py ${targets}`, ...body });
  const placeHas = (name: string): boolean => existsSync(join(place.broker.project, name));

  /** Where servers saw a connection of that command: `ADDRESS:PORT`. */
  async function reached(targets: string, body: Body = {}): Promise<readonly string[]> {
    const { seen } = await place.internet.during(() => dial(targets, body));
    return seen.connections.map(({ to }) => `${to.address}:${to.port}`);
  }

  /** Tries with a token that is worth nothing, and says how that was refused. */
  async function tried(body: Body): Promise<string> {
    const cmd = `python3 dial.py ${NAME} 80`;
    const { result, seen } = await place.internet.during(() => place.broker.refused({ cmd, ...body }));
    expect(seen.connections).toEqual([]);
    return `${result.status} ${result.code}`;
  }

  test("nothing internal, no pattern and no word that is no name is granted: nobody is even asked, and no name looked up", async () => {
    const never = {
      "net:*:443": 400,
      "net:@git:443": 400,
      [`net:${NAME}`]: 400,
      "net:0x7f000001:80": 400,
      "net:evil%2etest:80": 400,
      "net:*.example.test:443": 403,
      "net:localhost:80": 403,
      "net:host.internal:80": 403,
      "net:127.0.0.1:80": 403,
      "net:[::ffff:127.0.0.1]:80": 403,
      "net:169.254.169.254:80": 403,
      "net:198.18.0.1:80": 403,
      "net:192.168.1.1:80": 403,
      "net:10.1.2.3:5432": 403,
      "net:0.0.0.0/0:80": 403,
      "net:[::1]:80": 403,
    };
    const { result, seen } = await place.internet.during(async () => {
      const answers: Record<string, unknown> = {};
      for (const scope of Object.keys(never)) {
        const { status, code } = await asker.ask([`net:${GIVEN}:443`, scope]);
        answers[scope] = code === "scope_denied" || code === "invalid_request" ? status : code;
      }
      return answers;
    });
    expect(result).toEqual(never);
    expect(seen.questions).toEqual([]);
    // The same, where a policy opens it.
    for (const scope of ["net:host.internal:5432", "net:10.1.2.3:80"])
      expect(await asker.token([scope]), scope).toMatch(/^scp_/);
  });

  test("a name that leads inside, and the host's own public address, are not dialled although they were granted", async () => {
    const scopes = [`net:${INSIDE}:80`, `net:${OWN_ADDRESS}:80`, "net:20.30.40.0/24:80", `net:${NAME}:80`];
    const scope_token = await asker.granted(scopes);
    expect(
      await reached(`${INSIDE} 80 ${OWN_ADDRESS} 80 20.30.40.51 80 ${NAME} 80`, { scope_token }),
    ).toEqual(["20.30.40.51:80", "203.0.113.20:80"]);
  });

  test("another command of the same agent at the same time does not reach it", async () => {
    const scope_token = await asker.granted([`net:${NAME}:22`, "net:203.0.113.64/30:80"]);
    const { result, seen } = await place.internet.during(async () => {
      const holding = place.broker.run({
        cmd: `python3 hold.py ${NAME} held-beside; true`,
        timeout_ms: 3000,
        scope_token,
      });
      expect(await eventually(() => placeHas("held-beside"), 5000)).toBe(true);
      const { stdout } = await dial(`${NAME} 22 203.0.113.66 80 ${GIVEN} 80`);
      await holding;
      return stdout;
    });
    expect(result).toMatch(/^NXDOMAIN \d+\nECONNREFUSED \d+\nconnected \d+\n$/);
    expect(seen.connections.map(({ to }) => `${to.address}:${to.port}`)).toEqual([
      "203.0.113.20:22",
      "203.0.113.10:80",
    ]);
  });

  test("a token that is used up, too old, another's or of another policy reaches nothing", async () => {
    const used = await asker.granted([`net:${NAME}:80`]);
    expect(await reached(`${NAME} 80`, { scope_token: used })).toEqual(["203.0.113.20:80"]);
    expect(await tried({ scope_token: used })).toBe("403 scope_denied");
    const mine = await asker.granted([`net:${NAME}:80`], "session", { agent_id: "mine" });
    expect(await tried({ scope_token: mine, agent_id: "thief" })).toBe("403 scope_denied");
    expect(await tried({ scope_token: mine, agent_id: "mine", profile: "silent" })).toBe("403 scope_denied");
    const brief = { profile: "brief" };
    const late = await asker.granted([`net:${NAME}:80`], "once", brief);
    await sleep(1100);
    expect(await tried({ scope_token: late, ...brief })).toBe("403 scope_denied");
    expect(await asker.ask([`net:${NAME}:80`], { profile: "silent" })).toMatchObject({
      code: "scope_denied",
    });
  });

  test("a token for another port, or another name behind the same address, does not open this one", async () => {
    const scope_token = await asker.granted(["net:stranger.example.test:8080", `net:${NAME}:443`], "session");
    expect(
      await reached(`stranger.example.test 80 ${GIVEN} 8080 ${NAME} 80 203.0.113.10 8080`, { scope_token }),
    ).toEqual([]);
    expect(await reached("stranger.example.test 8080", { scope_token })).toEqual(["203.0.113.10:8080"]);
    // It is granted, and not what the client asks for.
    const cmd = `curl -s -H 'Host: collector.evil.test' http://stranger.example.test:8080/`;
    const { seen } = await place.internet.during(() => place.broker.run({ cmd, scope_token }));
    expect(seen.connections.flatMap(({ requests }) => requests)).toEqual([]);
  });

  test("what is open ends with its command, whoever holds it", async () => {
    const scope_token = await asker.granted([`net:${NAME}:22`]);
    const cmd = `setsid python3 hold.py ${NAME} held-left >/dev/null 2>&1 & until [ -e held-left ]; do sleep 0.02; done`;
    const { result, seen } = await place.internet.during(() => place.broker.run({ cmd, scope_token }));
    expect(result.exit).toBe(0);
    expect(seen.connections).toMatchObject([{ to: { port: 22 }, open: false }]);
    const kept = await place.broker.refused({
      cmd: "true",
      scope_token: await asker.granted([`net:${NAME}:22`], "session", { agent_id: "keeper" }),
      agent_id: "keeper",
      background: "keep",
    });
    expect(kept).toMatchObject({ status: 400, code: "invalid_request" });
  });

  test("what is open is cut when the policy gets other words: what it was granted under holds no more", async () => {
    const scope_token = await asker.granted([`net:${NAME}:22`], "session", { agent_id: "holder" });
    const body = { scope_token, agent_id: "holder" };
    const holding = place.broker.run({ cmd: `timeout 20 python3 hold.py ${NAME} held-cut`, ...body });
    expect(await eventually(() => placeHas("held-cut"), 5000)).toBe(true);
    edit(`${POLICIES.default}\n# other words\ncommands: { denied: ["never *"] }\n`);
    await place.broker.run("true");
    expect(await holding).toMatchObject({ exit: 0, stdout: "cut\n" });
    expect(await tried(body)).toBe("403 scope_denied");
  });

  test("bytes that a scope let out count: the budget ends in the middle of them", async () => {
    edit(`${POLICIES.default}\nbudgets: { window: 24h, default: { max_egress_bytes: 100000 } }\n`);
    const body = { agent_id: "sender" };
    const scope_token = await asker.granted([`net:${NAME}:9000`], "session", body);
    const cmd = `head -c 300000 /dev/zero | python3 -c '
import socket, sys
s = socket.create_connection(("${NAME}", 9000), 5)
s.sendall(sys.stdin.buffer.read())
s.recv(1)'; true`;
    const { seen } = await place.internet.during(() => place.broker.run({ cmd, scope_token, ...body }));
    expect(seen.connections).toHaveLength(1);
    expect(seen.connections[0]?.received).toBeLessThanOrEqual(100_000);
    expect(seen.connections[0]?.received).toBeGreaterThan(90_000);
    const again = await place.internet.during(() => place.broker.run({ cmd, scope_token, ...body }));
    expect(again.seen.connections).toEqual([]);
  });

  /** As an editor saves: at no moment half of it. */
  function edit(text: string): void {
    const path = join(place.broker.home, "policies/default.yaml");
    writeFileSync(`${path}.new`, text);
    chownSync(`${path}.new`, actor.uid, actor.gid);
    renameSync(`${path}.new`, path);
  }
});
