import { quoted, type Refusal, refusal } from "../model/refusal.ts";

/** A text that says nothing that could be asked for. */
export function malformed(text: string, wanted: string): Refusal {
  return refusal(
    "invalid_request",
    `Cannot read the scope ${quoted(text)}: wanted ${wanted}`,
    "Write fs.read:/path, fs.write:/path or net:host:port",
  );
}
