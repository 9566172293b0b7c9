import { existsSync } from "node:fs";
import { delimiter, resolve } from "node:path";
import { Complaint, harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";

export type ShimOptions = { readonly json?: boolean };

/** Ends with 1 when a name was refused. */
export async function installShims(
  terminal: Terminal,
  names: readonly string[],
  { json }: ShimOptions,
): Promise<number> {
  const { shim } = terminal.installation;
  if (process.platform !== "linux")
    throw new Complaint(
      "Shims are not built on this system: they are Linux programs. 'substrate init' connects an agent by its hooks",
    );
  if (!existsSync(shim))
    throw new Complaint(`'${shim}' is missing. Run 'npm run build' in '${terminal.installation.root}'`);
  const folder = await terminal.shims();
  if (folder.path.includes(delimiter))
    throw new Complaint(
      `Cannot put '${folder.path}' on PATH: it holds a '${delimiter}'. Choose another SUBSTRATE_HOME`,
    );
  const change = worked(folder, () => folder.install(names));
  const line = pathLine(folder.path);
  if (json === true) printJson(terminal, { ...change, folder: folder.path, path_line: line });
  else {
    told(terminal, "linked", change.done);
    told(terminal, "already installed", change.same);
    tellRefused(terminal, change.refused);
    if (isFirst(terminal, folder.path)) printLine(terminal, "The shims folder is first on PATH");
    else
      printLine(
        terminal,
        `The shims are not in use yet. Put this line into your shell's profile and start a new shell:\n\n  ${line}\n`,
      );
  }
  return change.refused.length === 0 ? 0 : 1;
}

/** Ends with 1 when a name was refused. */
export async function removeShims(
  terminal: Terminal,
  names: readonly string[],
  { json }: ShimOptions,
): Promise<number> {
  const folder = await terminal.shims();
  const change = worked(folder, () => folder.remove(names));
  if (json === true) printJson(terminal, change);
  else {
    told(terminal, "removed", change.done);
    told(terminal, "not installed", change.same);
    tellRefused(terminal, change.refused);
    if (change.done.length + change.same.length + change.refused.length === 0)
      printLine(terminal, "No shims are installed");
  }
  return change.refused.length === 0 ? 0 : 1;
}

export async function shimStatus(
  terminal: Terminal,
  names: readonly string[],
  { json }: ShimOptions,
): Promise<number> {
  const folder = await terminal.shims();
  const shims = worked(folder, () => folder.status(names));
  const first = isFirst(terminal, folder.path);
  if (json === true) {
    printJson(terminal, { folder: folder.path, first_on_path: first, shims });
    return 0;
  }
  printLine(
    terminal,
    `${folder.path} ${first ? "is first on PATH" : `is not first on PATH: ${pathLine(folder.path)}`}`,
  );
  for (const { name, state, real } of shims)
    printLine(
      terminal,
      `${harmlessLine(name).padEnd(16)} ${state}${real === null ? "" : `, before ${harmlessLine(real)}`}`,
    );
  if (shims.length === 0) printLine(terminal, "No shims are installed. Run 'substrate shim install'");
  return 0;
}

/** A file or a link to nothing stands there, or it may not be written: for whoever asked to mend. */
function worked<Result>(folder: { readonly path: string }, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw new Complaint(`Cannot use '${folder.path}' as the shims folder: ${reasonOf(error)}`);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Printed, and written nowhere: a profile is a person's own. */
function pathLine(folder: string): string {
  return `export PATH='${folder.replaceAll("'", String.raw`'\''`)}':"$PATH"`;
}

function isFirst(terminal: Terminal, folder: string): boolean {
  const first = terminal.environment["PATH"]?.split(delimiter)[0] ?? "";
  return first !== "" && resolve(first) === folder;
}

function told(terminal: Terminal, what: string, names: readonly string[]): void {
  if (names.length > 0) printLine(terminal, `${what}: ${names.map(harmlessLine).join(" ")}`);
}

function tellRefused(
  terminal: Terminal,
  refused: readonly { readonly name: string; readonly why: string }[],
): void {
  for (const { name, why } of refused) terminal.err.write(`substrate: '${harmlessLine(name)}': ${why}\n`);
}
