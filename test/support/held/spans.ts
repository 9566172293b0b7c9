/** Held changes that no command would make, written straight into the layers. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import type { Deed, HeldPlace, Span } from "./place.ts";

/** A little of everything. */
export const BASE: readonly Deed[] = [
  { deed: "file", path: "kept", text: "kept" },
  { deed: "file", path: "file", text: "before" },
  { deed: "dir", path: "folder" },
  { deed: "file", path: "folder/one", text: "one" },
  { deed: "file", path: "folder/two", text: "two" },
  { deed: "link", path: "pointer", text: "kept" },
];

const SET = `
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
int main(int count, char **words) {
  if (count != 4) return 2;
  if (lsetxattr(words[1], words[2], words[3], strlen(words[3]), 0) == 0) return 0;
  perror(words[2]);
  return 1;
}
`;

/** Compiles what sets an extended attribute (`setfattr` is not everywhere); gives its path. */
export function buildSetter(folder: string): string {
  const program = join(folder, "set-attribute");
  const made = spawnSync("cc", ["-x", "c", "-o", program, "-"], { input: SET });
  if (made.status !== 0) throw new Error(`The setter does not compile: ${made.stderr.toString()}`);
  return program;
}

export function upper({ layers }: Span, path: string): string {
  return join(layers, "upper", path);
}

export function below({ project }: Span, path: string): string {
  return join(project, path);
}

/** Spans over {@link BASE}, in a place. */
export class HeldSpans {
  readonly #place: HeldPlace;
  #count = 0;

  constructor(place: HeldPlace) {
    this.#place = place;
  }

  async span(deeds: readonly Deed[] = []): Promise<Span> {
    const made = await this.#place.project(`s${++this.#count}`, BASE);
    if (deeds.length > 0) await this.#place.isolated(made, deeds);
    return made;
  }

  /** The attack must change nothing at all, and leave nothing. */
  async unchanged(held: Span, act: () => Promise<{ kind: string }>, kind: string): Promise<void> {
    const before = await this.#place.look(held.project);
    const ended = await act();
    assert.equal(ended.kind, kind, JSON.stringify(ended));
    assert.deepEqual(await this.#place.look(held.project), before);
  }
}
