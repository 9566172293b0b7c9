import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { unifiedDiff } from "../../../broker/learn/unified-diff.ts";
import { claimedBy } from "../../serve/claim.ts";
import { removeEmptyFolder } from "../../serve/sockets.ts";
import { isOurs, madeIn, withMade } from "../../startup/marks.ts";
import type { Service } from "../../startup/service.ts";
import { accountBehind, installedService, serviceOf, systemServiceOf } from "../../startup/services.ts";
import { isSomebodyHere, typedYes } from "../questions/prompt.ts";
import { hostOf } from "../terminal/host.ts";
import { refuseInside } from "../terminal/inside.ts";
import { Complaint, harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";
import { variable } from "./command-body.ts";
import { endBroker, unlikeThisBuild } from "./broker.ts";
import { runningIn } from "./start-when-needed.ts";

export type ServiceOptions = { readonly yes?: boolean; readonly system?: boolean; readonly json?: boolean };

type Change = { readonly path: string; readonly text: string; readonly patch: string };

/** A service, and the terminal as of the user whose broker it starts. */
type Place = { readonly service: Service; readonly at: Terminal };

/** Exit 1: nothing was written. */
export async function installService(terminal: Terminal, options: ServiceOptions): Promise<number> {
  refuseInside(terminal, "service install");
  const { service, at } = placeOf(terminal, options);
  refuseUnusable(terminal, service);
  refuseSecond(at, service);
  const changes = changesOf(service);
  const { active, enabled } = service.state();
  const isCurrent = claimedBy(at.home.startLock) !== undefined && unlikeThisBuild(at) === undefined;
  const isDone = changes.length === 0 && active === "active" && enabled && isCurrent;
  if (options.json !== true) printChanges(terminal, changes);
  if (isDone) return tellState(terminal, service, at, options, { written: false });
  if (!(await saysYes(terminal, options, "Write and start it?"))) return 1;
  await endIdle(at, service);
  for (const change of changes) write(change, service.paths[0] === change.path);
  service.enable();
  const code = tellState(terminal, service, at, options, { written: true });
  if (options.json !== true) for (const hint of service.hints) printLine(terminal, hint);
  return code;
}

/** Safe to repeat. Exit 1: nothing was removed. */
export async function removeService(terminal: Terminal, options: ServiceOptions): Promise<number> {
  refuseInside(terminal, "service remove");
  const { service, at } = placeOf(terminal, options);
  const there = service.paths.filter((path) => existsSync(path));
  if (there.length === 0) {
    if (options.json === true) printJson(terminal, { removed: [] });
    else printLine(terminal, "No service is installed");
    return 0;
  }
  refuseUnusable(terminal, service);
  refuseOthers(there);
  if (options.json !== true)
    printLine(
      terminal,
      `Stops the broker of ${service.manager} and removes:\n${there.map(indented).join("\n")}`,
    );
  if (!(await saysYes(terminal, options, "Remove it?"))) return 1;
  await endIdle(at, service);
  service.disable();
  const made = there.flatMap((path) => madeIn(readFileSync(path, "utf8")));
  for (const path of there) rmSync(path);
  // The deepest first.
  for (const folder of made.toSorted().toReversed()) removeEmptyFolder(folder);
  service.forget();
  if (options.json === true) printJson(terminal, { removed: there });
  else
    printLine(terminal, `The service is removed. '${at.home.root}' stays: policies, trace and held changes`);
  return 0;
}

export async function serviceStatus(terminal: Terminal, options: ServiceOptions): Promise<number> {
  const { service, at } = placeOf(terminal, options);
  return await Promise.resolve(tellState(terminal, service, at, options, {}));
}

function placeOf(terminal: Terminal, { system }: ServiceOptions): Place {
  const host = hostOf(terminal);
  if (system !== true) return { service: serviceOf(host), at: terminal };
  const account = accountBehind(host);
  const home = terminal.homeAt(
    variable(terminal, "SUBSTRATE_HOME") ?? join(account.home, ".substrate"),
    account.uid,
  );
  return { service: systemServiceOf(host, home, account), at: { ...terminal, home } };
}

function refuseUnusable(terminal: Terminal, service: Service): void {
  const why = service.whyNot();
  if (why !== undefined) throw new Complaint(why);
  const { root } = terminal.installation;
  if (root.includes("/_npx/"))
    throw new Complaint(
      "A service cannot start this copy, which npx keeps in a cache. Install the package that you gave npx with 'npm install --global', and run 'substrate service install'",
    );
}

/** One home has one broker, so one service. */
function refuseSecond(at: Terminal, service: Service): void {
  const other = installedService(hostOf(at))?.service;
  if (other === undefined || other.manager === service.manager) return;
  const flag = other.owner === undefined ? "" : " --system";
  throw new Complaint(
    `The broker of '${at.home.root}' is started by ${other.manager} already. Run 'substrate service remove${flag}' first`,
  );
}

function changesOf(service: Service): readonly Change[] {
  refuseOthers(service.paths.filter((path) => existsSync(path)));
  return service.files().flatMap(({ path, text }) => {
    const before = existsSync(path) ? readFileSync(path, "utf8") : "";
    const now = withMade(text, madeIn(before));
    return before === now ? [] : [{ path, text: now, patch: unifiedDiff(before, now, path) }];
  });
}

function refuseOthers(paths: readonly string[]): void {
  const other = paths.find((path) => !isOurs(readFileSync(path, "utf8")));
  if (other === undefined) return;
  throw new Complaint(
    `'${other}' is not from 'substrate service install', so it stays as it is. Move it away, or go on with it by yourself`,
  );
}

/** Ends the broker, whoever started it, if no command runs in it. Throws {@link Complaint}. */
async function endIdle(at: Terminal, service: Service): Promise<void> {
  const pid = claimedBy(at.home.startLock);
  if (pid !== undefined) {
    const running = await runningIn(at);
    if (running !== 0)
      throw new Complaint(
        `The broker (pid ${pid}) runs ${running ?? "an unknown number of"} processes in its worlds, which would end. Wait for them, or end them with 'substrate broker stop', then repeat`,
      );
  }
  service.stop();
  if (claimedBy(at.home.startLock) !== undefined) await endBroker(at);
}

function write({ path, text }: Change, isFirst: boolean): void {
  const folder = dirname(path);
  const made = madeFolders(folder);
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, isFirst && made.length > 0 ? withMade(text, made) : text, { mode: 0o644 });
  renameSync(draft, path);
}

