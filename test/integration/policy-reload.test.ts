import { renameSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { parsePolicy } from "../../broker/policy/index.ts";
import type { CheckReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const RULES = 1000;
const REQUESTS = 2000;
const PER_SECOND = 1000;
/** One in this many requests is sent right after an edit. */
const EDIT_EVERY = 100;

/** So that a machine that cannot keep up answers between the edits all the same. */
const MOST_WAITING = 64;

/** 1,000 rules; of the two policies only one denies `probe`. */
function policyText(denies: boolean): string {
  const rules = Array.from(
    { length: RULES - 1 },
    (_, index) => `    - "program${index} sub --flag${index} *"\n`,
  );
  const probe = denies ? "probe *" : "another *";
  return `id: default\nname: x\nmode: enforce\ncommands:\n  denied:\n${rules.join("")}    - "${probe}"\n`;
}

const POLICIES = [true, false].map((denies) => {
  const text = policyText(denies);
  const loaded = parsePolicy(text, "default.yaml");
  if (!("ok" in loaded)) throw new Error("The policy must load");
  return { text, hash: loaded.ok.hash, verdict: denies ? "deny" : "allow" };
});

describe.each(actors().slice(0, 1))("a policy that is edited under load, as $kind", (actor) => {
  test("every answer follows the old or the new policy by its hash, and an edit holds for the next request", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: policyText(true) } });
    const agent = new Agent({ keepAlive: true, maxSockets: 32 });
    try {
      const file = join(broker.home, "policies/default.yaml");
      let edits = 0;
      let waiting = 0;
      const answers: Promise<void>[] = [];
      const seen = new Map<string, number>();
      const begin = performance.now();
      while (answers.length < REQUESTS) {
        const due = Math.min(REQUESTS, ((performance.now() - begin) / 1000) * PER_SECOND);
        while (answers.length < due && waiting < MOST_WAITING) {
          if (answers.length % EDIT_EVERY === EDIT_EVERY / 2) {
            edits += 1;
            replaceFile(file, POLICIES[edits % 2]?.text ?? "");
          }
          const sentAfter = edits;
          waiting += 1;
          const body = { agent_id: "load", cwd: broker.project, cmd: `probe ${answers.length}` };
          answers.push(
            check(agent, broker, body)
              .then(({ policy_hash: hash, decision }) => {
                const policy = POLICIES.find((one) => one.hash === hash);
                expect(decision.verdict).toBe(policy?.verdict);
                if (edits === sentAfter) expect(hash).toBe(POLICIES[edits % 2]?.hash);
                seen.set(hash, (seen.get(hash) ?? 0) + 1);
              })
              .finally(() => {
                waiting -= 1;
              }),
          );
        }
        await turn();
      }
      await Promise.all(answers);
      expect(edits).toBe(REQUESTS / EDIT_EVERY);
      expect([...seen.keys()].sort()).toEqual(POLICIES.map(({ hash }) => hash).sort());
      for (const count of seen.values()) expect(count).toBeGreaterThan(REQUESTS / 10);
    } finally {
      agent.destroy();
      await broker.stop();
    }
  });
});

function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

function check(agent: Agent, broker: TestBroker, body: object): Promise<CheckReply> {
  return new Promise((resolve, reject) => {
    const socketPath = join(broker.home, "sock/agent.sock");
    const outgoing = request({ socketPath, path: "/v1/check", method: "POST", agent }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => {
        const text = Buffer.concat(parts).toString("utf8");
        if (response.statusCode === 200) resolve(JSON.parse(text) as CheckReply);
        else reject(new Error(`Expected 200, received ${response.statusCode}: ${text}`));
      });
    });
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify(body));
  });
}
