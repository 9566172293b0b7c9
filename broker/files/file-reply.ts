/** The reply of an operation that was carried out. Pure. */
import type { FilesReply, FilesRequest } from "../../schemas/generated/types.ts";
import type { FileAnswer, FileEntry } from "../../world/backend.ts";

type Own = Omit<FilesReply, "span_id" | "session_id" | "op" | "notices">;

export function fileReply(request: FilesRequest, { entries, cut }: FileAnswer): Own {
  switch (request.op) {
    case "read":
      return readReply(request, entries[0] ?? { path: "" }, cut);
    case "glob":
      return { paths: entries.map(({ path }) => path), truncated: cut };
    case "grep":
      return request.names_only === true
        ? { paths: entries.map(({ path }) => path), truncated: cut }
        : {
            matches: entries.map(({ path, line = 0, text }) => ({ path, line, text: textOf(text) })),
            truncated: cut,
          };
    default:
      return { files: entries.map((entry) => changed(request, entry)) };
  }
}

function readReply({ encoding }: FilesRequest, entry: FileEntry, truncated: boolean): Own {
  const { path, text, size = 0, line, lines } = entry;
  if (encoding === "base64")
    return { path, data_b64: (text ?? Buffer.alloc(0)).toString("base64"), size, truncated };
  return {
    path,
    text: textOf(text),
    size,
    truncated,
    ...(line === undefined ? {} : { line }),
    ...(lines === undefined ? {} : { total_lines: lines }),
  };
}

function changed({ op }: FilesRequest, { path, kind, size = 0, count = 0 }: FileEntry) {
  const is = kind === "created" || kind === "removed" ? kind : "changed";
  return {
    path,
    kind: is,
    size,
    ...(op === "write" || is !== "changed" ? {} : { replaced: count }),
  } as const;
}

function textOf(bytes: Buffer | undefined): string {
  return bytes?.toString("utf8") ?? "";
}
