/** Shims with as many words as the kernel takes: decided while they can be read, and never let through unread. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Span } from "../../schemas/generated/types.ts";
import { type Ended, actors, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { pathWithShims, SHIM_POLICY, toolFor } from "../support/broker/shims.ts";

const POLICY = `${SHIM_POLICY}  opaque: allow\n`;

const X = 0x78;

/** Prints how many words of how many bytes it was given. */
const COUNT = `shift; printf '%s %s' "$#" "$(printf %s "$@" | wc -c)"`;

describe.each(actors())("a shim of many words, as $kind", (actor) => {
  describe.each(["enforce", "observe"] as const)("in %s mode", (mode) => {
    let broker: TestBroker;
    let bin = "";
    beforeAll(async () => {
      broker = await TestBroker.start(actor, { policies: { default: POLICY.replace("enforce", mode) } });
      bin = await toolFor(broker);
      broker.write(join(bin, "tool"), `#!/bin/sh\n${COUNT}\n`);
    });
    afterAll(() => broker.stop());

    function run(script: string): Promise<Ended> {
      const env = { PATH: pathWithShims(broker, bin), SUBSTRATE_HOME: broker.home };
      return runAs(actor, ["/bin/sh", "-c", script], { cwd: broker.project, env });
    }

    /** By xargs from a file: what it is given fits into no argument list of ours. */
    function start(first: string, count: number, byte: number, length: number): Promise<Ended> {
      const file = join(broker.project, first);
      writeFileSync(
        file,
        Buffer.concat(Array(count).fill(Buffer.concat([Buffer.alloc(length, byte), Buffer.of(0)]))),
      );
      return run(`xargs -0 -x -n ${count} -s 2000000 -a '${file}' tool ${first}`);
    }

    function recorded(first: string): Span | undefined {
      return broker.spans().find((span) => span.cmd?.startsWith(`["tool","${first}"`) === true);
    }

    test("lets a line of 100 KB and what xargs makes of 128 KB start, cut in its span", async () => {
      for (const [first, count, length] of [
        ["line", 2000, 49],
        ["xargs", 16, 8000],
      ] as const) {
        const { code, stdout, stderr } = await start(first, count, X, length);
        expect([code, stdout], stderr).toEqual([0, `${count} ${count * length}`]);
        const span = recorded(first);
        expect(span?.decision).toMatchObject({ verdict: "allow", rule: null });
        expect(span?.cmd?.length).toBeLessThan(80_000);
        expect(span?.cmd).toMatch(/x… \[cut: \d+ characters, sha256:[0-9a-f]{64}\]"\]$/);
      }
    });

    test("stops such a line where a rule does", async () => {
      const { code, stdout } = await start("denied", 2000, X, 49);
      expect([code === 0, stdout === ""]).toEqual([mode === "observe", mode === "enforce"]);
      expect(recorded("denied")?.decision?.rule?.pattern).toBe("tool denied *");
    });

    test.each([
      ["2 MB of words", "large", 38, X, 50_000],
      ["100,000 words", "many", 100_000, X, 1],
      ["words that JSON writes six times as long", "escaped", 18, 1, 100_000],
      ["words that are no UTF-8", "bytes", 15, 255, 120_000],
    ] as const)(
      "of which no rule can be decided is denied or recorded: %s",
      async (_what, first, count, byte, length) => {
        const { code, stdout, stderr } = await start(first, count, byte, length);
        expect(recorded(first)?.agent_id, stderr).toBe("human");
        if (mode === "observe")
          return expect([code, stdout], stderr).toEqual([0, `${count} ${count * length}`]);
        expect([code === 0, stdout]).toEqual([false, ""]);
        expect(stderr).toContain("too long to be checked");
      },
    );

    test("of which no rule can be decided for its variables is denied or recorded", async () => {
      const names = Array.from({ length: 5000 }, (_, at) => `export V${at}=x`);
      const { code, stderr } = await run(`${names.join("\n")}\ntool variables`);
      expect([code === 0, recorded("variables")?.agent_id], stderr).toEqual([mode === "observe", "human"]);
    });
  });
});
