import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { put, replayed, SAME } from "../support/broker/replays.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";

const NAME = "registry.example.test";

describe.each(actors())("replays and the network, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy([NAME]) });
  });
  afterAll(() => place.close());

  const setPolicy = (text: string): void =>
    put(place.broker, join(place.broker.home, "policies/default.yaml"), text);

  test("a replay reaches what the policy of today allows: what it allowed once no packet goes to", async () => {
    const { broker, internet } = place;
    const cmd = `curl -sS --max-time 5 -o /dev/null -w '%{http_code}\\n' http://${NAME}/`;
    const ran = await broker.run(cmd);
    expect(ran).toMatchObject({ exit: 0 });
    // The twin: it is allowed still, so the replay reaches it as the command did.
    const allowed = await internet.during(() => replayed(broker, ran.span_id));
    expect(allowed.result).toMatchObject({ matches: SAME });
    expect(allowed.seen.connections.length).toBeGreaterThan(0);

    setPolicy(networkPolicy(["other.example.test"]));
    const refused = await internet.during(() => replayed(broker, ran.span_id));
    expect(refused.seen.connections).toEqual([]);
    expect(refused.seen.questions).toEqual([]);
    expect(refused.result).toMatchObject({ matches: { exit: false } });
    expect(refused.result.drift.map(({ what }) => what)).toContain("policy_hash");
  });

  test("under a policy that the operator names its network holds, and not the assigned one's", async () => {
    const { broker, internet } = place;
    setPolicy(networkPolicy([NAME]));
    put(
      broker,
      join(broker.home, "policies/offline.yaml"),
      networkPolicy([]).replace("id: default", "id: offline"),
    );
    const ran = await broker.run(`curl -sS --max-time 5 -o /dev/null http://${NAME}/`);
    expect(ran).toMatchObject({ exit: 0 });
    const { result, seen } = await internet.during(() =>
      broker.operator("POST", `/v1/replay/${ran.span_id}`, { policy: "offline" }),
    );
    expect(result).toMatchObject({ status: 200, document: { matches: { exit: false } } });
    expect(seen.connections).toEqual([]);
    setPolicy(networkPolicy([]));
    put(
      broker,
      join(broker.home, "policies/online.yaml"),
      networkPolicy([NAME]).replace("id: default", "id: online"),
    );
    const online = await internet.during(() =>
      broker.operator("POST", `/v1/replay/${ran.span_id}`, { policy: "online" }),
    );
    expect(online.result).toMatchObject({ status: 200, document: { matches: { exit: true } } });
    expect(online.seen.connections.length).toBeGreaterThan(0);
  });
});
