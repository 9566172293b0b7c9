import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { everyActor } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { thoseWith } from "../support/run/needs.ts";
import { recordSkip } from "../support/run/skips.ts";
import { DIAL, readDialled } from "../support/network/dial.ts";
import { connectionsTo, TestInternet } from "../support/network/internet.ts";
import { networkPolicy } from "../support/network/place.ts";

const NAME = "registry.example.test";

/** Covers every nft of the host for whoever runs below it; nothing of the host changes. */
const WITHOUT_NFT = [
  "unshare",
  "--mount",
  "sh",
  "-c",
  'for nft in /usr/sbin/nft /sbin/nft /usr/bin/nft /usr/local/sbin/nft; do [ -e $nft ] && mount --bind /dev/null $nft; done; exec "$@"',
  "sh",
];

const isRoot = process.getuid?.() === 0;
if (!isRoot) recordSkip({ what: "a host without nft", why: "covering nft in a mount namespace takes root" });

describe.skipIf(!isRoot).each(thoseWith(["python3"], everyActor()))(
  "a host without nft, as $kind",
  (actor) => {
    let internet: TestInternet;
    let broker: TestBroker;
    beforeAll(async () => {
      internet = await TestInternet.open();
      const policies = { default: networkPolicy([NAME, "203.0.113.40/32"]) };
      broker = await TestBroker.start(actor, { policies, within: [...internet.enter, ...WITHOUT_NFT] });
      broker.write(join(broker.project, "dial.py"), DIAL);
    });
    afterAll(async () => {
      await broker.stop();
      await internet.close();
    });

    async function dial(...targets: readonly string[]) {
      const { result, seen } = await internet.during(() =>
        broker.run(["python3 dial.py", ...targets.flatMap((target) => target.split(" "))].join(" ")),
      );
      return { came: readDialled(result.stdout).map(({ came }) => came), seen, result };
    }

    test("says so in the vector", async () => {
      const { isolation } = await broker.run("true");
      expect(isolation.net).toMatch(/^degraded: nft is not installed on this host/);
    });

    test("has names and ranges on the ports that are listened on", async () => {
      const { came, seen, result } = await dial(`${NAME} 80`, `${NAME} 443`, "203.0.113.40 80");
      // What is dialled there speaks TLS and ends what is none.
      expect(came, result.stderr).toEqual(["connected", "closed", "connected"]);
      expect(seen.connections.map(({ to }) => `${to.address} ${to.port}`)).toEqual([
        "203.0.113.10 80",
        "203.0.113.10 443",
        "203.0.113.40 80",
      ]);
    });

    test("lets nothing else out: other names, other addresses, other ports", async () => {
      const { seen } = await dial(
        "stranger.example.test 80",
        "203.0.113.10 80",
        "203.0.113.10 443",
        `${NAME} 8080`,
        "127.0.0.1 80",
      );
      expect(connectionsTo(seen, "http")).toEqual([]);
      expect(seen.connections).toEqual([]);
      const udp = await internet.during(() =>
        broker.run("echo x > /dev/udp/203.0.113.53/53; bash -c 'echo x > /dev/udp/203.0.113.53/53'"),
      );
      expect(udp.seen.questions).toEqual([]);
    });
  },
);
