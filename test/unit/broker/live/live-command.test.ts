import { describe, expect, test } from "vitest";
import { type LiveClient, LiveCommand, type LiveOptions } from "../../../../broker/live/live-command.ts";
import { INPUT_WINDOW, type CommandRun } from "../../../../world/backend.ts";
import type { LiveStart } from "../../../../broker/model/live.ts";

const START = { span_id: "spn_1", agent_id: "a" } as LiveStart;
const PIPES: LiveOptions = { terminal: undefined, hasInput: true, onDisconnect: "kill" };

/** A client that notes what it is told. */
function watching(): { readonly client: LiveClient; readonly seen: string[] } {
  const seen: string[] = [];
  const client: LiveClient = {
    started: ({ span_id: span }) => seen.push(`started ${span}`),
    output: (stream, bytes, taken) => {
      seen.push(`${stream} ${bytes.length}`);
      taken();
    },
    inputTaken: (bytes) => seen.push(`taken ${bytes}`),
    stopped: (signal) => seen.push(`stopped ${signal}`),
    pause: (isPaused) => seen.push(isPaused ? "paused" : "resumed"),
    asked: (approval) => seen.push(`asked ${approval}`),
    ended: ({ kind }) => seen.push(kind),
  };
  return { client, seen };
}

/** A run that notes what it is sent. */
function recording(): { readonly run: CommandRun; readonly sent: string[] } {
  const sent: string[] = [];
  const run = {
    input: (bytes: Uint8Array) => sent.push(`input ${bytes.length}`),
    endInput: () => sent.push("end"),
    resize: ({ columns, rows }: { columns: number; rows: number }) => sent.push(`resize ${columns} ${rows}`),
    interrupt: (name: string) => sent.push(name),
  } as unknown as CommandRun;
  return { run, sent };
}

function live(options: LiveOptions = PIPES): ReturnType<typeof watching> & { readonly command: LiveCommand } {
  const { client, seen } = watching();
  return { client, seen, command: new LiveCommand(options, client, () => {}) };
}

describe("a live command", () => {
  test("keeps what comes before it begins, and passes it on in order", () => {
    const { command } = live({ ...PIPES, terminal: { columns: 80, rows: 24 } });
    const { run, sent } = recording();
    command.type(Buffer.from("abc"));
    command.resize({ columns: 10, rows: 5 });
    command.interrupt("SIGINT");
    command.started(START);
    command.begin(run);
    expect(sent).toEqual(["resize 10 5", "SIGINT", "input 3"]);
  });

  test("never sends more than the window, pauses its client meanwhile, and sends the rest as bytes are taken", () => {
    const { command, seen } = live();
    const { run, sent } = recording();
    command.begin(run);
    command.type(Buffer.alloc(INPUT_WINDOW + 100));
    command.endInput();
    const total = (): number =>
      sent.reduce((sum, one) => sum + Number(/^input (\d+)$/.exec(one)?.[1] ?? 0), 0);
    expect(total()).toBe(INPUT_WINDOW);
    expect(seen).toEqual(["paused"]);
    command.input?.onTaken(50);
    expect(total()).toBe(INPUT_WINDOW + 50);
    command.input?.onTaken(50);
    expect(total()).toBe(INPUT_WINDOW + 100);
    expect(sent.at(-1)).toBe("end");
    expect(seen).toEqual(["paused", "taken 50", "taken 50", "resumed"]);
  });

  test("drops what comes after the end of its input", () => {
    const { command } = live();
    const { run, sent } = recording();
    command.begin(run);
    command.endInput();
    command.type(Buffer.from("late"));
    command.endInput();
    expect(sent).toEqual(["end"]);
    expect(command.hasUnkeptInput).toBe(false);
  });

  test("is cancelled by the loss of its client, and by that of no other", () => {
    const { command, client } = live();
    command.leave(watching().client);
    expect(command.signal.aborted).toBe(false);
    command.leave(client);
    expect(command.signal.aborted).toBe(true);
  });

  test("that is detached goes on without waiting for anybody, and gives a later client its last output", () => {
    const { command, client } = live({ ...PIPES, onDisconnect: "detach" });
    command.started(START);
    command.begin(recording().run);
    expect(command.attach(watching().client)).toBe(false);
    command.leave(client);
    expect(command.signal.aborted).toBe(false);
    let taken = 0;
    for (let at = 0; at < 10; at += 1) command.output("stdout", Buffer.alloc(64 * 1024), () => (taken += 1));
    expect(taken).toBe(10);
    const later = watching();
    expect(command.attach(later.client)).toBe(true);
    expect(later.seen).toEqual(["started spn_1", ...Array.from({ length: 4 }, () => "stdout 65536")]);
  });
});
