/** Pages that a test gives its internet, kept as files: they are too many for a message. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Pages } from "../registry/pages.ts";
import type { WebResponse } from "./web.ts";

export function writePages(folder: string, pages: Pages): void {
  mkdirSync(folder);
  for (const [path, content] of Object.entries(pages)) writeFileSync(fileOf(folder, path), content);
}

/** The page of a path, or 404. pip takes a page of links only where its type is HTML. */
export function sendPage(response: WebResponse, folder: string, path: string): void {
  const content = contentOf(fileOf(folder, path));
  if (content === undefined) {
    response.writeHead(404);
    response.end("no such page\n");
    return;
  }
  const type = path.endsWith("/") ? "text/html" : "application/octet-stream";
  response.writeHead(200, { "content-type": type, "content-length": content.length });
  response.end(content);
}

function contentOf(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Clients escape paths in ways of their own. */
function fileOf(folder: string, path: string): string {
  return join(folder, encodeURIComponent(decodeURIComponent(path)));
}
