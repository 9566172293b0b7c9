import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import type { ProgramFile, ProgramGate, ProgramStart } from "../model/programs.ts";
import { decodeFields, decodeNumber, encodeFields, type Field } from "./frame-codec.ts";

/** Gates defined by GATE frames: consecutive commands with equal gates share one definition, and init keeps the last. */
export class DefinedGates {
  readonly #send: (frame: Buffer) => void;
  #last: ProgramGate | undefined;
  #number = 0;

  constructor(send: (frame: Buffer) => void) {
    this.#send = send;
  }

  /** Returns the gate's number for an EXEC frame sent immediately after this call; sends a GATE frame first if needed. */
  numberOf(gate: ProgramGate): number {
    if (this.#last !== undefined && isSame(this.#last, gate)) return this.#number;
    this.#last = gate;
    this.#number = (this.#number % 0xffff_ffff) + 1;
    this.#send(
      encodeFields(FRAME.GATE, this.#number, [
        ...gate.names.map((name): Field => [TAG.ASKED_NAME, name]),
        ...(gate.folders ?? []).map((folder): Field => [TAG.FOLDER, folder]),
        ...(gate.all ? [[TAG.ASKS_ALL, 1] as const] : []),
        ...(gate.refuses ? [[TAG.REFUSES, 1] as const] : []),
      ]),
    );
    return this.#number;
  }
}

/** Lists of names are built per policy and gates per command, so comparing list identity usually suffices. */
function isSame(one: ProgramGate, other: ProgramGate): boolean {
  if (one.all !== other.all || one.refuses !== other.refuses) return false;
  return isSameList(one.names, other.names) && isSameList(one.folders ?? [], other.folders ?? []);
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one === other || (one.length === other.length && one.every((word, index) => word === other[index]));
}

/** Passes the start in a STARTING frame to the gate, and sends the gate's answer. */
export async function answerStart(
  gate: ProgramGate,
  id: number,
  payload: Buffer,
  send: (frame: Buffer) => void,
): Promise<void> {
  const { start, token } = decodeStart(payload);
  const answer = (field: Field | undefined): void => {
    if (token !== undefined)
      send(encodeFields(FRAME.ANSWER, id, [[TAG.TOKEN, token], ...(field === undefined ? [] : [field])]));
  };
  const may = await gate.decide(start, (milliseconds) => answer([TAG.WAIT, Math.ceil(milliseconds)]));
  answer(may ? [TAG.MAY, 1] : undefined);
}

type MutableFile = { called: string; path: string | null; argv: readonly string[]; same: string[] };

/** `token`: identifies the start in the answer; undefined: no answer is expected. */
export function decodeStart(payload: Buffer): { readonly start: ProgramStart; readonly token?: Uint8Array } {
  const files: MutableFile[] = [];
  let [pid, cut, unread, token]: [number, boolean, string | null, Buffer | undefined] = [
    0,
    false,
    null,
    undefined,
  ];
  let starter: ProgramStart["starter"];
  let folder: string | null = null;
  for (const [tag, bytes] of decodeFields(payload)) {
    const file = files.at(-1);
    if (tag === TAG.TOKEN) token = Buffer.from(bytes);
    else if (tag === TAG.CALLER) pid = decodeNumber(bytes);
    else if (tag === TAG.WORKING_FOLDER) folder = text(bytes);
    else if (tag === TAG.STARTER) starter = { path: text(bytes), argv: [] };
    else if (tag === TAG.STARTER_WORDS && starter !== undefined)
      starter = { ...starter, argv: wordsOf(bytes) };
    else if (tag === TAG.CALLED) files.push({ called: text(bytes), path: null, argv: [], same: [] });
    else if (tag === TAG.CUT) cut = true;
    else if (tag === TAG.UNREADABLE) unread = text(bytes);
    else if (file === undefined) throw new RangeError(`Field ${tag} of STARTING belongs to no file`);
    else if (tag === TAG.REAL) file.path = text(bytes);
    else if (tag === TAG.SAME) file.same.push(text(bytes));
    else if (tag === TAG.WORDS) file.argv = wordsOf(bytes);
  }
  const [first, ...more] = files satisfies ProgramFile[];
  if (first === undefined) throw new RangeError("STARTING tells of no file");
  const start: ProgramStart = {
    ...{ pid, folder, files: [first, ...more], cut, unread },
    ...(starter === undefined ? {} : { starter }),
  };
  return { start, ...(token === undefined ? {} : { token }) };
}

/** Splits words, each terminated by NUL. */
export function wordsOf(bytes: Buffer): readonly string[] {
  return bytes.length === 0 ? [] : text(bytes.subarray(0, bytes.length - 1)).split("\0");
}

function text(bytes: Buffer): string {
  return bytes.toString("utf8");
}
