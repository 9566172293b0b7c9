/** Explains the failure of a world's init to the person who ran a command. */
import { constants } from "node:os";
import { TAG } from "../../schemas/generated/frames.ts";
import { errnoName } from "../model/errno.ts";
import { decodeFields, decodeNumber } from "./frame-codec.ts";

/** Errors by which init learns of the forker's death: the forker was reaped, or its socket is closed. */
const FORKER_GONE: ReadonlySet<number> = new Set([
  constants.errno.ECHILD,
  constants.errno.EPIPE,
  constants.errno.ECONNRESET,
]);

/** Formats the payload of a FAILED frame as a sentence. */
export function failureWords(payload: Buffer): string {
  const fields = new Map(decodeFields(payload));
  const text = (tag: number): string => fields.get(tag)?.toString("utf8") ?? "";
  const [step, about] = [text(TAG.STEP), text(TAG.PATH)];
  const bytes = fields.get(TAG.ERRNO);
  const error = bytes === undefined ? 0 : decodeNumber(bytes);
  // Must be a command's doing: nobody else inside sends signals, and the kernel's OOM killer takes commands first.
  if (step === "forker" && about === "" && FORKER_GONE.has(error))
    return "A command killed the world's own processes, as 'kill -9 -1' does: all commands in it ended, and the next command gets a new world";
  const place = about === "" ? "" : ` (${about})`;
  return `its init gave up at step '${step || "unknown"}'${place}: ${error === 0 ? "no error was reported" : errnoName(error)}`;
}
