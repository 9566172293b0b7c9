import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { DESCRIPTORS } from "../support/programs/processes.ts";

/** Starts the broker with descriptors of a secret that it was never told of, low and above 1024. */
const INHERITING = [
  "bash",
  "-c",
  'ulimit -n 4096; echo held > "$0"; exec 9< "$0" 1500<> "$0" 4000< "$0"; exec "$@"',
] as const;

describe.each(actors())("descriptors, as $kind", (actor) => {
  test("that the broker inherited or opened are not there inside, by number or by /proc; a command's own are, and its children have them", async () => {
    const broker = await TestBroker.start(actor, {
      wrap: (folder) => [...INHERITING, join(folder, "home/held")],
    });
    try {
      buildProgram(broker, "descriptors", DESCRIPTORS);
      const open = readdirSync(`/proc/${broker.process.pid}/fd`);
      expect(open).toEqual(expect.arrayContaining(["9", "1500", "4000"]));
      expect(readlinkSync(`/proc/${broker.process.pid}/fd/1500`)).toBe(held(broker));
      expect((await broker.run({ argv: ["./descriptors"] })).stdout).toBe("end\n");
      const kept = await broker.run({ cmd: "(sleep 0.1; ./descriptors > seen) & true", background: "keep" });
      expect(kept.exit).toBe(0);
      const reads = await broker.run(
        "for p in /proc/[0-9]*; do for n in 9 1500 4000; do cat $p/fd/$n; echo stray > $p/fd/$n; done; done 2>/dev/null; until grep -qs end seen; do sleep 0.02; done; cat seen",
      );
      expect(reads.stdout).toBe("end\n");
      expect(readFileSync(held(broker), "utf8")).toBe("held\n");
      broker.write(join(broker.project, "own"), "own words");
      expect(
        (await broker.run({ cmd: "ulimit -n 2000; exec 1500< own; bash -c 'cat <&1500'", shell: "bash" }))
          .stdout,
      ).toBe("own words");
    } finally {
      await broker.stop();
    }
  });
});

function held(broker: TestBroker): string {
  return join(broker.home, "held");
}
