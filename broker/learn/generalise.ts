import type { Need } from "./command-fates.ts";

/** As many distinct values as make a `*` more than a guess. */
export const ENOUGH_VALUES = 4;

/** Needs with one pattern; `free` is the word where a `*` stands. */
export type Grouped = {
  readonly list: Need["list"];
  readonly pattern: string;
  readonly needs: readonly Need[];
  readonly free: number | undefined;
};

/** Each pattern by itself: exact words stay exact. */
export function exactGroups(needs: readonly Need[]): readonly Grouped[] {
  const groups = new Map<string, Need[]>();
  for (const need of needs) {
    const key = `${need.list} ${need.pattern}`;
    groups.set(key, [...(groups.get(key) ?? []), need]);
  }
  return [...groups.values()].map(asOne);
}

/**
 * Where patterns differ in one word alone and at least {@link ENOUGH_VALUES} values were seen there, one pattern with a
 * `*` in that word. A last word that is `*` would stand for any number of words: there the values must have a beginning
 * or an end in common. Pure.
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

/** Patterns that are equal but for the word at one place; the largest groups first. */
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

/** The words as they stand in the pattern: only blanks make quotes there. */
function wordsOf({ pattern }: Grouped): readonly string[] {
  return (pattern.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
}

function quoted(text: string): string {
  return text === "" || /\s/.test(text) ? `"${text}"` : text;
}