function madeFolders(folder: string): readonly string[] {
  const first = mkdirSync(folder, { recursive: true });
  const made: string[] = [];
  for (let at = folder; first !== undefined && at.length >= first.length; at = dirname(at)) made.push(at);
  return made;
}

async function saysYes(
  terminal: Terminal,
  { yes, json }: ServiceOptions,
  question: string,
): Promise<boolean> {
  if (yes === true) return true;
  if (json === true || !isSomebodyHere(terminal)) {
    terminal.err.write("substrate: Nothing was changed: there is nobody to ask. Add --yes\n");
    return false;
  }
  if (await typedYes(terminal, question)) return true;
  terminal.err.write("substrate: Nothing was changed\n");
  return false;
}

function printChanges(terminal: Terminal, changes: readonly Change[]): void {
  for (const { path, patch } of changes)
    printLine(terminal, `${harmlessLine(path)}:\n${patch.split("\n").map(harmlessLine).join("\n")}`);
}

function indented(path: string): string {
  return `  ${harmlessLine(path)}`;
}

function tellState(
  terminal: Terminal,
  service: Service,
  at: Terminal,
  { json }: ServiceOptions,
  more: { readonly written?: boolean },
): number {
  const installed = service.paths.every((path) => existsSync(path));
  const state = service.state();
  const problem = service.isThere() ? undefined : service.whyNot();
  const current = installed && changesOf(service).length === 0;
  const by = claimedBy(at.home.startLock);
  const broker = by === undefined ? null : { pid: by, by: by === state.pid ? "service" : "hand" };
  const runs = installed && state.active === "active";
  const { manager, paths } = service;
  if (json === true) {
    printJson(terminal, {
      manager,
      files: paths,
      installed,
      current,
      ...state,
      broker,
      problem: problem ?? null,
      ...more,
    });
    return runs ? 0 : 1;
  }
  if (problem !== undefined) printLine(terminal, harmlessLine(problem));
  if (!installed)
    printLine(terminal, `No service of ${manager} is installed: 'substrate service install' writes it`);
  else {
    const pid = state.pid === null ? "" : ` (pid ${state.pid})`;
    const again = (state.restarts ?? 0) > 0 ? `, started again ${state.restarts} times` : "";
    printLine(
      terminal,
      `The service of ${manager} is installed, ${state.enabled ? "" : "not "}enabled, and ${state.active}${pid}${again}`,
    );
    for (const path of paths) printLine(terminal, indented(path));
    if (!current)
      printLine(
        terminal,
        "This installation would write other files: 'substrate service install' updates them",
      );
    if (!runs)
      printLine(terminal, `'${service.words.inspect}' and 'substrate broker logs' say why it does not run`);
  }
  if (broker?.by === "hand")
    printLine(terminal, `A broker that was started by hand runs (pid ${broker.pid})`);
  return runs ? 0 : 1;
}
