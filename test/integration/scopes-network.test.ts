import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Person } from "../support/broker/approvals.ts";
import type { Ran } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";
import { ScopeAsker } from "../support/broker/scopes.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";

const GIVEN = "registry.example.test";
const NAME = "files.example.test";
const POLICIES = {
  default: networkPolicy([GIVEN], { more: 'commands: { isolated: ["python3 -B *"] }' }),
  narrow: `id: narrow\nname: Narrow\nmode: enforce\nselectable: true\nnet: { allowed: [] }\n`,
};

type Body = Readonly<Record<string, unknown>>;

describe.each(actorsWith("python3", "nft"))("scopes of the network, as $kind", (actor) => {
  let place: NetworkPlace;
  let asker: ScopeAsker;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, POLICIES);
    asker = new ScopeAsker(place.broker);
  });
  afterAll(() => place.close());

  /** What came of each, and where servers saw it: `ADDRESS:PORT`. */
  async function dialled(targets: string, body: Body = {}): Promise<readonly [string, readonly string[]]> {
    const cmd = `python3 dial.py ${targets}`;
    const { result, seen } = await place.internet.during(() => place.broker.run({ cmd, ...body }));
    const came = result.stdout
      .trim()
      .split("\n")
      .map((line) => line.split(" ")[0]);
    return [came.join(" "), seen.connections.map(({ to }) => `${to.address}:${to.port}`)];
  }

  test("a person sees name and port as they are compared, and what the policy gives is not asked for", async () => {
    const scopes = ["net:B\u00fccher.Example.test:8080", `net:${GIVEN}:443`];
    const asked = await asker.ask(scopes, { reason: "The data is there" });
    expect(asked).toMatchObject({ status: 403, code: "approval_required" });
    const person = new Person(place.broker);
    expect(await person.question(asked.approval_id)).toMatchObject({
      kind: "scopes",
      reason: "The data is there",
      subject: { scopes: ["net:xn--bcher-kva.example.test:8080"] },
      offers: ["once", "session", "deny"],
      notes: ["'net:B\u00fccher.Example.test:8080' is 'net:xn--bcher-kva.example.test:8080'"],
    });
    await person.answer(asked.approval_id, "deny");
    const { seen } = await place.internet.during(() => asker.ask(scopes));
    expect(seen.questions).toEqual([]);
  });

  test("a granted name is reached on its port by the command that has the token, and by no other", async () => {
    expect(await dialled(`${NAME} 8080`)).toEqual(["NXDOMAIN", []]);
    const scope_token = await asker.granted([`net:${NAME}:8080`]);
    const targets = `${NAME} 8080 ${NAME} 80 collector.evil.test 8080 ${GIVEN} 80`;
    expect(await dialled(targets, { scope_token })).toEqual([
      "connected ECONNRESET NXDOMAIN connected",
      ["203.0.113.20:8080", "203.0.113.10:80"],
    ]);
    expect(await dialled(`${NAME} 8080 ${GIVEN} 80`)).toEqual(["NXDOMAIN connected", ["203.0.113.10:80"]]);
  });

  test("the reply and every line of the trace name the scope, and the policy as it is", async () => {
    const scope_token = await asker.granted([`net:${NAME}:8080`]);
    const reply = await place.broker.run({ cmd: `python3 dial.py ${NAME} 8080`, scope_token });
    expect(reply.scopes_used).toEqual([`net:${NAME}:8080`]);
    expect(reply.usage.egress_bytes).toBeGreaterThan(0);
    const lines = place.broker.spans().filter(({ world_id }) => world_id === reply.world_id);
    const connection = lines.find(({ event_type }) => event_type === "connection");
    expect(connection).toMatchObject({
      parent_span: reply.span_id,
      scopes_used: [`net:${NAME}:8080`],
      decision: { verdict: "allow" },
    });
    expect(new Set(lines.map(({ policy_hash }) => policy_hash))).toEqual(new Set([reply.policy_hash]));
  });

  test("an address and a range are reached by address, on their port alone", async () => {
    const scope_token = await asker.granted(["net:203.0.113.20:8080", "net:203.0.113.64/30:80"]);
    expect(
      await dialled("203.0.113.20 8080 203.0.113.66 80 203.0.113.20 80 203.0.113.66 8080 203.0.113.68 80", {
        scope_token,
      }),
    ).toEqual([
      "connected connected ECONNREFUSED ECONNREFUSED ECONNREFUSED",
      ["203.0.113.20:8080", "203.0.113.66:80"],
    ]);
  });

  test("what the policy gives comes at once, and adds nothing", async () => {
    const scope_token = await asker.token([`net:${GIVEN}:443`]);
    expect(await dialled(`${GIVEN} 80 ${NAME} 443`, { scope_token })).toEqual([
      "connected NXDOMAIN",
      ["203.0.113.10:80"],
    ]);
  });

  test("where two policies hold, a scope is added to what both give", async () => {
    const body = { profile: "narrow" };
    expect(await dialled(`${NAME} 80 ${GIVEN} 80`, body)).toEqual(["NXDOMAIN NXDOMAIN", []]);
    const scope_token = await asker.granted([`net:${NAME}:80`], "once", body);
    expect(await dialled(`${NAME} 80 ${GIVEN} 80`, { ...body, scope_token })).toEqual([
      "connected NXDOMAIN",
      ["203.0.113.20:80"],
    ]);
  });

  test("a token for the session works for each of its commands, an isolated one too", async () => {
    const scope_token = await asker.granted([`net:${NAME}:80`], "session");
    for (const cmd of ["python3 dial.py", "python3 -B dial.py"]) {
      const ran = (): Promise<Ran> => place.broker.run({ cmd: `${cmd} ${NAME} 80`, scope_token });
      const { result, seen } = await place.internet.during(ran);
      expect(result.decision.verdict).toBe(cmd.includes("-B") ? "isolate" : "allow");
      expect(seen.connections).toMatchObject([{ to: { address: "203.0.113.20", port: 80 } }]);
    }
  });
});
