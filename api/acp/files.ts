/**
 * `fs/*`: files read and written in the session's world, where a path check is the kernel's.
 *
 * Reads take the disk, not the editor's unsaved buffer. An editor that has no buffer for a path opens the path on the host, and a link
 * that a command puts there between our check and the editor's read would lead it to any file. Writes reach an open buffer when the
 * editor sees that its file has changed.
 */
import type { FilesReply } from "../../schemas/generated/types.ts";
import { type Fields, INVALID_PARAMS, Refused, succeed, textOf } from "./messages.ts";
import type { Whose } from "./whose.ts";

/** Bytes of one call, and of a whole answer. */
const PAGE = 1024 * 1024;
const MAX_TEXT = 10 * PAGE;
const MAX_LINES = 1_000_000;

export async function readTextFile(
  whose: Whose,
  params: Fields,
  cwd: string,
  signal: AbortSignal,
): Promise<object> {
  const path = pathOf(params);
  const first = Math.max(1, numberOf(params, "line") ?? 1);
  const end = first + (numberOf(params, "limit") ?? Number.MAX_SAFE_INTEGER - first);
  const parts: string[] = [];
  let length = 0;
  for (let line = first; line < end; ) {
    const body = { op: "read", path, line, lines: Math.min(end - line, MAX_LINES), max_bytes: PAGE };
    const page = await succeed<FilesReply>(
      whose.socket(),
      "/v1/files",
      { ...whose.spot(cwd), ...body },
      signal,
    );
    const text = page.text ?? "";
    // A page that was cut inside a line ends before that line.
    const whole = page.truncated === true ? text.slice(0, text.lastIndexOf("\n") + 1) : text;
    parts.push(whole);
    length += whole.length;
    if (page.truncated !== true) break;
    if (whole === "") throw tooLarge(path, "a line of more than 1 MiB");
    if (length > MAX_TEXT) throw tooLarge(path, "more than 10 MiB");
    line += whole.split("\n").length - 1;
  }
  return { content: parts.join("") };
}

export async function writeTextFile(
  whose: Whose,
  params: Fields,
  cwd: string,
  signal: AbortSignal,
): Promise<object> {
  const content = textOf(params["content"]);
  if (content === undefined) throw new Refused(INVALID_PARAMS, "'content' must be text");
  const body = { op: "write", path: pathOf(params), text: content };
  const { notices } = await succeed<FilesReply>(
    whose.socket(),
    "/v1/files",
    { ...whose.spot(cwd), ...body },
    signal,
  );
  // The protocol has no place for "written, but in the world alone".
  return notices.length === 0 ? {} : { _meta: { substrate: { notices } } };
}

function pathOf(params: Fields): string {
  const path = textOf(params["path"]);
  if (path?.startsWith("/") === true) return path;
  throw new Refused(INVALID_PARAMS, "'path' must be an absolute path");
}

function numberOf(params: Fields, name: string): number | undefined {
  const value = params[name] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
  throw new Refused(INVALID_PARAMS, `'${name}' must be a whole number`);
}

function tooLarge(path: string, what: string): Refused {
  return new Refused(
    INVALID_PARAMS,
    `'${path}' has ${what}. Read it in parts with a command: sed, head, tail`,
  );
}
