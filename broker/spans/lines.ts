import { createReadStream } from "node:fs";

export type Line = { readonly offset: number; readonly length: number; readonly text: string };

const NEWLINE = 0x0a;

/** The complete lines of a file from a byte offset on, with their places. Memory stays at one line and one chunk. */
export async function* readLines(path: string, from = 0): AsyncGenerator<Line> {
  let offset = from;
  let parts: Buffer[] = [];
  for await (const chunk of createReadStream(path, { start: from }) as AsyncIterable<Buffer>) {
    let at = 0;
    for (let end = chunk.indexOf(NEWLINE, at); end !== -1; end = chunk.indexOf(NEWLINE, at)) {
      const line = Buffer.concat([...parts, chunk.subarray(at, end)]);
      parts = [];
      yield { offset, length: line.length, text: line.toString("utf8") };
      offset += line.length + 1;
      at = end + 1;
    }
    if (at < chunk.length) parts.push(chunk.subarray(at));
  }
}
