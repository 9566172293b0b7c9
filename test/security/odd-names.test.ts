import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

/** Names that are no UTF-8, which a string of Node's does not hold: how a shell makes them, and how they are shown. */
const ODD = `"$(printf 'odd\\377')"`;
const SHOWN = "odd\ufffd";

describe.each(actors())("names that are not UTF-8, as $kind", (actor) => {
  let broker: TestBroker | undefined;
  afterEach(() => broker?.stop());

  test("do not keep a denied name in the project, or from being reported", async () => {
    broker = await TestBroker.start(actor, {
      policies: {
        default: `id: default\nname: Odd\nmode: enforce\nfs: { deny_read: ["**/.env", "*.pem"] }\n`,
      },
    });
    const ran = await broker.run(
      `mkdir ${ODD} && echo x > ${ODD}/.env; echo x > ${ODD}.pem; echo x > ${ODD}/kept; true`,
    );
    const left = spawnSync("find", [
      broker.project,
      "-name",
      ".env",
      "-o",
      "-name",
      "*.pem",
      "-o",
      "-name",
      "kept",
    ]);
    expect(left.stdout.toString().trim().split("/").at(-1)).toBe("kept");
    const told = broker
      .spans()
      .filter((span) => span.parent_span === ran.span_id && span.violation !== undefined);
    expect(told.map((span) => span.violation?.subject ?? "").toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      join(broker.project, `${SHOWN}.pem`),
      join(broker.project, SHOWN, ".env"),
    ]);
  });

  test("are listed among the changes of an isolated command", async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: `id: default\nname: Odd\nmode: enforce\ncommands: { isolated: ["sh *"] }\n` },
    });
    broker.write(join(broker.project, "run.sh"), `mkdir ${ODD}; echo x > ${ODD}/f; echo y > ${ODD}.txt\n`);
    const ran = await broker.run("sh run.sh");
    expect(ran.fs_diff).toMatchObject({
      writes: [`${SHOWN}.txt`, `${SHOWN}/f`],
      dirs: [SHOWN],
      summary: null,
    });
    expect(ran.fs_diff?.tree_hash).toMatch(/^sha256:/);
  });

  test("are listed among the writes that stay in the world", async () => {
    const folder = mkdtempSync(join(actor.home, "sb-odd-"));
    broker = await TestBroker.start(actor, {
      folder,
      policies: {
        default: `id: default\nname: Odd\nmode: observe\nfs: { scratch: ["${folder}/beside/**"] }\n`,
      },
    });
    broker.write(join(folder, "beside/f"), "");
    const ran = await broker.run(
      `echo x > ../beside/${ODD}; mkdir ../beside/d${ODD}; echo y > ../beside/d${ODD}/in`,
    );
    expect(ran.fs_diff?.world_only).toEqual([
      join(folder, "beside", `d${SHOWN}`, "in"),
      join(folder, "beside", SHOWN),
    ]);
  });
});
