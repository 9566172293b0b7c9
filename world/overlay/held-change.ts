/** Carries out an apply or undo; finishes or takes back interrupted ones. */
import { mkdir, readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { ApplyEnding, Settled } from "../model/held.ts";
import {
  dropOrder,
  fieldsIn,
  keepOrder,
  type Order,
  unfinished,
  verbOf,
  writeOrder,
} from "./held-journal.ts";
import { fieldsOf, NativeSession } from "./native-session.ts";
import { bytesOf, shownPath } from "./names.ts";

export async function carryOut(
  init: string,
  session: NativeSession,
  order: Order,
  left: readonly string[],
): Promise<ApplyEnding> {
  if (order.paths.length === 0) return { kind: "done", done: [], left };
  let folder: string;
  try {
    folder = await writeOrder(order);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { kind: "failed", message: `Cannot write the journal: ${text}. The project is unchanged` };
  }
  const answer = await session.ask(["change", bytesOf(folder)]).catch((error: unknown) => {
    return error instanceof Error ? error.message : String(error);
  });
  if (typeof answer === "string") return await pickUp(init, order, folder, left, answer);
  const { word, rest } = answer;
  if (word === "done" || word === "unfinished") return { kind: "done", done: order.paths, left };
  const [path = "", reason = "", ...more] = fieldsOf(rest);
  const notes = notesOf(word === "conflict" ? more : more.slice(1));
  if (notes.length > 0)
    return { kind: "failed", message: `${sentence(path, reason, more[0])}. ${notes.join(". ")}` };
  await dropOrder(folder);
  if (word === "conflict") return { kind: "conflict", conflicts: [{ path, reason: capital(reason) }] };
  return { kind: "failed", message: `${sentence(path, reason, more[0])}. The project is unchanged` };
}

/** Recovers at once after the native process was killed (by the host, when memory is short). */
async function pickUp(
  init: string,
  order: Order,
  folder: string,
  left: readonly string[],
  cause: string,
): Promise<ApplyEnding> {
  const said = await recoverAll(init, dirname(order.layers), null, order.layers);
  if ((await fieldsIn(join(folder, "record"))) !== null && (await verbOf(folder)) === order.verb)
    return { kind: "done", done: order.paths, left };
  return { kind: "failed", message: `${cause}. ${said.map(({ message }) => message).join(". ")}` };
}

/** Recovers all layers below `root`, or `only` the layers of one span whose project lock is already held. */
export async function recoverAll(
  init: string,
  root: string,
  locks: string | null,
  only?: string,
): Promise<readonly Settled[]> {
  const said: Settled[] = [];
  for (const layers of only === undefined ? await layersIn(root) : [only]) {
    for (const { folder, lock } of await unfinished(layers)) {
      await using session = new NativeSession(init, "held");
      if (locks !== null) {
        await mkdir(locks, { recursive: true, mode: 0o700 });
        await session.demand(["lock", bytesOf(join(locks, lock))]);
      }
      const messages = await recoverOne(session, folder);
      said.push(...messages.map((message) => ({ span: basename(layers), message })));
    }
  }
  return said;
}

async function recoverOne(session: NativeSession, folder: string): Promise<readonly string[]> {
  const { word, rest } = await session.ask(["recover", bytesOf(folder)]);
  const fields = fieldsOf(rest);
  // The original process finished while this one waited for the lock.
  if (word === "whole") return [];
  if (word === "finished") return [`Finished an interrupted apply: '${folder}'`];
  if (word !== "back") return [`Cannot revert an interrupted apply: ${fields[0] ?? word} ('${folder}')`];
  const notes = notesOf(fields);
  if (notes.length === 0) {
    await dropOrder(folder);
    return [`Reverted an interrupted apply: '${folder}'`];
  }
  const kept = await keepOrder(folder);
  return [`Reverted an interrupted apply except for ${notes.join("; ")} (in '${kept}')`];
}

function notesOf(fields: readonly string[]): readonly string[] {
  const notes = [];
  for (let at = 0; at + 1 < fields.length; at += 2)
    notes.push(`'${shownPath(fields[at] ?? "")}': ${fields[at + 1]}`);
  return notes;
}

function sentence(path: string, reason: string, cause = ""): string {
  const what = path === "" ? reason : `'${shownPath(path)}': ${reason}`;
  return cause === "" ? what : `${what} (${cause})`;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

async function layersIn(root: string): Promise<readonly string[]> {
  const names = await readdir(root).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  });
  return names.filter((name) => name.startsWith("spn_")).map((name) => join(root, name));
}
