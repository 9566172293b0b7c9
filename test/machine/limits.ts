/** Rows about limits: each judged by what processes got, with a twin that stays below. */
import { expect, test } from "vitest";
import type { Span } from "../../schemas/generated/types.ts";
import type { Guest } from "./guest.ts";
import { SPIN_MS } from "./programs.ts";

const MEMORY_MIB = 96;
const PIDS = 60;
const CPU = 0.4;

export const POLICY = `id: default
name: The machine's
mode: enforce
world: { limits: { cpu: "${CPU}", memory: ${MEMORY_MIB}Mi, pids: ${PIDS} } }
`;

export const PID = "systemctl --user show --property=MainPID --value substrate.service";

/** The limits of worlds, with the service of 'ann' running {@link POLICY}. */
export function limitRows(guest: () => Guest): void {
  test("the world's group lies in the unit's, with every controller, and its limits are the kernel's", async () => {
    const group = (await guest().must("cd ~/app; substrate exec -- 'cat /proc/self/cgroup'", "ann"))
      .trim()
      .slice("0::".length);
    expect(group).toMatch(/user@1000\.service\/app\.slice\/substrate\.service\/[\d-]+\/commands\/\d+$/);
    const commands = `/sys/fs/cgroup${group.replace(/\/\d+$/, "")}`;
    const limits = await guest().must(`cd ${commands}; cat memory.max cpu.max pids.max`);
    expect(limits).toBe(`${MEMORY_MIB * 2 ** 20}\n${CPU * 100_000} 100000\n${PIDS}\n`);
    expect((await spanOf(guest(), "cat /proc/self/cgroup")).isolation?.cgroup).toBe("on");
  });

  test("a command over its memory is killed and its span says so; the broker goes on, and the twin within it succeeds", async () => {
    const script = `cd ~/app; ${PID}
    substrate exec -- '/opt/programs/memory 200'; echo $?
    substrate exec -- '/opt/programs/memory 40'; echo $?; ${PID}`;
    const [before, over, within, after] = (await guest().must(script, "ann")).trim().split("\n");
    expect([over, within, after]).toEqual(["137", "0", before]);
    expect(await spanOf(guest(), "memory 200")).toMatchObject({
      violation: { kind: "limit", subject: "memory" },
    });
    expect((await spanOf(guest(), "memory 40")).violation ?? null).toBeNull();
  });

  test("a fork bomb stops at the limit while a neighbour's command runs, and twenty processes are no bomb", async () => {
    const script = `cd ~/app; most=0
    substrate exec --timeout 25s -- /opt/programs/forks 2> /dev/null & bomb=$!
    until [ "$most" -gt 1 ]; do most=$(pgrep -cx forks); done
    substrate exec --agent neighbour -- 'echo alive'
    while kill -0 $bomb 2> /dev/null; do
      now=$(pgrep -cx forks); [ "$now" -gt "$most" ] && most=$now; sleep 0.3
    done
    echo $most; pgrep -cx forks
    substrate exec -- 'for i in $(seq 20); do sleep 0.5 & done; wait; echo built'`;
    const [alive, most, left, built] = (await guest().must(script, "ann")).trim().split("\n");
    expect([alive, left, built]).toEqual(["alive", "0", "built"]);
    expect(Number(most)).toBeGreaterThan(PIDS / 2);
    expect(Number(most)).toBeLessThanOrEqual(PIDS);
    expect(await spanOf(guest(), "forks")).toMatchObject({ violation: { kind: "limit", subject: "pids" } });
    expect((await spanOf(guest(), "echo built")).violation ?? null).toBeNull();
  });

  test("a processor hog gets its share, and its twin without a world all of it", async () => {
    const script = "cd ~/app; substrate exec -- /opt/programs/spin; /opt/programs/spin";
    const [limited = 0, free = 0] = (await guest().must(script, "ann")).trim().split("\n").map(Number);
    expect(limited / SPIN_MS).toBeGreaterThan(CPU / 4);
    // The kernel lets a group overdraw by what the emulator stalls in the last periods.
    expect(limited / SPIN_MS).toBeLessThan(CPU * 1.4);
    expect(free / SPIN_MS).toBeGreaterThan(CPU * 1.7);
  });
}

/** The last ended command of 'ann' whose words hold the text, from the trace. */
async function spanOf(guest: Guest, text: string): Promise<Span> {
  const found = (await endedCommands(guest)).findLast(({ cmd }) => cmd?.includes(text) === true);
  if (found === undefined) throw new Error(`No command with '${text}' has ended in the trace`);
  return found;
}

/** The spans of ended commands in the trace of 'ann', oldest first. */
export async function endedCommands(guest: Guest): Promise<readonly Span[]> {
  const lines = (await guest.must("tail -n 200 ~/.substrate/trace/trace.jsonl", "ann")).trim().split("\n");
  const spans = lines.map((line) => JSON.parse(line) as Span);
  return spans.filter(({ event_type: type }) => type === "command_complete");
}
