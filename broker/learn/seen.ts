/** How often something was observed, when last, and in which spans: the newest few. */
export type Seen = { readonly count: number; readonly last: string; readonly spans: readonly string[] };

/** As many spans as a person looks up. */
const KEPT_SPANS = 3;

export function seenAlso(before: Seen | undefined, more: Seen): Seen {
  if (before === undefined) return { ...more, spans: more.spans.slice(-KEPT_SPANS) };
  const [older, newer] = before.last <= more.last ? [before, more] : [more, before];
  return {
    count: before.count + more.count,
    last: newer.last,
    spans: [...new Set([...older.spans, ...newer.spans])].slice(-KEPT_SPANS),
  };
}

/** `seen 4 times, last 2026-01-31T12:00:00Z, spn_… spn_… and 2 more` */
export function seenWords({ count, last, spans }: Seen): string {
  const more = count - spans.length;
  const times = count === 1 ? "once" : `${count} times`;
  const shown = last.replace(/\.\d+Z$/, "Z");
  return `seen ${times}, last ${shown}, ${spans.join(" ")}${more > 0 ? ` and ${more} more` : ""}`;
}
