import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type TestBroker } from "../support/broker/broker.ts";
import { withBroker } from "../support/broker/budgets.ts";
import { actors } from "../support/users/users.ts";

const POLICY = `id: default
name: Counted
mode: enforce
commands: { denied: ["forbidden *"], ask: ["careful *"], isolated: ["touch *"] }
`;
const CONFIG = "agents: { private: {} }\n";

function get(broker: TestBroker, socket: string, path: string): Promise<{ type: unknown; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: join(broker.home, "sock", socket), path }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ type: response.headers["content-type"], text }));
    });
    asked.on("error", reject).end();
  });
}

describe.each(actors().slice(0, 1))("on every socket, as $kind", (actor) => {
  test("GET /metrics counts commands by verdict and names nobody; GET /v1/openapi.json describes the calls", async () => {
    await withBroker(actor, { policies: { default: POLICY }, config: CONFIG }, async (broker) => {
      await broker.run("true");
      await broker.run("touch held");
      for (const cmd of ["forbidden 1", "careful 1", "forbidden 2"]) await broker.post({ cmd });
      for (const socket of ["agent.sock", "control.sock", "agents/private.sock"]) {
        const { type, text } = await get(broker, socket, "/metrics");
        expect(type).toBe("text/plain; version=0.0.4; charset=utf-8");
        for (const line of text.trimEnd().split("\n"))
          expect(line).toMatch(
            /^(# (HELP|TYPE) substrate_\w+ .+|substrate_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.e+]+)$/,
          );
        const count = (name: string): number => Number(text.split(`\nsubstrate_${name} `)[1]?.split("\n")[0]);
        const verdicts = ["allow", "isolate", "deny", "ask"].map((verdict) =>
          count(`commands_total{verdict="${verdict}"}`),
        );
        expect(verdicts).toEqual([1, 1, 2, 1]);
        expect([count("worlds"), count("approvals_waiting")]).toEqual([1, 1]);
        expect(count('spans_total{event_type="command_start"}')).toBe(2);
        expect(text).not.toContain("test");
        const api = JSON.parse((await get(broker, socket, "/v1/openapi.json")).text) as {
          openapi: string;
          paths: object;
        };
        expect(api.openapi).toBe("3.1.0");
        expect(Object.keys(api.paths)).toEqual(expect.arrayContaining(["/v1/execute", "/metrics"]));
      }
    });
  });
});
