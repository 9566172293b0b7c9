import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ApprovalPreviewReply } from "../../schemas/generated/types.ts";
import { Person } from "../support/broker/approvals.ts";
import { actorsWith } from "../support/run/needs.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";

const NAME = "registry.example.test";
const ALLOWED = [NAME, "203.0.113.0/24", "host.internal:5432"];

describe.each(actorsWith("python3", "nft"))(
  "a command that is tried out before a person is asked, as $kind",
  (actor) => {
    let place: NetworkPlace;
    beforeAll(async () => {
      const more = `commands: { ask: ["sh dial.sh"] }\n`;
      place = await NetworkPlace.open(actor, { default: networkPolicy(ALLOWED, { more }) });
      // Each that is reached leaves a file, which the preview would list.
      const dials = [NAME, "203.0.113.10"].map(
        (host) => `python3 dial.py ${host} 80 > came; grep -q connected came && touch reached-${host}`,
      );
      place.broker.write(
        `${place.broker.project}/dial.sh`,
        `${dials.join("\n")}\npython3 dial.py host.internal 5432\ntouch ended\n`,
      );
    });
    afterAll(() => place.close());

    test("reaches nothing of what its policy allows, at once, and all of it once somebody says yes", async () => {
      const person = new Person(place.broker);
      const { approval_id: id, code } = await person.told({ cmd: "sh dial.sh" });
      expect(code).toBe("approval_required");
      const { result, seen } = await place.internet.during(() =>
        place.broker.operator("POST", `/v1/approvals/${id}/preview`),
      );
      const { preview } = result.document as ApprovalPreviewReply;
      expect(preview).toMatchObject({ state: "done", exit: 0, names: ["came", "ended"] });
      expect(preview.duration_ms).toBeLessThan(3000);
      expect(seen).toMatchObject({ connections: [], questions: [], datagrams: [] });
      await person.answer(id, "once");
      const ran = await place.internet.during(() => place.broker.run("sh dial.sh"));
      expect(ran.seen.connections.map(({ to }) => to.address)).toEqual([
        "203.0.113.10",
        "203.0.113.10",
        "127.0.0.1",
      ]);
    });
  },
);

describe.each(actorsWith("python3"))("a command that would have the host's network, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    const rules = 'world: { isolate_network: false }\ncommands: { ask: ["sh dial.sh"] }\n';
    place = await NetworkPlace.open(actor, { default: `id: default\nname: x\nmode: enforce\n${rules}` });
    const dial =
      "python3 dial.py 203.0.113.10 80 > came; grep -q connected came && touch reached; touch ended\n";
    place.broker.write(`${place.broker.project}/dial.sh`, dial);
  });
  afterAll(() => place.close());

  test("has none while it is tried out, and has it once somebody says yes", async () => {
    const person = new Person(place.broker);
    const { approval_id: id } = await person.told({ cmd: "sh dial.sh" });
    const { result, seen } = await place.internet.during(() =>
      place.broker.operator("POST", `/v1/approvals/${id}/preview`),
    );
    const { preview } = result.document as ApprovalPreviewReply;
    expect(preview).toMatchObject({ state: "done", exit: 0, names: ["came", "ended"] });
    expect(seen.connections).toEqual([]);
    await person.answer(id, "once");
    const ran = await place.internet.during(() => place.broker.run("sh dial.sh"));
    expect(ran.seen.connections.map(({ to }) => to.address)).toEqual(["203.0.113.10"]);
  });
});
