import { homeChecks } from "../../doctor/home.ts";
import { leftFilesCheck } from "../../doctor/left-files.ts";
import { neededParts } from "../../doctor/needs.ts";
import { runChecks } from "../../doctor/run.ts";
import { startCheck } from "../../doctor/start.ts";
import { wantedLayers } from "../../doctor/wanted.ts";
import type { DoctorCheck, DoctorReport } from "../../../schemas/generated/types.ts";
import { type Colours, coloursFor } from "../words/colours.ts";
import { hostOf } from "../terminal/host.ts";
import { harmless, printJson, printLine, type Terminal } from "../terminal/terminal.ts";

export type DoctorOptions = { readonly json?: boolean; readonly mend?: boolean };

/** Something that the default policy needs is missing. */
const EXIT_MISSING = 1;

/** Tries everything that a world needs of this host. Needs no broker, and starts none. */
export async function worldDoctor(terminal: Terminal, options: DoctorOptions): Promise<number> {
  const colours = coloursFor(terminal);
  const checks: DoctorCheck[] = [];
  await runChecks(await allChecks(terminal, options.mend === true), (found) => {
    checks.push(found);
    // As each is found: the whole takes a second or more.
    if (options.json !== true) printCheck(terminal, colours, found);
  });
  const missing = checks.filter(({ needed, verdict }) => needed && verdict === "missing");
  const report: DoctorReport = { ok: missing.length === 0, checks };
  if (options.json === true) printJson(terminal, report);
  else printSummary(terminal, colours, missing);
  return report.ok ? 0 : EXIT_MISSING;
}

async function allChecks(terminal: Terminal, mend: boolean): ReturnType<Terminal["createChecks"]> {
  const { home, installation, uid } = terminal;
  const order = {
    required: neededParts(home, installation),
    overlay: home.overlay,
    isWanted: await wantedLayers(home),
    mend,
  };
  return [
    ...homeChecks(home, uid, process.versions.node),
    ...(await terminal.createChecks(order)),
    startCheck(hostOf(terminal)),
    leftFilesCheck(home, mend),
  ];
}

function printCheck(terminal: Terminal, colours: Colours, found: DoctorCheck): void {
  const { name, what, verdict, needed, seen, mend } = found;
  const word = verdict.padEnd(7);
  const colour =
    verdict === "ok" ? colours.green : verdict === "weaker" || !needed ? colours.yellow : colours.red;
  printLine(terminal, `${colour(word)}  ${colours.bold(name.padEnd(15))}  ${what}`);
  printLine(terminal, `         ${harmless(seen).replaceAll("\n", " ")}`);
  for (const line of mend) printLine(terminal, `         mend: ${harmless(line)}`);
}

function printSummary(terminal: Terminal, colours: Colours, missing: readonly DoctorCheck[]): void {
  printLine(terminal);
  if (missing.length === 0)
    return printLine(terminal, colours.green("This host has everything that the default policy needs"));
  const names = missing.map(({ name }) => name).join(", ");
  printLine(terminal, colours.red(`The default policy needs what is missing here: ${names}`));
}
