import { describe, expect, test } from "vitest";
import { countChanges, NO_CHANGES } from "../../../../world/model/fs-diff.ts";
import { Listing } from "../../../../world/overlay/listing.ts";

function listingWith(counts: Partial<Record<"write" | "mod" | "delete" | "dir", number>>): Listing {
  const listing = new Listing();
  for (const kind of ["write", "mod", "delete", "dir"] as const)
    for (let n = 0; n < (counts[kind] ?? 0); n += 1) listing.add(kind, `${kind}-${n}`, 0o100644);
  return listing;
}

describe("the count of a listing", () => {
  test.each([
    [{ write: 2, mod: 1, dir: 1 }, 4, "2 written, 1 modified, 0 deleted"],
    [{ write: 1000, dir: 100 }, 1100, "1000 written, 0 modified, 0 deleted"],
    [{ write: 2500 }, 2500, "2500 written, 0 modified, 0 deleted"],
    [{ write: 900, mod: 900, delete: 7, dir: 3 }, 1810, "900 written, 900 modified, 7 deleted"],
    [{ delete: 1, dir: 101 }, 102, "0 written, 0 modified, 1 deleted"],
  ])("is that of all changes, those beyond its bounds too: %j", (counts, all, words) => {
    const listing = listingWith(counts);
    expect(listing.count).toBe(all);
    expect(countChanges(listing.diff(["a path cannot be read"]))).toEqual({ all, words });
  });

  test("is the reason where nothing could be listed", () => {
    const summary = "not measured: listing the changes took too long and was stopped";
    expect(countChanges({ ...NO_CHANGES, truncated: true, summary })).toEqual({ all: 0, words: summary });
  });
});
