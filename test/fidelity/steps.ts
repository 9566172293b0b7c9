/** What is done on the host while a row's command runs, and what was seen there. */
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Step } from "./workload.ts";

export type Around = {
  readonly port: number;
  readonly project: string;
  /** Ends the command. */
  readonly end: () => void;
  /** When it has ended: nothing that has not come by then will come. */
  readonly over: AbortSignal;
};

const PATIENCE_MS = 20_000;
const AGAIN_MS = 50;

/** Does the steps in their order; what each saw. One that waited in vain says what it got last, and ends the row. */
export async function take(steps: readonly Step[], around: Around): Promise<readonly string[]> {
  const seen: string[] = [];
  for (const step of steps) seen.push(...(await takeOne(step, around)));
  return seen;
}

async function takeOne(step: Step, around: Around): Promise<readonly string[]> {
  if ("get" in step) return [await until(step.until, () => get(around.port, step.get), around)];
  if ("seen" in step) return [await until(step.until, () => contentOf(around, step.seen), around)];
  if ("events" in step) return await hearing(listen(around, step.events, {}), step.until, step.after, around);
  if ("socket" in step)
    return await hearing(
      listen(around, step.socket, webSocket(step.protocol)),
      step.until,
      step.after,
      around,
    );
  if ("write" in step) {
    writeFileSync(join(around.project, step.write), step.text);
    return [];
  }
  around.end();
  return [];
}

/** Asks until the answer matches. */
async function until(wanted: RegExp, ask: () => string | Promise<string>, { over }: Around): Promise<string> {
  let last = "";
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end && !over.aborted; await sleep(AGAIN_MS)) {
    last = await ask();
    const found = wanted.exec(last)?.[0];
    if (found !== undefined) return found;
  }
  return `nothing that matches ${wanted.source}; last: ${last.slice(0, 500)}`;
}

type Heard = { readonly text: () => string; readonly open: Promise<void>; readonly close: () => void };

/** Holds a stream open while a step is done, until something in it matches. */
async function hearing(
  heard: Heard,
  wanted: RegExp,
  after: Step,
  around: Around,
): Promise<readonly string[]> {
  try {
    await heard.open;
    const seen = await takeOne(after, around);
    return [...seen, await until(wanted, heard.text, around)];
  } finally {
    heard.close();
  }
}

function get(port: number, path: string): Promise<string> {
  return new Promise((resolve) => {
    const asked = request({ host: "127.0.0.1", port, path, agent: false }, (answer) => {
      const parts: Buffer[] = [];
      answer.on("data", (bytes: Buffer) => parts.push(bytes));
      answer.on("error", (error) => resolve(String(error)));
      answer.on("end", () => resolve(`${answer.statusCode} ${Buffer.concat(parts).toString()}`));
    });
    asked.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    asked.setTimeout(5000, () => asked.destroy(new Error("no answer in 5 s")));
    asked.end();
  });
}

function listen({ port }: Around, path: string, headers: Readonly<Record<string, string>>): Heard {
  let text = "";
  const take = (bytes: Buffer): void => {
    text += bytes.toString("latin1");
  };
  const asked = request({ host: "127.0.0.1", port, path, headers, agent: false });
  const open = new Promise<void>((resolve, reject) => {
    asked.once("response", (answer) => {
      answer.on("data", take).on("error", () => undefined);
      resolve();
    });
    asked.once("upgrade", (_answer, socket, head) => {
      take(head);
      socket.on("data", take).on("error", () => undefined);
      resolve();
    });
    asked.once("error", reject);
  });
  asked.end();
  return { text: () => text, open, close: () => asked.destroy() };
}

/** The opening of RFC 6455, section 4.1. The server's frames are not masked, so their text stands in the bytes. */
function webSocket(protocol?: string): Readonly<Record<string, string>> {
  return {
    ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
    ...{ "sec-websocket-key": Buffer.alloc(16, "k").toString("base64") },
    ...(protocol === undefined ? {} : { "sec-websocket-protocol": protocol }),
  };
}

function contentOf({ project }: Around, path: string): string {
  try {
    return readFileSync(join(project, path), "utf8");
  } catch (error) {
    // It may be still to come.
    return String(error);
  }
}
