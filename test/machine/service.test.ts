/** The service on a real systemd: each test goes on with the machine that the one before left. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExecuteReply } from "../../schemas/generated/types.ts";
import { packed } from "../support/programs/package.ts";
import { skippedTest } from "../support/run/skips.ts";
import { Guest } from "./guest.ts";
import { whyNoMachine } from "./image.mjs";

/** An emulated processor on a busy machine. */
const PATIENCE_MS = 20 * 60_000;

const POLICY = `id: default
name: The machine's
mode: enforce
world: { limits: { cpu: "0.5", memory: 160Mi, pids: 60 } }
`;

const PID = "systemctl --user show --property=MainPID --value substrate.service";

/** Ends with the new main process: another one than $old, that answers. */
const ANOTHER = `for i in $(seq 600); do
  new=$(${PID}); [ "$new" != 0 ] && [ "$new" != "$old" ] && break; sleep 0.5
done; echo "$old $new"`;

const why = whyNoMachine();

describe.runIf(why === undefined)(
  "in a machine with systemd and cgroups v2",
  { timeout: PATIENCE_MS },
  () => {
    let guest: Guest;
    let folder: string;

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "sb-vm-"));
      guest = await Guest.boot(packed(folder));
      await guest.must(
        "mkdir -p ~/app ~/.substrate/policies; chmod 700 ~/.substrate; git init -q ~/app; cat > ~/.substrate/policies/default.yaml <<'END'\n" +
          `${POLICY}END`,
        "ann",
      );
    }, PATIENCE_MS);
    afterAll(() => {
      guest?.off();
      rmSync(folder, { recursive: true, force: true });
    });

    test("install starts both units, and the world's limits are the kernel's", async () => {
      expect(await guest.must("substrate service install --yes", "ann")).toContain("enabled, and active");
      const states = await guest.must(
        "systemctl --user is-active substrate.socket substrate.service; systemctl --user is-enabled substrate.socket substrate.service",
        "ann",
      );
      expect(states).toBe("active\nactive\nenabled\nenabled\n");
      const reply = JSON.parse(
        await guest.must("cd ~/app; substrate exec --json -- 'cat /proc/self/cgroup'", "ann"),
      ) as ExecuteReply;
      expect(reply.isolation.cgroup).toBe("on");
      const group = Buffer.from(reply.stdout_b64, "base64").toString().trim().slice("0::".length);
      expect(group).toMatch(/user@1000\.service\/app\.slice\/substrate\.service\/[\d-]+\/commands\/\d+$/);
      const commands = `/sys/fs/cgroup${group.replace(/\/\d+$/, "")}`;
      const limits = await guest.must(`cd ${commands}; cat memory.max cpu.max pids.max`);
      expect(limits).toBe(`${160 * 1024 * 1024}\n50000 100000\n60\n`);
    });

    test("a command over its memory ends alone: the broker and its unit go on, and the twin within it succeeds", async () => {
      const before = await guest.must(PID, "ann");
      const over = await guest.run(
        "cd ~/app; substrate exec -- 'head -c 300M /dev/zero | tail -c 300M | wc -c'; echo $?",
        "ann",
      );
      expect(over.out).not.toContain(String(300 * 1024 * 1024));
      const within = await guest.must(
        "cd ~/app; substrate exec -- 'head -c 20M /dev/zero | tail -c 20M | wc -c'",
        "ann",
      );
      expect(within).toBe(`${20 * 1024 * 1024}\n`);
      expect(await guest.must(PID, "ann")).toBe(before);
    });

    test("after kill -9 the broker is started again, a client that came meanwhile is served, and the lost command has its span", async () => {
      const script = `cd ~/app; rm -f begun
      substrate exec -- 'touch begun; sleep 999' >/dev/null 2>&1 &
      until [ -e begun ]; do sleep 0.2; done
      old=$(${PID}); kill -9 $old
      substrate exec -- 'echo served'
      ${ANOTHER}
      systemctl --user show --property=NRestarts --value substrate.service
      substrate trace list --json | grep -c '"outcome": "lost"'`;
      const [served, pids, restarts, lost] = (await guest.must(script, "ann")).trim().split("\n");
      expect([served, restarts, lost]).toEqual(["served", "1", "1"]);
      expect(new Set(pids?.split(" ")).size).toBe(2);
    });

    test("over a restart by systemctl no client fails, before, during or after", async () => {
      const script = `cd ~/app; old=$(${PID})
      systemctl --user restart --no-block substrate.service
      for i in 1 2 3 4 5 6; do substrate exec -- "echo $i" & sleep 1; done; wait
      ${ANOTHER}`;
      const lines = (await guest.must(script, "ann")).trim().split("\n");
      expect(lines.slice(0, -1).toSorted()).toEqual(["1", "2", "3", "4", "5", "6"]);
      expect(new Set(lines.at(-1)?.split(" ")).size).toBe(2);
    });

    test("a stopped broker (SIGSTOP) is killed by the watchdog and started again, and one that works is not", async () => {
      const dropIn = `mkdir -p ~/.config/systemd/user/substrate.service.d
      printf '[Service]\\nWatchdogSec=20\\n' > ~/.config/systemd/user/substrate.service.d/fast.conf
      systemctl --user daemon-reload; systemctl --user restart substrate.service`;
      await guest.must(dropIn, "ann");
      const quiet = `old=$(${PID}); sleep 30; [ $old = $(${PID}) ] && echo same`;
      expect(await guest.must(quiet, "ann")).toBe("same\n");
      const script = `cd ~/app; old=$(${PID}); kill -STOP $old; ${ANOTHER}; substrate exec -- 'echo served'
      rm -r ~/.config/systemd/user/substrate.service.d; systemctl --user daemon-reload`;
      const [pids, served] = (await guest.must(script, "ann")).trim().split("\n");
      expect([new Set(pids?.split(" ")).size, served]).toEqual([2, "served"]);
      expect(
        await guest.must(
          "journalctl --no-pager _SYSTEMD_USER_UNIT=substrate.service + USER_UNIT=substrate.service",
        ),
      ).toMatch(/Watchdog timeout/);
    });

    test("a stop stays until the next client, and the CLI says so", async () => {
      const stopped = await guest.must(
        "substrate broker stop; substrate broker status; systemctl --user is-active substrate.service substrate.socket",
        "ann",
      );
      expect(stopped).toMatch(
        /has stopped\nThe next command starts it again.*\nThe broker does not run\ninactive\nactive\n/,
      );
      expect(
        await guest.must(
          "cd ~/app; substrate exec -- 'echo woken'; systemctl --user is-active substrate.service",
          "ann",
        ),
      ).toBe("woken\nactive\n");
    });

    test("after a logout the service ends, and after a login it is there without a command", async () => {
      await guest.must(
        "loginctl terminate-user ann; for i in $(seq 200); do [ -e /run/user/1000 ] || break; sleep 0.2; done; [ ! -e /run/user/1000 ]",
      );
      expect((await guest.run("pgrep -u ann -f 'broker start'")).out).toBe("");
      const login =
        "for i in $(seq 300); do systemctl --user is-active -q substrate.service && break; sleep 0.5; done; ls ~/.substrate/run/broker.json";
      expect(await guest.must(login, "ann")).toBe("/home/ann/.substrate/run/broker.json\n");
    });

    test("removal leaves nothing of the service and keeps the home", async () => {
      expect(await guest.must("substrate service remove --yes", "ann")).toContain("is removed");
      const left = await guest.must(
        "find ~/.config; ls ~/.substrate/trace; systemctl --user list-unit-files 'substrate*' --no-legend; pgrep -u ann -fc '[b]roker start' || true",
        "ann",
      );
      expect(left).toMatch(/trace\.jsonl\n0\n/);
      expect(left).not.toMatch(/substrate\.(service|socket)/);
    });

    test("the unit of the system runs the broker of the user behind sudo, and is gone after its removal", async () => {
      await guest.must("mkdir -p ~/app; git init -q ~/app", "ben");
      expect(
        await guest.must("SUDO_USER=ben /opt/npm/bin/substrate service install --system --yes"),
      ).toContain("enabled, and active");
      const who =
        "ps -o user= -p $(systemctl show --property=MainPID --value substrate.service); stat -c '%U %a' /home/ben/.substrate /home/ben/.substrate/sock/agent.sock";
      expect(await guest.must(who)).toBe("ben\nben 700\nben 600\n");
      const reply = JSON.parse(
        await guest.must("cd ~/app; substrate exec --json -- 'id -un; touch made'", "ben"),
      ) as ExecuteReply;
      expect([
        Buffer.from(reply.stdout_b64, "base64").toString(),
        reply.isolation.cgroup,
        reply.isolation.mount,
      ]).toEqual(["ben\n", "on", "on"]);
      expect(
        await guest.must(
          "SUDO_USER=ben /opt/npm/bin/substrate service remove --system --yes; ls /etc/systemd/system | grep -c substrate || true",
        ),
      ).toMatch(/is removed.*\n0\n/);
    });

    test("root's own broker makes whole worlds without the capabilities that its unit takes away", async () => {
      const home = "export HOME=/root PATH=/opt/npm/bin:$PATH; mkdir -p ~/app; git init -q ~/app; cd ~/app";
      await guest.must(`${home}; substrate service install --system --yes`);
      const { isolation, exit } = JSON.parse(
        await guest.must(`${home}; substrate exec --json -- 'echo made > made'`),
      ) as ExecuteReply;
      const { user, mount, pid, net, seccomp, cgroup } = isolation;
      expect([exit, mount, pid, net, seccomp, cgroup]).toEqual([0, "on", "on", "on", "on", "on"]);
      expect(user).toBeDefined();
      const bounding = await guest.must(
        "grep CapBnd /proc/$(systemctl show --property=MainPID --value substrate.service)/status",
      );
      const [sysModule, sysAdmin] = [16n, 21n];
      const capabilities = BigInt(`0x${bounding.split(/\s+/)[1]}`);
      expect([(capabilities >> sysModule) & 1n, (capabilities >> sysAdmin) & 1n]).toEqual([0n, 1n]);
      await guest.must(`${home}; substrate service remove --system --yes`);
    });
  },
);

if (why !== undefined) skippedTest("the service on a real systemd, in a virtual machine", why);
