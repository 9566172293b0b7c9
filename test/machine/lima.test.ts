/** The Lima backend with a machine of its own: broker, template, provisioning, forward and agent are real; qemu's guest stands for Lima's. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../../api/client/client.ts";
import { HEALTH_PATH } from "../../world/wire/protocol.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { put, replayed, SAME } from "../support/broker/replays.ts";
import { asVersion, packed } from "../support/programs/package.ts";
import { recordSkip, skippedTest } from "../support/run/skips.ts";
import { everyActor } from "../support/users/users.ts";
import { backendCases } from "../support/world/backend-cases.ts";
import { ANSWERS_POLICY, answersOf, differences } from "./answers.ts";
import { failureRows } from "./failures.ts";
import { untilReady } from "../support/world/lima.ts";
import { installPackage } from "./guest.ts";
import { whyNoLimaGuest } from "./image.mjs";
import { LimaGuest } from "./lima-guest.ts";

const actor = everyActor().find(({ uid }) => uid !== 0);
const why =
  whyNoLimaGuest() ?? (actor === undefined ? "Lima refuses root, and there is nobody else" : undefined);

describe.runIf(why === undefined && actor !== undefined)(
  "worlds in a virtual machine with its own kernel",
  () => {
    if (actor === undefined) return;
    let folder: string;
    let tarball: string;
    let machine: LimaGuest;
    const shared = {} as { broker: TestBroker; setPolicy: (text: string) => void };

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "sb-vm-"));
      chmodSync(folder, 0o755);
      tarball = packed(folder);
      const root = installPackage(tarball, join(folder, "npm"));
      machine = await LimaGuest.make(actor, process.execPath);
      const own = mkdtempSync(join(actor.home, "sb-"));
      shared.broker = await TestBroker.start(actor, {
        folder: own,
        config: `projects: ["${own}/project"]\n`,
        environment: machine.lima.environment,
        installation: { root, node: process.execPath, launcher: join(root, "api/bin/substrate.mjs") },
      });
      // The project's folder is a mount of its own: an apply needs a place in it that no command can write.
      put(shared.broker, join(shared.broker.project, ".git/hooks/empty"), "");
      shared.setPolicy = (text) =>
        put(shared.broker, join(shared.broker.home, "policies/default.yaml"), text);
    });
    afterAll(async () => {
      await shared.broker?.stop();
      await machine?.remove();
      rmSync(folder, { recursive: true, force: true });
    });

    test("a machine is made for the first command, which is told so until it is ready", async () => {
      const refusals = await untilReady(shared.broker);
      expect(refusals.length).toBeGreaterThan(0);
      for (const refusal of refusals)
        expect(refusal).toMatchObject({
          code: "isolation_unavailable",
          // The second, where a busy machine's agent answers and is too slow to try out a world.
          message: expect.stringMatching(
            /^The virtual machine 'substrate' is not ready yet: .+, for \d+ s$|^Cannot make a world: the world agent was not ready in time$/,
          ),
        });
      expect(machine.lima.verbs).toEqual(["create", "start"]);
    });

    test("the provisioning installed Node, nft and an agent that its user cannot write, and once more changes nothing", async () => {
      const state = `dpkg-query -W -f '\${Package} \${db:Status-Abbrev}\n' nodejs nftables
      systemctl show -p MainPID -p User -p ActiveState substrate-agent; ls /opt/substrate
      find /opt/substrate ! -user root`;
      const before = await machine.guest.must(state);
      expect(before).toMatch(/^nftables ii \nnodejs ii \n/);
      for (const line of [`User=${actor.name}\n`, "ActiveState=active\n"]) expect(before).toContain(line);
      expect(before.trim().split("\n").slice(-2)).toEqual([
        expect.stringMatching(/^[0-9a-f]{16}$/),
        "current",
      ]);
      await machine.provisionAgain();
      expect(await machine.guest.must(state)).toBe(before);
      recordSkip({
        what: "what lima/provision.sh loads and compiles",
        why: "the guest has no network: packages come from apt's cache in the image, and the package is made for this machine",
      });
    });

    test("the home is read-only in the machine, and a project is not", async () => {
      const { folder: own, project } = shared.broker;
      const tried = await machine.guest.run(
        `touch ${own}/made; touch ${project}/made; ls ${own} ${project}`,
        actor.name,
      );
      expect(tried.err).toMatch(/^touch: cannot touch '.*\/made': Read-only file system\n$/);
      expect(tried.out).toMatch(/project:\nmade\n$/);
    });

    backendCases(actor, {
      word: "lima",
      backend: /^lima:linux$/,
      environment: {},
      hasNetwork: true,
      holds: true,
      shared,
      place: () => machine.place,
      leftovers: () => Promise.resolve([]),
    });

    test("the host answers requests as it does with worlds of its own, and a replay there names the backend as drift", async () => {
      shared.setPolicy(ANSWERS_POLICY);
      const there = await answersOf(shared.broker);
      const { span_id: span } = await shared.broker.run("echo recorded");
      await shared.broker.kill("SIGTERM");
      shared.broker = await shared.broker.again({
        ...machine.lima.environment,
        SUBSTRATE_BACKEND: "linux",
      });
      const here = await answersOf(shared.broker);
      const reply = await replayed(shared.broker, span);
      await shared.broker.kill("SIGTERM");
      shared.broker = await shared.broker.again(machine.lima.environment);
      expect(differences(there, here)).toEqual([]);
      expect(reply.matches).toMatchObject(SAME);
      expect(reply.drift).toContainEqual({ what: "isolation.backend", recorded: "lima:linux", now: "linux" });
    });

    test("an upgrade of the host's installation is the machine's with the next command", async () => {
      await shared.broker.kill("SIGTERM");
      installPackage(asVersion(tarball, "9.9.9"), join(folder, "npm"));
      shared.broker = await shared.broker.again();
      await untilReady(shared.broker);
      const health = await call(join(shared.broker.home, "sock/lima-agent.sock"), "GET", HEALTH_PATH);
      expect(health.document).toMatchObject({ version: "9.9.9", state: "serving" });
      expect((await machine.guest.must("ls /opt/substrate")).trim().split("\n")).toHaveLength(2);
    });

    failureRows(() => ({ machine, shared }));
  },
);

if (why !== undefined) skippedTest("worlds in a virtual machine, through the Lima backend", why);
