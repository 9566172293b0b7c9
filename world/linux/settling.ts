/** Asks one world's init to seal git folders made by commands (world/native/seals/settle.h). */
import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import type { Settled } from "../model/world.ts";
import { errnoName } from "../model/errno.ts";
import { FolderQuestions } from "./folder-questions.ts";
import { decodeFields, decodeNumber } from "./frame-codec.ts";

/** Time limit; init copies a few files per folder. A silent world cannot be trusted with git folders, so it is ended. */
const PATIENCE_MS = 10_000;

const SETTLING = {
  frame: FRAME.SETTLE,
  patienceMs: PATIENCE_MS,
  read: settledOf,
  gone: { sealed: [], unsealed: [] },
};

export class Settling extends FolderQuestions<Settled> {
  /** `giveUp` ends the world. */
  constructor(send: (frame: Buffer) => void, giveUp: () => void) {
    super(SETTLING, send, giveUp);
  }
}

function settledOf(payload: Buffer): Settled {
  const fields = decodeFields(payload);
  const of = (wanted: number): readonly Buffer[] =>
    fields.filter(([tag]) => tag === wanted).map(([, bytes]) => bytes);
  const errors = of(TAG.ERRNO).map(decodeNumber);
  const unsealed = of(TAG.TARGET).map((folder, at) => ({
    folder: folder.toString("utf8"),
    why: errnoName(errors[at] ?? 0),
  }));
  return { sealed: of(TAG.PATH).map((path) => path.toString("utf8")), unsealed };
}
