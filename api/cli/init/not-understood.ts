/** A settings file that is left alone. */

/** The file's text is broken, or laid out in a way that no edit is safe for. The message says where. */
export class NotUnderstood extends Error {
  override readonly name = "NotUnderstood";
}

/** `line 3, column 7`, both counted from 1. */
export function placeAt(text: string, offset: number): string {
  const before = text.slice(0, offset);
  return `line ${before.split("\n").length}, column ${offset - before.lastIndexOf("\n")}`;
}
