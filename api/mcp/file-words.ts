/** Replies of the file tools as a model reads them. What a reply leaves out, it says. */
import type { FilesReply } from "../../schemas/generated/types.ts";
import { joined, shortened } from "./replies.ts";

export function readWords({
  text: all = "",
  line = 1,
  total_lines: lines,
  truncated,
  size,
}: FilesReply): string {
  const lossy = all.includes("\uFFFD") ? [LOSSY] : [];
  if (truncated !== true) return joined(all, lossy);
  // What is cut inside a line ends before that line, so that `line` reads on without a gap.
  const text = all.slice(0, all.lastIndexOf("\n") + 1);
  if (text === "")
    return joined(all, [
      ...lossy,
      `[the first ${Buffer.byteLength(all)} bytes of line ${line}, which is longer: read the rest with bash, sed -n ${line}p and cut -b]`,
    ]);
  const last = line + text.split("\n").length - 2;
  const of = lines === undefined ? `of ${size} bytes` : `of ${lines}`;
  return joined(text, [...lossy, `[lines ${line} to ${last} ${of}; read on with line ${last + 1}]`]);
}

const LOSSY =
  "[U+FFFD may stand for bytes that are no UTF-8: writing this text back would lose them, edit and bash keep them]";

export function changedWords({ files = [] }: FilesReply): string {
  return files
    .map(({ path, kind, size, replaced }) => {
      const count = replaced === undefined || replaced < 2 ? "" : `, ${replaced} places`;
      return `${kind} ${path} (${size} bytes${count})\n`;
    })
    .join("");
}

export function foundWords({ paths, matches = [], truncated }: FilesReply): string {
  const lines = paths ?? matches.map(({ path, line, text }) => `${path}:${line}:${text}`);
  if (lines.length === 0)
    return truncated === true
      ? "Nothing was found, but not everything was searched: a file is over 10 MiB, or there are too many. Narrow the search, or use bash"
      : "Nothing was found";
  const more = "[there is more, or a file of over 10 MiB was not searched: narrow the search, or set limit]";
  return shortened([...lines, ...(truncated === true ? [more] : [])].join("\n"));
}
