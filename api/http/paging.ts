/** Query parameters `limit` and `cursor` of paged calls. */
import { quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";

export type Query = Readonly<Record<string, unknown>>;

export type Paging = { readonly limit: number; readonly cursor: string | undefined };

export function pagingOf(
  query: Query,
  { usual, most }: { readonly usual: number; readonly most: number },
): Paging | Refusal {
  const strange = strangeIn(query, ["limit", "cursor"]);
  if (strange !== undefined) return strange;
  const limit = limitOf(query, usual, most);
  return typeof limit === "number" ? { limit, cursor: query["cursor"] as string | undefined } : limit;
}

/** Refuses unknown and repeated query parameters. */
export function strangeIn(query: Query, known: readonly string[]): Refusal | undefined {
  const strange = Object.keys(query).find((name) => !known.includes(name));
  if (strange !== undefined) return unknownParameter(strange, query[strange], known);
  const twice = known.find((name) => query[name] !== undefined && typeof query[name] !== "string");
  return twice === undefined ? undefined : wrongParameter(twice, query[twice], "must be given once");
}

export function limitOf(query: Query, usual: number, most: number): number | Refusal {
  const limit = wholeNumber(query["limit"], usual);
  if (limit !== undefined && limit >= 1 && limit <= most) return limit;
  return wrongParameter("limit", query["limit"], `must be a whole number from 1 to ${most}`);
}

export function wholeNumber(value: unknown, absent: number): number | undefined {
  if (value === undefined) return absent;
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

export function unknownParameter(name: string, value: unknown, known: readonly string[]): Refusal {
  const message = `Unknown query parameter ${quoted(name)}, received ${quoted(value)}: this call accepts ${known.join(", ")}`;
  return refusal("invalid_request", message, "Correct the query and send it again");
}

export function wrongParameter(name: string, value: unknown, wanted: string): Refusal {
  const message = `${name}: ${wanted}, received ${quoted(value)}`;
  return refusal("invalid_request", message, "Correct the query and send it again");
}
