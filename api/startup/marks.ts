/** Marks in written files: whose they are, and which folders were made for them. Pure. */
import { MARK } from "./service.ts";

const MADE = "# Folders made for it: ";

export function isOurs(text: string): boolean {
  return text.startsWith(MARK) || text.includes(PLIST_MARK);
}

export const PLIST_MARK = "<!-- Written by 'substrate service install' -->";

/** Adds the folders to remove together with the unit; a property list has no room for them. */
export function withMade(text: string, folders: readonly string[]): string {
  return folders.length === 0 || !text.startsWith(MARK) ? text : `${text}${MADE}${JSON.stringify(folders)}\n`;
}

export function madeIn(text: string): readonly string[] {
  const line = text.split("\n").find((each) => each.startsWith(MADE));
  return line === undefined ? [] : (JSON.parse(line.slice(MADE.length)) as string[]);
}
