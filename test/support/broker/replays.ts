/** Replays through the API, for tests. */
import { chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { homeLayout } from "../../../broker/settings/home.ts";
import type { ErrorReply, ReplayReply, Span } from "../../../schemas/generated/types.ts";
import { eventually, ROOT_OVERLAY, type TestBroker } from "./broker.ts";

/** Enforces, and isolates one command. */
export const REPLAY_POLICY = `id: default
name: Replays
mode: enforce
fs:
  write: ["$PROJECT/**"]
commands:
  isolated: ["sh held.sh"]
`;

/** Replays a span, through the agents' socket or the operator's; it must be answered with 200. */
export async function replayed(
  broker: TestBroker,
  span: string,
  body: object = {},
  by: "call" | "operator" = "call",
): Promise<ReplayReply> {
  const { status, document } = await broker[by]("POST", `/v1/replay/${span}`, body);
  if (status !== 200) throw new Error(`Expected 200, received ${status}: ${JSON.stringify(document)}`);
  return document as ReplayReply;
}

/** A replay that must be refused. */
export async function notReplayed(
  broker: TestBroker,
  span: string,
  body: object = {},
): Promise<{ readonly status: number } & ErrorReply["error"]> {
  const { status, document } = await broker.call("POST", `/v1/replay/${span}`, body);
  if (status === 200) throw new Error(`Expected a refusal, received ${JSON.stringify(document)}`);
  return { status, ...(document as ErrorReply).error };
}

/** What a replay says of a command that ends and writes as it did. Its changes may not be listed: see `fs_diff`. */
export const SAME = { exit: true, stdout: true, stderr: true } as const;

/** Names of layers that this broker has not removed, once those of replays had their time to go. */
export async function leftLayers(broker: TestBroker): Promise<readonly string[]> {
  const { overlay } = homeLayout(broker.home, broker.actor.uid === 0 ? ROOT_OVERLAY : undefined);
  const held = (): readonly string[] => (existsSync(overlay) ? readdirSync(overlay) : []);
  await eventually(() => held().every((name) => broker.spans().some((span) => isHeld(span, name))), 3000);
  return held();
}

function isHeld(span: Span, name: string): boolean {
  return span.span_id === name && span.fs_diff?.held === true;
}

/**
 * Writes a file as the actor's own, and touches nothing else: `TestBroker.write` gives every file to its owner once more, which is a
 * change to each of them, and meets layers that are just being removed.
 */
export function put({ actor }: TestBroker, path: string, content: string | Uint8Array): void {
  const made = mkdirSync(dirname(path), { recursive: true }) ?? path;
  writeFileSync(path, content);
  for (let each = path; ; each = dirname(each)) {
    chownSync(each, actor.uid, actor.gid);
    if (each === made || made === path) return;
  }
}
