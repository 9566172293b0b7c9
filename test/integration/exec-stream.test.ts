/** `substrate exec` passes on what is read and written, while it is. */
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { constants } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { eventually, type TestBroker } from "../support/broker/broker.ts";
import { withBroker } from "../support/broker/budgets.ts";
import { installationFor } from "../support/broker/installation.ts";
import { Person } from "../support/programs/person.ts";
import { processesWith } from "../support/processes/processes.ts";
import { actors, spawnAs } from "../support/users/users.ts";

const MI = 1024 * 1024;

describe.each(actors())("exec as a stream, as $kind", (actor) => {
  test("exec prints output as it is written, and streams its input", async () => {
    await withBroker(actor, {}, async (broker) => {
      const bytes = randomBytes(MI).toString("hex");
      const piped = await broker.cli(["exec", "--", "cat; cat missing"], { stdin: bytes });
      expect(piped.code).toBe(1);
      expect(piped.stdout === bytes).toBe(true);
      expect(piped.stderr).toContain("missing: No such file");
      const child = await execOf(broker, 'echo ready; read line; echo "got $line"');
      const lines = linesFrom(child);
      expect((await lines.next()).value).toBe("ready");
      child.stdin?.end("typed\n");
      expect((await lines.next()).value).toBe("got typed");
      expect(await exitOf(child)).toBe(0);
    });
  });

  test("a signal to exec ends the command and its exit code is exec's, a second one ends exec", async () => {
    await withBroker(actor, {}, async (broker) => {
      const marker = `marker-${randomBytes(6).toString("hex")}`;
      const polite = await execOf(
        broker,
        `trap 'echo caught; exit 9' INT; echo ready; : ${marker}; while :; do sleep 0.05; done`,
      );
      const lines = linesFrom(polite);
      expect((await lines.next()).value).toBe("ready");
      polite.kill("SIGINT");
      expect((await lines.next()).value).toBe("caught");
      expect(await exitOf(polite)).toBe(9);
      const deaf = await execOf(broker, `trap '' INT; echo ready; : ${marker}; while :; do sleep 0.05; done`);
      expect((await linesFrom(deaf).next()).value).toBe("ready");
      deaf.kill("SIGINT");
      await sleep(200);
      expect(deaf.exitCode).toBeNull();
      deaf.kill("SIGINT");
      expect(await exitOf(deaf)).toBe(130);
      expect(await eventually(() => processesWith(marker).length === 0, 5000)).toBe(true);
    });
  });

  test("Ctrl-C at a terminal ends the loop around exec too, of a shell and of a script, unless the command catches it", async () => {
    await withBroker(actor, {}, async (broker) => {
      const { root } = await installationFor(actor);
      const person = await Person.at(broker, { SUB: join(root, ".build/substrate") });
      try {
        for (const shell of ["", "bash -c ", "sh -c "]) {
          const loop = `for i in 1 2 3; do "$SUB" exec -- 'echo ro""und $0; exec sleep 1000'; done`;
          person.type(shell === "" ? `${loop}\r` : `${shell}${quoted(loop)}\r`);
          await person.sees(/round [^\r]*\r\n/);
          person.type("\x03");
          expect(await person.sees(/OUTSIDE> $/)).not.toContain("round");
          person.type("echo co''de $?\r");
          await person.sees(/code 130\r\n[^]*OUTSIDE> $/);
        }
        const deaf = `trap "" INT; echo ro""und; sleep 1000; sleep 1000`;
        person.type(`for i in 1 2; do "$SUB" exec -- ${quoted(deaf)}; done\r`);
        await person.sees(/round\r\n/);
        person.type("\x03");
        await sleep(300);
        person.type("\x03");
        expect(await person.sees(/OUTSIDE> $/)).not.toContain("round");
        const caught = `trap 'echo cau""ght; exit 9' INT; echo ro""und; while :; do sleep 0.05; done`;
        person.type(`for i in 1 2; do "$SUB" exec -- ${quoted(caught)}; echo co''de $?; done\r`);
        for (const _ of [1, 2]) {
          await person.sees(/round\r\n/);
          person.type("\x03");
          await person.sees(/caught\r\n[^]*code 9\r\n/);
        }
      } finally {
        person.leave();
      }
    });
  });

  test("a reader that closes the pipe ends the command, as it would without exec", async () => {
    await withBroker(actor, {}, async (broker) => {
      const marker = `marker-${randomBytes(6).toString("hex")}`;
      const child = await execOf(broker, `yes ${marker}`);
      expect((await linesFrom(child).next()).value).toBe(marker);
      child.stdout?.destroy();
      expect(await exitOf(child)).toBe(141);
      expect(await eventually(() => processesWith(`yes ${marker}`).length === 0, 5000)).toBe(true);
    });
  });

  test("a reader that is seconds behind gets all of the output and the exit", async () => {
    await withBroker(actor, {}, async (broker) => {
      const child = await execOf(broker, "seq 1 80000; exit 3");
      const wanted = Array.from({ length: 80_000 }, (_, at) => `${at + 1}\n`).join("");
      await sleep(4000);
      let text = "";
      child.stdout?.on("data", (part: Buffer) => (text += part.toString()));
      expect(await exitOf(child)).toBe(3);
      await eventually(() => text.length === wanted.length, 5000);
      expect(text === wanted).toBe(true);
    });
  });
});

async function execOf(broker: TestBroker, command: string): Promise<ChildProcess> {
  const { node, launcher } = await installationFor(broker.actor);
  return spawnAs(broker.actor, [node, launcher, "exec", "--", command], {
    cwd: broker.project,
    env: { SUBSTRATE_HOME: broker.home },
    stdio: ["pipe", "pipe", "pipe"],
  });
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function linesFrom(child: ChildProcess): AsyncIterator<string> {
  if (child.stdout === null) throw new Error("The program has no standard output to read");
  return createInterface({ input: child.stdout })[Symbol.asyncIterator]();
}

/** The exit code; 128 + n after signal n. */
function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    const tell = (code: number | null, signal: NodeJS.Signals | null): void =>
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    if (child.exitCode !== null || child.signalCode !== null) tell(child.exitCode, child.signalCode);
    else child.once("exit", tell);
  });
}
