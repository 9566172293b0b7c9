/** Rows about the units of `systemd/`, on a real systemd. */
import { expect, test } from "vitest";
import type { ExecuteReply } from "../../schemas/generated/types.ts";
import type { Guest } from "./guest.ts";
import { endedCommands, PID, POLICY } from "./limits.ts";

/** Seconds without a sign of life after which systemd kills the broker here. An emulated broker is busy for ten with one task. */
const WATCHDOG_S = 30;

/** Ends with the new main process: another one than $old. */
const ANOTHER = `for i in $(seq 600); do
  new=$(${PID}); [ "$new" != 0 ] && [ "$new" != "$old" ] && break; sleep 0.5
done; echo "$old $new"`;

const DROP_IN = "~/.config/systemd/user/substrate.service.d";

export function installRow(guest: () => Guest): void {
  test("install starts both units", async () => {
    // Lingering: the manager of 'ann' would end with the last login.
    const prepare = `mkdir -p ~/app ~/.substrate/policies ${DROP_IN}; chmod 700 ~/.substrate; git init -q ~/app
    printf '[Service]\\nWatchdogSec=${WATCHDOG_S}\\n' > ${DROP_IN}/fast.conf
    cat > ~/.substrate/policies/default.yaml <<'END'\n${POLICY}END`;
    await guest().must("loginctl enable-linger ann");
    await guest().must(prepare, "ann");
    const script = `substrate service install --yes
    systemctl --user is-active substrate.socket substrate.service
    systemctl --user is-enabled substrate.socket substrate.service`;
    expect(await guest().must(script, "ann")).toMatch(
      /enabled, and active[^]*\nactive\nactive\nenabled\nenabled\n$/,
    );
  });
}

/** What becomes of the broker of 'ann' that {@link installRow} started. */
export function recoveryRows(guest: () => Guest): void {
  test("after kill -9 the broker is started again, a client that came meanwhile is served, and the lost command has its span", async () => {
    const script = `cd ~/app; rm -f begun
    substrate exec -- 'touch begun; sleep 999' >/dev/null 2>&1 &
    until [ -e begun ]; do sleep 0.2; done
    old=$(${PID}); ps -o etimes= -p $old; kill -9 $old
    substrate exec -- 'echo served'
    ${ANOTHER}
    systemctl --user show --property=NRestarts --value substrate.service`;
    const [age, served, pids, restarts] = (await guest().must(script, "ann")).trim().split("\n");
    expect([served, restarts]).toEqual(["served", "1"]);
    const lost = (await endedCommands(guest())).filter(({ outcome }) => outcome === "lost");
    expect(lost.map(({ cmd }) => cmd)).toEqual(["touch begun; sleep 999"]);
    expect(new Set(pids?.split(" ")).size).toBe(2);
    // So a broker that works outlives its watchdog.
    expect(Number(age)).toBeGreaterThan(WATCHDOG_S);
  });

  test("over a restart by systemctl no client fails, before, during or after", async () => {
    const script = `cd ~/app; old=$(${PID})
    systemctl --user restart --no-block substrate.service
    for i in 1 2 3 4 5 6; do substrate exec -- "echo $i" & sleep 1; done; wait
    ${ANOTHER}`;
    const lines = (await guest().must(script, "ann")).trim().split("\n");
    expect(lines.slice(0, -1).toSorted()).toEqual(["1", "2", "3", "4", "5", "6"]);
    expect(new Set(lines.at(-1)?.split(" ")).size).toBe(2);
  });

  test("a stopped broker (SIGSTOP) is killed by the watchdog and started again", async () => {
    const script = `cd ~/app; old=$(${PID}); kill -STOP $old; ${ANOTHER}; substrate exec -- 'echo served'
    rm -r ${DROP_IN}; systemctl --user daemon-reload`;
    const [pids, served] = (await guest().must(script, "ann")).trim().split("\n");
    expect([new Set(pids?.split(" ")).size, served]).toEqual([2, "served"]);
    const journal =
      "journalctl --no-pager _SYSTEMD_USER_UNIT=substrate.service + USER_UNIT=substrate.service";
    expect(await guest().must(journal)).toMatch(/Watchdog timeout/);
  });

  test("a stop stays until the next client, and the CLI says so", async () => {
    const script = `substrate broker stop; substrate broker status
    systemctl --user is-active substrate.service substrate.socket
    cd ~/app; substrate exec -- 'echo woken'; systemctl --user is-active substrate.service`;
    expect(await guest().must(script, "ann")).toMatch(
      /has stopped\nThe next command starts it again.*\nThe broker does not run\ninactive\nactive\nwoken\nactive\n$/,
    );
  });

  test("after a logout the service ends, and after a login it is there without a command", async () => {
    const gone =
      "for i in $(seq 200); do [ -e /run/user/1000 ] || break; sleep 0.2; done; [ ! -e /run/user/1000 ]";
    await guest().must(`loginctl disable-linger ann; loginctl terminate-user ann; ${gone}`);
    expect((await guest().run("pgrep -u ann -f 'broker start'")).out).toBe("");
    const login =
      "for i in $(seq 300); do systemctl --user is-active -q substrate.service && break; sleep 0.5; done; ls ~/.substrate/run/broker.json";
    expect(await guest().must(login, "ann")).toBe("/home/ann/.substrate/run/broker.json\n");
  });

  test("removal leaves nothing of the service and keeps the home", async () => {
    const script = `substrate service remove --yes; find ~/.config; ls ~/.substrate/trace
    systemctl --user list-unit-files 'substrate*' --no-legend; pgrep -u ann -fc '[b]roker start' || true`;
    const left = await guest().must(script, "ann");
    expect(left).toContain("is removed");
    expect(left).toMatch(/trace\.jsonl\n0\n$/);
    expect(left.slice(left.indexOf("/home/ann/.config\n"))).not.toMatch(/substrate\.(service|socket)/);
  });
}

