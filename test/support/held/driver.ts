/** A process of some user's that holds a `LayerStore`: a call is a line of JSON, and so is what comes of it. */
import { createInterface } from "node:readline";
import type { Held } from "../../../world/model/held.ts";
import { LinuxBackend } from "../../../world/linux/backend.ts";

type Call = {
  readonly id: number;
  readonly verb: "list" | "apply" | "undo" | "discard" | "content" | "recover" | "expire";
  readonly held?: Omit<Held, "mountedAt"> & { readonly mountedAt: string };
  readonly paths: readonly string[] | null;
  readonly denied?: readonly string[];
  readonly limit?: number;
  readonly root?: string;
};

const backend = new LinuxBackend({
  init: process.argv[2] ?? "",
  uid: process.getuid?.() ?? 0,
  gid: process.getgid?.() ?? 0,
  strays: "/nonexistent",
  quarantine: "/nonexistent",
});
const store = backend.held;
const never = new AbortController().signal;

for await (const line of createInterface({ input: process.stdin })) void answer(JSON.parse(line) as Call);

async function answer(call: Call): Promise<void> {
  const result = await perform(call).catch((error: unknown) => ({ threw: String(error) }));
  process.stdout.write(`${JSON.stringify({ id: call.id, result })}\n`);
}

async function perform({
  verb,
  held: given,
  paths,
  denied = [],
  limit = 0,
  root = "",
}: Call): Promise<unknown> {
  if (verb === "recover") return await store.recover(root);
  if (verb === "expire") return await backend.expireHeld(root, 0);
  if (given === undefined) throw new Error(`'${verb}' needs held changes`);
  const held: Held = { ...given, mountedAt: BigInt(given.mountedAt) };
  if (verb === "list") return await store.list(held, never, "operator");
  if (verb === "apply") return await store.apply(held, paths, (path) => denied.includes(path), never);
  if (verb === "undo") return await store.undo(held, paths, never);
  if (verb === "discard") return await store.discard(held, paths);
  const { before, after, truncated } = await store.content(held, paths?.[0] ?? "", limit);
  return { before: textOf(before), after: textOf(after), truncated };
}

function textOf(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString("latin1");
}
