import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actorsWith } from "../support/run/needs.ts";
import { skippedTest } from "../support/run/skips.ts";
import { TestInternet } from "../support/network/internet.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { ZONE } from "../support/network/zone.ts";

const NAME = "registry.example.test";
const LOCAL = "local.example.test";

/** Runs what follows where every nft is a file that cannot be run. */
const WITHOUT_NFT = [
  "unshare",
  "--mount",
  "sh",
  "-c",
  'for nft in /usr/sbin/nft /usr/bin/nft; do [ -e $nft ] && mount --bind /dev/null $nft; done; exec "$@"',
  "sh",
];

/** An ordinary user would need a user namespace for the mount, and is somebody else in it. */
const ROOT = actorsWith("python3").filter(({ uid }) => uid === 0);
if (process.getuid?.() !== 0)
  skippedTest("names and listeners of worlds without nft", "covering nft in a mount namespace takes root");

describe.each(ROOT)("without nft, as $kind", (actor) => {
  let internet: TestInternet;
  let place: NetworkPlace;
  beforeAll(async () => {
    internet = await TestInternet.open({ zone: { ...ZONE, [LOCAL]: { addresses: ["127.0.0.1"] } } });
    const policy = networkPolicy([NAME, `${LOCAL}:5432`, "127.0.0.0/8:5432"]);
    place = await NetworkPlace.in(internet, actor, { default: policy }, { wrap: () => WITHOUT_NFT });
  });
  afterAll(async () => {
    await place.broker.stop();
    await internet.close();
  });

  test("a world says what it lacks, and its names are reached", async () => {
    const { result, seen } = await place.during(`curl -sS http://${NAME}/`);
    expect(result.stdout, result.stderr).toBe(`hello from ${NAME}\n`);
    expect(result.isolation.net).toMatch(/^degraded: .*nft/);
    expect(seen.connections.map(({ to }) => to.address)).toEqual(["203.0.113.10"]);
  });

  test("a world's own localhost is not the host's, though a range of the policy covers it; a name that leads there does", async () => {
    const addresses = ["127.0.0.1", "127.0.0.53", "127.1.2.3", "0.0.0.0"];
    const direct = await place.dial(addresses.map((address) => `${address} 5432`));
    expect(direct.dialled.map(({ came }) => came)).not.toContain("connected");
    expect(direct.seen.connections).toEqual([]);
    const named = await place.dial([`${LOCAL} 5432`]);
    expect(named.dialled.map(({ came }) => came)).toEqual(["connected"]);
    expect(named.seen.connections.map(({ to }) => to)).toEqual([{ address: "127.0.0.1", port: 5432 }]);
  });
});
