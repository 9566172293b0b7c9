/** Isolated commands and what becomes of their changes, for tests. */
import { spawnSync } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Answer } from "../../../api/client/client.ts";
import type { ChangesReply, DiffReply, ErrorReply, HeldReply } from "../../../schemas/generated/types.ts";
import { homeLayout } from "../../../broker/settings/home.ts";
import { type Ran, ROOT_OVERLAY, type TestBroker } from "../broker/broker.ts";

/** Isolates a command that says `true iso`; `more` are further keys of the policy. */
export function isolating(more = ""): string {
  return `id: default\nname: Held\nmode: enforce\ncommands: { isolated: ["true iso"] }\n${more}\n`;
}

/** Runs a shell command on an overlay of the project. */
export function isolated(broker: TestBroker, cmd: string, more: object = {}): Promise<Ran> {
  return broker.run({ cmd: `true iso; ${cmd}`, ...more });
}

/** Where the changes of a command are held. */
export function layersOf({ actor, home }: TestBroker, span: string): string {
  const { overlay } = homeLayout(home, actor.uid === 0 ? ROOT_OVERLAY : undefined);
  return join(overlay, span);
}

export type Action = "apply" | "discard" | "undo";

/** As the operator; `paths` absent: all. */
export function change(
  broker: TestBroker,
  action: Action,
  span: string,
  paths?: readonly string[],
): Promise<Answer> {
  return broker.operator("POST", `/v1/${action}/${span}`, paths === undefined ? {} : { paths });
}

/** A change that must be answered with 200. */
export async function changed(
  broker: TestBroker,
  action: Action,
  span: string,
  paths?: readonly string[],
): Promise<ChangesReply> {
  const answer = await change(broker, action, span, paths);
  if (answer.status !== 200)
    throw new Error(`Expected 200, received ${answer.status}: ${JSON.stringify(answer.document)}`);
  return answer.document as ChangesReply;
}

/** The error of an answer that must be one. */
export function errorIn({ status, document }: Answer): { readonly status: number } & ErrorReply["error"] {
  if (status === 200) throw new Error(`Expected a refusal, received ${JSON.stringify(document)}`);
  return { status, ...(document as ErrorReply).error };
}

export async function diffOf(broker: TestBroker, span: string, query = ""): Promise<DiffReply> {
  const { status, document } = await broker.operator("GET", `/v1/diff/${span}${query}`);
  if (status !== 200) throw new Error(`Expected 200, received ${status}: ${JSON.stringify(document)}`);
  return document as DiffReply;
}

/** A broker as after its start, for the next row: nothing is held, no world is warm, and the project is empty. */
export async function startOver(broker: TestBroker): Promise<void> {
  const { held } = (await broker.operator("GET", "/v1/held")).document as HeldReply;
  for (const { span_id: span } of held) await changed(broker, "discard", span);
  const { status } = await broker.operator("POST", "/v1/world/restart", { all: true, force: true });
  if (status !== 200) throw new Error(`Expected 200 of a restart, received ${status}`);
  for (const name of readdirSync(broker.project))
    rmSync(join(broker.project, name), { recursive: true, force: true });
}

/** Every path below a folder with what it is and holds; names are bytes. */
export function treeOf(folder: string, below = ""): Readonly<Record<string, string>> {
  const place = Buffer.from(join(folder, below), "latin1");
  const rows = readdirSync(place, { encoding: "latin1" }).flatMap((name) => {
    const path = below === "" ? name : `${below}/${name}`;
    const at = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(path, "latin1")]);
    const stat = lstatSync(at);
    const mode = (stat.mode & 0o7777).toString(8);
    if (stat.isDirectory()) return [[path, `folder ${mode}`], ...Object.entries(treeOf(folder, path))];
    if (stat.isSymbolicLink()) return [[path, `link ${readlinkSync(at, "latin1")}`]];
    return [[path, `file ${mode} ${stat.isFile() ? readFileSync(at, "latin1") : "special"}`]];
  });
  return Object.fromEntries(rows) as Readonly<Record<string, string>>;
}

/** Writes files of the project as the actor's own; layers elsewhere may be on their way out and are let be. */
export function fill(broker: TestBroker, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(broker.project, path)), { recursive: true });
    writeFileSync(join(broker.project, path), text);
  }
  const { uid, gid } = broker.actor;
  const { status, stderr } = spawnSync("chown", ["-Rh", `${uid}:${gid}`, "--", broker.project]);
  if (status !== 0) throw new Error(`Cannot give '${broker.project}' away: ${stderr.toString()}`);
}

/** Copies a folder with all that belongs to it. */
export function copyOf(folder: string, copy: string): string {
  const { status, stderr } = spawnSync("cp", ["-a", "--", folder, copy]);
  if (status !== 0) throw new Error(`Cannot copy '${folder}': ${stderr.toString()}`);
  return copy;
}