/** Units of the system, for the user behind sudo and for root. */
export function systemRows(guest: () => Guest): void {
  const install = "substrate service install --system --yes";
  const remove =
    "substrate service remove --system --yes; ls /etc/systemd/system | grep -c substrate || true";
  const front = "PATH=/opt/npm/lib/node_modules/substrate/.build:$PATH";

  test("the unit of the system runs the broker of the user behind sudo", async () => {
    await guest().must("mkdir -p ~/app; git init -q ~/app", "ben");
    const who = `ps -o user= -p $(systemctl show --property=MainPID --value substrate.service)
    stat -c '%U %a' /home/ben/.substrate /home/ben/.substrate/sock/agent.sock`;
    expect(await guest().must(`export ${front} SUDO_USER=ben; ${install}; ${who}`)).toMatch(
      /enabled, and active[^]*\nben\nben 700\nben 600\n$/,
    );
    const reply = await replyOf(guest(), "cd ~/app; substrate exec --json -- 'id -un; touch made'", "ben");
    expect([
      Buffer.from(reply.stdout_b64, "base64").toString(),
      reply.isolation.cgroup,
      reply.isolation.mount,
    ]).toEqual(["ben\n", "on", "on"]);
  });

  test("an io limit of the unit holds for what a world writes, and ends with the limit", async () => {
    const limit = (rate: string): string =>
      `systemctl set-property --runtime substrate.service "IOWriteBandwidthMax=/dev/vda ${rate}"`;
    const write = `cd ~/app; substrate exec -- '
      begin=$(date +%s%N); dd if=/dev/zero of=big bs=1M count=12 conv=fsync 2> /dev/null; end=$(date +%s%N); rm big
      echo $(((end - begin) / 1000000))'`;
    await guest().must(limit("1M"));
    const slow = Number(await guest().must(write, "ben"));
    await guest().must(limit("infinity"));
    const fast = Number(await guest().must(write, "ben"));
    // 12 MiB at 1 MB a second.
    expect(slow).toBeGreaterThan(10_000);
    expect(fast).toBeLessThan(8000);
  });

  test("the unit of the system is gone after its removal", async () => {
    expect(await guest().must(`export ${front} SUDO_USER=ben; ${remove}`)).toMatch(/is removed.*\n0\n$/);
  });

  test("root's own broker makes whole worlds without the capabilities that its unit takes away", async () => {
    const home = `export HOME=/root ${front}; mkdir -p ~/app; git init -q ~/app; cd ~/app`;
    await guest().must(`${home}; ${install}`);
    const { isolation, exit } = await replyOf(
      guest(),
      `${home}; substrate exec --json -- 'echo made > made'`,
    );
    const { user, mount, pid, net, seccomp, cgroup } = isolation;
    expect([exit, mount, pid, net, seccomp, cgroup]).toEqual([0, "on", "on", "on", "on", "on"]);
    expect(user).toBeDefined();
    const bounding = await guest().must(
      "grep CapBnd /proc/$(systemctl show --property=MainPID --value substrate.service)/status",
    );
    const [sysModule, sysAdmin] = [16n, 21n];
    const capabilities = BigInt(`0x${bounding.split(/\s+/)[1]}`);
    expect([(capabilities >> sysModule) & 1n, (capabilities >> sysAdmin) & 1n]).toEqual([0n, 1n]);
    await guest().must(`${home}; ${remove}`);
  });
}

async function replyOf(guest: Guest, script: string, user?: string): Promise<ExecuteReply> {
  return JSON.parse(await guest.must(script, user)) as ExecuteReply;
}
