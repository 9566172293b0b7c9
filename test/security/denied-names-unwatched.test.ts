import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";
import { skippedTest } from "../support/run/skips.ts";
import { spawnAs } from "../support/users/users.ts";

const POLICY = `
id: default
name: Denied names
mode: enforce
fs:
  deny_read: ["**/.env"]
`;

/** Takes every instance of its user, also those that other tests of the same user give back meanwhile. */
const HOG = `
import ctypes, time
libc = ctypes.CDLL(None)
count, told = 0, False
while True:
    if libc.inotify_init1(0) >= 0: count += 1
    else:
        if not told: print(count, flush=True)
        told = True
        time.sleep(0.0005)
`;

if (actorsWith("python3").some(({ uid }) => uid === 0))
  skippedTest(
    "denied names without inotify, as root",
    "taking all of root's instances would disturb the machine; it is proved as an ordinary user",
  );

describe.each(actorsWith("python3").filter(({ uid }) => uid !== 0))(
  "denied names on a host whose inotify instances are all taken, as $kind",
  (actor) => {
    test("are denied all the same, those that appear later too", async () => {
      const hog = spawnAs(actor, ["python3", "-c", HOG], { stdio: ["pipe", "pipe", "inherit"] });
      const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
      try {
        await new Promise((resolve) => hog.stdout?.once("data", resolve));
        broker.write(join(broker.project, ".env"), "TOKEN=one");
        expect((await broker.run("cat .env; true")).stdout).toBe("");
        broker.write(join(broker.project, "later/.env"), "TOKEN=two");
        const ran = await broker.run(
          "cat later/.env; mkdir made; echo x > made/.env; echo y > made/env; true",
        );
        expect(ran.stdout).toBe("");
        expect(existsSync(join(broker.project, "made/.env"))).toBe(false);
        expect(existsSync(join(broker.project, "made/env"))).toBe(true);
        expect(readFileSync(join(broker.project, "later/.env"), "utf8")).toBe("TOKEN=two");
        expect(ran.isolation.mount).toBe("on");
      } finally {
        await broker.stop();
        hog.kill("SIGKILL");
      }
    });

    test("are not noticed in a tree too large to look through, and the vector says so", async () => {
      const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
      for (let folder = 0; folder < 300; folder += 1)
        mkdirSync(join(broker.project, `many/${folder}`), { recursive: true });
      broker.write(join(broker.project, "many/file"), "x");
      const hog = spawnAs(actor, ["python3", "-c", HOG], { stdio: ["pipe", "pipe", "inherit"] });
      try {
        await new Promise((resolve) => hog.stdout?.once("data", resolve));
        expect((await broker.run("true")).isolation.mount).toMatch(
          /^degraded: .*30[0-9] of the project's folders/,
        );
      } finally {
        await broker.stop();
        hog.kill("SIGKILL");
      }
    });
  },
);
