import type { Need } from "./command-fates.ts";

/** Number of distinct values from which a `*` is more than a guess. */
export const ENOUGH_VALUES = 4;

/** Needs with the same pattern; `free` is the index of the `*` word. */
export type Grouped = {
  readonly list: Need["list"];
  readonly pattern: string;
  readonly needs: readonly Need[];
  readonly free: number | undefined;
};

/** Groups equal patterns: exact words stay exact. */
export function exactGroups(needs: readonly Need[]): readonly Grouped[] {
  const groups = new Map<string, Need[]>();
  for (const need of needs) {
    const key = `${need.list} ${need.pattern}`;
    groups.set(key, [...(groups.get(key) ?? []), need]);
  }
  return [...groups.values()].map(asOne);
}

/**
 * Merges patterns that differ in a single word with at least {@link ENOUGH_VALUES} values into a pattern with a `*` for the word.
 * A bare `*` as last word would stand for any number of words: there the values must share a beginning or an end. Pure.
 */
export function starredGroups(needs: readonly Need[]): readonly Grouped[] {
  const exact = exactGroups(needs);
  const taken = new Set<Grouped>();
  const starred: Grouped[] = [];
  for (const group of groupsByPlace(exact)) {
    const members = group.members.filter((member) => !taken.has(member));
    const made = members.length < ENOUGH_VALUES ? undefined : starAt(members, group.place);
    if (made === undefined) continue;
    starred.push(made);
    for (const member of members) taken.add(member);
  }
  return [...exact.filter((one) => !taken.has(one)), ...starred];
}

function asOne(needs: readonly Need[]): Grouped {
  const [first] = needs;
  return { list: first?.list ?? "commands.allowed", pattern: first?.pattern ?? "", needs, free: undefined };
}

type Place = { readonly place: number; readonly members: readonly Grouped[] };

/** Groups patterns that differ only in the word at a position; largest groups first. */
function groupsByPlace(patterns: readonly Grouped[]): readonly Place[] {
  const groups = new Map<string, { place: number; members: Grouped[] }>();
  for (const one of patterns) {
    const words = wordsOf(one);
    for (let place = 1; place < words.length; place += 1) {
      if (words[place]?.startsWith("-") === true) continue;
      const key = JSON.stringify([one.list, place, words.with(place, "")]);
      const group = groups.get(key) ?? { place, members: [] };
      group.members.push(one);
      groups.set(key, group);
    }
  }
  return [...groups.values()].sort((one, other) => other.members.length - one.members.length);
}

function starAt(members: readonly Grouped[], place: number): Grouped | undefined {
  const [first] = members;
  if (first === undefined) return undefined;
  const words = members.map((one) => wordsOf(one)[place] ?? "");
  const star = starFor(words, place === wordsOf(first).length - 1);
  if (star === undefined) return undefined;
  return {
    list: first.list,
    pattern: wordsOf(first).with(place, star).map(quoted).join(" "),
    needs: members.flatMap(({ needs }) => needs),
    free: place,
  };
}

function starFor(values: readonly string[], isLast: boolean): string | undefined {
  const prefix = commonPrefix(values);
  const rests = values.map((value) => value.slice(prefix.length));
  const suffix = reversed(commonPrefix(rests.map(reversed)));
  if (!isLast) return `${prefix}*${suffix}`;
  return /[\p{L}\p{N}]/u.test(prefix + suffix) ? `${prefix}*${suffix}` : undefined;
}

function commonPrefix(values: readonly string[]): string {
  const [first = "", ...others] = values;
  let length = first.length;
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length -= 1;
  return first.slice(0, length);
}

function reversed(text: string): string {
  return [...text].reverse().join("");
}

/** Returns the words of a pattern without quotes; only words with blanks are quoted. */
function wordsOf({ pattern }: Grouped): readonly string[] {
  return (pattern.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
}

export function quoted(text: string): string {
  return text === "" || /\s/.test(text) ? `"${text}"` : text;
}
