import { existsSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HealthReply } from "../../schemas/generated/types.ts";
import { type Actor, currentUser, everyActor, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { checkOf, reportOf } from "../support/broker/doctor-report.ts";
import { installationFor } from "../support/broker/installation.ts";
import { thoseWith } from "../support/run/needs.ts";
import { recordSkip } from "../support/run/skips.ts";

const NFT = ["/usr/sbin/nft", "/usr/bin/nft", "/usr/local/sbin/nft"].filter((path) => existsSync(path));

/** What cannot be executed lies over each nft, for the broker and all that it starts. */
const WITHOUT_NFT = [
  "unshare",
  "--mount",
  "sh",
  "-c",
  `${NFT.map((path) => `mount --bind /dev/null ${path} && `).join("")}exec "$@"`,
  "sh",
];

const DEGRADED = /^degraded: nft is not installed on this host \(Debian: apt-get install nftables\)/;

/** Prints what came of dialling: `hello`, or an errno. */
const DIAL = `
import errno, socket, sys
for host, port in (place.rsplit(":", 1) for place in sys.argv[1:]):
    try:
        with socket.create_connection((host, int(port)), timeout=3) as s: print(s.recv(5).decode() or "nothing")
    except socket.gaierror: print("unknown")
    except OSError as e: print(errno.errorcode.get(e.errno, e))
`;

const isRoot = currentUser().uid === 0;
if (!isRoot) recordSkip({ what: "on a host without nft", why: "only root can lay something over it" });

describe.skipIf(!isRoot).each(thoseWith(["python3"], everyActor()))(
  "on a host without nft, as $kind",
  (actor) => {
    let broker: TestBroker;
    let servers: readonly Server[];
    let ports: readonly number[];
    beforeAll(async () => {
      servers = [greeting(), greeting()];
      ports = await Promise.all(servers.map(listening));
      broker = await TestBroker.start(actor, { policies: { default: policy("") }, within: WITHOUT_NFT });
      broker.write(join(broker.project, "dial.py"), DIAL);
    });
    afterAll(async () => {
      await broker.stop();
      for (const server of servers) server.close();
    });

    test("a world that may reach nothing is whole, and one that may says what it lacks", async () => {
      const before = await broker.run(`python3 dial.py host.internal:${ports[0]}`);
      expect(before).toMatchObject({ stdout: "unknown\n", isolation: { net: "on" } });
      broker.write(join(broker.home, "policies/default.yaml"), policy(`host.internal:${ports[0]}`));
      const after = await broker.run("true");
      expect(after.world_id).toBe(before.world_id);
      expect(after.isolation.net).toMatch(DEGRADED);
    });

    test("a port that has had connections is listened on again when the policy is edited", async () => {
      const dial = async (): Promise<string> =>
        (await broker.run(`python3 dial.py ${ports.map((port) => `host.internal:${port}`).join(" ")}`))
          .stdout;
      broker.write(join(broker.home, "policies/default.yaml"), policy(`host.internal:${ports[0]}`));
      expect(await dial()).toBe("hello\nECONNREFUSED\n");
      const both = ports.map((port) => `host.internal:${port}`).join();
      broker.write(join(broker.home, "policies/default.yaml"), policy(both));
      expect(await dial()).toBe("hello\nhello\n");
    });

    test("a policy that requires the network is refused with the reason, and status and doctor say it too", async () => {
      const text = `${policy(`host.internal:${ports[0]}`)}world: { require: [net] }\n`;
      broker.write(join(broker.home, "policies/default.yaml"), text);
      const refused = await broker.refused({ cmd: "true" });
      expect(refused).toMatchObject({ status: 503, code: "isolation_unavailable" });
      expect(refused.message).toContain("nft is not installed on this host");
      const health = (await broker.call("GET", "/v1/health")).document as HealthReply;
      expect(health.isolation.net).toMatch(DEGRADED);
      const report = await doctorsReport(actor, broker);
      expect(checkOf(report, "network")).toMatchObject({ verdict: "ok" });
      expect(checkOf(report, "nftables")).toMatchObject({ verdict: "weaker", needed: true });
      expect(checkOf(report, "nftables").mend.join()).toMatch(/apt-get install -y nftables$/);
      expect(checkOf(report, "capture").verdict).toBe("weaker");
    });
  },
);

async function doctorsReport(actor: Actor, broker: TestBroker): Promise<ReturnType<typeof reportOf>> {
  const { node, launcher } = await installationFor(actor);
  const env = { SUBSTRATE_HOME: broker.home };
  const words = [node, launcher, "world", "doctor", "--json"];
  return reportOf(await runAs(actor, words, { cwd: broker.project, env, within: WITHOUT_NFT }));
}

function policy(allowed: string): string {
  return `id: default\nname: No nft\nmode: enforce\nnet: { allowed: [${allowed}] }\n`;
}

function greeting(): Server {
  return createServer((socket) => {
    socket.on("error", () => {});
    socket.end("hello");
  });
}

function listening(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}
