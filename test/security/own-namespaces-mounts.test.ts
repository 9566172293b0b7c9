import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { skippedTest } from "../support/run/skips.ts";

function policyFor(folder: string): string {
  return `
id: default
name: Namespaces of commands beside mounts
mode: enforce
fs: { deny_read: ["${folder}/.ssh", "${folder}/mnt/key", "${folder}/*.pem"] }
world: { namespaces: allow, require: [user, mount] }
commands: { opaque: allow, isolated: ["env isolated=1 *"] }
`;
}

const users = actors().filter(({ uid }) => uid !== 0);
const mayMount = process.getuid?.() === 0 && users.length > 0;
if (!mayMount)
  skippedTest(
    "namespaces of commands beside a mount in the home",
    "needs root, and an ordinary user in this run",
  );

describe.skipIf(!mayMount).each(users)(
  "a home with a mount inside, and namespaces of commands, as $kind",
  (actor) => {
    let home: HomeFolder;
    let broker: TestBroker;
    beforeAll(async () => {
      home = new HomeFolder(actor);
      home.write(".ssh/id", "private key");
      home.write("one.pem", "certificate");
      home.write("plain.txt", "plain");
      const mount = join(home.path, "mnt");
      mkdirSync(mount);
      execFileSync("mount", ["-t", "tmpfs", "-o", "mode=0777,size=1m", "substrate-test", mount]);
      home.write("mnt/file", "in the mount");
      home.write("mnt/key", "private too");
      home.own();
      const policies = { default: policyFor(home.path) };
      broker = await TestBroker.start(actor, { policies, folder: home.path });
    });
    afterAll(async () => {
      execFileSync("umount", ["-l", join(home.path, "mnt")]);
      await broker?.stop();
      home.remove();
    });

    /** All that a command finds below folders that the world keeps for itself, and by the names of the hidden files. */
    const FIND = `for f in /dev/.trees /dev/.denied /dev/.trees/0 /dev/.trees/1 /dev/.trees/masks; do ls -la $f; find $f -type f; done 2>/dev/null | grep -E "id|pem|key|plain"; cat .ssh/id one.pem mnt/key 2>/dev/null; cat plain.txt mnt/file`;

    test.each([
      "unshare -Ur",
      "env isolated=1 unshare -Ur",
      "env isolated=1 unshare -Urm",
      "env isolated=1 unshare -Urmpf",
    ])("'%s' makes nobody master of the host's trees behind the world's", async (how) => {
      const ran = await broker.run(`cd ${home.path}; ${how} sh -c '${FIND}'`);
      expect(ran).toMatchObject({ stdout: "plainin the mount", exit: 0 });
    });

    test("names that appear and go on the host are seen beside a process in a mount namespace of its own", async () => {
      const slow = broker.run(`cd ${home.path}; env isolated=1 unshare -Urm sh -c 'sleep 1; cat plain.txt'`);
      home.write("later.txt", "later");
      expect((await slow).stdout).toBe("plain");
      expect((await broker.run(`cat ${home.path}/later.txt`)).stdout).toBe("later");
    });
  },
);
