import { describe, expect, test } from "vitest";
import { Observations } from "../../broker/learn/observations.ts";
import { learn, policy, span, type Told, values } from "../learned.ts";

const TEXT = `id: p
name: P
net:
  allowed:
    - a.example # ours
    - 203.0.113.0/24
  dns: { refresh_secs: 5 }
`;
const to = (place: string, more: Partial<Told> = {}): Told => ({ to: place, ...more });

describe("a connection that observe let through", () => {
  test("gives its name, once for the usual ports, and with its port for another one", () => {
    const proposal = learn(TEXT, [
      to("b.example:443"),
      to("b.example:80"),
      to("b.example:8080"),
      to("xn--bcher-kva.example:22"),
      to("a.example:8443"),
    ]);
    expect(values(proposal)).toEqual([
      "net.allowed b.example",
      "net.allowed b.example:8080",
      "net.allowed xn--bcher-kva.example",
      "net.allowed a.example:8443",
    ]);
    expect(proposal.text).toContain(`    - 203.0.113.0/24
    - "b.example" # seen 2 times, last 2026-01-02T00:00:00Z, spn_0 spn_1
    - "b.example:8080" # seen once, last 2026-01-03T00:00:00Z, spn_2
`);
    expect(proposal.checked.connections).toBe(5);
  });

  test("that the policy allows by now, or allowed then, needs nothing", () => {
    const proposal = learn(TEXT, [
      to("a.example:443"),
      to("203.0.113.9:22"),
      to("c.example:443", { verdict: "allow" }),
    ]);
    expect([proposal.patch, proposal.connections]).toMatchObject(["", { stopped: [], allowed: 2 }]);
  });

  test("is only told when it was by address, to the host itself, or led nowhere", () => {
    const proposal = learn(TEXT, [
      to("198.51.100.7:443"),
      to("host.internal:5432"),
      to("gone.example:443", { failed: "'gone.example' cannot be resolved on the host: ENOTFOUND" }),
    ]);
    expect(proposal.patch).toBe("");
    expect(proposal.connections.stopped.map(({ to: place, why }) => `${place}: ${why}`)).toEqual([
      expect.stringMatching(/^198\.51\.100\.7:443: it was dialled by address/),
      expect.stringMatching(/^host\.internal:5432: services on the host's own localhost/),
      "gone.example:443: the connection failed ('gone.example' cannot be resolved on the host: ENOTFOUND)",
    ]);
  });

  test("that failed once and reached a server at another time is proposed", () => {
    const told = [to("b.example:443"), to("b.example:443", { failed: "ECONNREFUSED" })];
    for (const order of [told, told.toReversed()])
      expect(values(learn(TEXT, order))).toEqual(["net.allowed b.example"]);
  });

  test.each([
    ["no section", "id: p\nname: P\n"],
    ["an empty list", "id: p\nname: P\nnet: { allowed: [] }\n"],
    ["an empty section", "id: p\nname: P\nnet: {}\nmode: observe\n"],
    ["a section in one line without the list", "id: p\nname: P\nnet: { dns: { refresh_secs: 5 } } # asks\n"],
    [
      "a section without the list",
      "id: p\nname: P\nnet:\n  dns: { refresh_secs: 5 } # asks\nmode: observe\n",
    ],
    ["a list in one line", 'id: p\nname: P\nnet:\n  allowed: ["a.example"]\n'],
  ])("finds its place where the file has %s", (_name, text) => {
    const before = policy(text).document;
    const proposal = learn(text, [to("b.example:443")]);
    expect(policy(proposal.text).document).toEqual({
      ...before,
      net: { ...before.net, allowed: [...(before.net?.allowed ?? []), "b.example"] },
    });
  });

  test("says nothing about commands, and a name that was refused is told as what it is", () => {
    const observations = new Observations({ policyId: "p", agent: undefined, since: undefined });
    observations.add(span(to("b.example:443")));
    const refused = {
      ...span({}),
      event_type: "violation",
      cmd: null,
      outcome: "refused",
      decision: null,
    } as const;
    observations.add({ ...refused, violation: { kind: "name", subject: "c.example" } });
    observations.add(refused);
    expect(observations.all()).toMatchObject({
      spans: 3,
      commands: [],
      connections: [{ host: "b.example", port: 443, reached: true, reason: null }],
      violations: [{ kind: "name", subject: "c.example" }],
      skipped: { redacted: 0 },
    });
  });
});
