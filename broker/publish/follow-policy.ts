import type { World } from "../../world/backend.ts";
import type { Publisher } from "./publisher.ts";
import type { Effective } from "../model/effective.ts";
import type { Session } from "../model/place.ts";

/** Brings the ports of a session to what its policies publish; `world` is its warm one. Never rejects. */
export function followPolicy(
  publisher: Publisher,
  { id }: Session,
  world: World,
  { hash, policies }: Effective,
): Promise<void> {
  return publisher.follow(id, world, hash, publishedBy(policies));
}

/** Of two policies, what both name. */
export function publishedBy(policies: Effective["policies"]): readonly number[] {
  const [first = [], ...others] = policies.map(({ document }) => document.world?.publish ?? []);
  return [...new Set(first)].filter((port) => others.every((ports) => ports.includes(port)));
}
