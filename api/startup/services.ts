/** Which service manager this host has, and which service starts the broker of a home. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { Config } from "../../broker/settings/config.ts";
import { agentSocketPath, type Home } from "../../broker/settings/home.ts";
import type { Installation } from "../serve/installation.ts";
import { launchdService, plistPath, runsOfPlist } from "./launchd.ts";
import { type Account, type Runs, type Service, ServiceRefused } from "./service.ts";
import { type Scope, systemdService, unitFolder } from "./systemd.ts";
import { runsOf } from "./units.ts";

export type Host = {
  readonly home: Home;
  readonly installation: Installation;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly uid: number;
  /** Home folder of the user. */
  readonly userHome: string;
  readonly platform: NodeJS.Platform;
};

/** The service as this installation writes it, for the caller's home. Throws {@link ServiceRefused}. */
export function serviceOf(host: Host): Service {
  const { userHome, uid, environment } = host;
  if (host.platform === "darwin") return launchdService(() => runsFor(host, host.home), userHome, uid);
  if (host.platform === "linux")
    return systemdService({
      runs: () => runsFor(host, host.home),
      account: undefined,
      userHome,
      uid,
      environment,
    });
  throw new ServiceRefused(`No service manager is known for '${host.platform}'`);
}

/** A service of the system for one user: for the user behind sudo, else the caller. `homeOf` lays out that user's home. */
export function systemServiceOf(host: Host, home: Home, account: Account): Service {
  if (host.platform !== "linux")
    throw new ServiceRefused("Only systemd has services of the system: leave '--system' out");
  const { userHome, uid, environment } = host;
  return systemdService({ runs: () => runsFor(host, home), account, userHome, uid, environment });
}

/** The account whose broker a system service runs. Throws {@link ServiceRefused} for an unknown one. */
export function accountBehind({ environment, uid }: Pick<Host, "environment" | "uid">): Account {
  const wanted = uid === 0 ? (environment["SUDO_USER"] ?? "0") : String(uid);
  try {
    const line = execFileSync("getent", ["passwd", wanted], { encoding: "utf8" });
    const [name = "", , owner, group, , home = ""] = line.trim().split(":");
    return { name, uid: Number(owner), gid: Number(group), home };
  } catch (error) {
    throw new ServiceRefused(`The user '${wanted}' is not known to 'getent passwd'`, { cause: error });
  }
}

export type InstalledService = {
  readonly service: Service;
  /** `.build/substrate` of the installation that it starts. */
  readonly front: string;
};

/** The service that starts the broker of the caller's home; undefined without one, and where its manager does not answer. */
export function installedService(host: Host): InstalledService | undefined {
  return host.platform === "darwin"
    ? ofLaunchd(host)
    : (ofSystemd(host, "user") ?? ofSystemd(host, "system"));
}

function ofLaunchd(host: Host): InstalledService | undefined {
  const runs = readIfThere(plistPath(host.userHome), runsOfPlist);
  return runs?.home === host.home.root ? thereOf(serviceOf(host), runs.front) : undefined;
}

function ofSystemd(host: Host, scope: Scope): InstalledService | undefined {
  const runs = readIfThere(join(unitFolder(scope, host.userHome), "substrate.service"), runsOf);
  if (runs?.home !== host.home.root) return undefined;
  if (scope === "user") return thereOf(serviceOf(host), runs.front);
  const account = accountBehind({ uid: host.uid, environment: {} });
  return thereOf(systemServiceOf(host, host.home, account), runs.front);
}

function readIfThere<Found>(path: string, read: (text: string) => Found): Found | undefined {
  return existsSync(path) ? read(readFileSync(path, "utf8")) : undefined;
}

function thereOf(service: Service, front: string): InstalledService | undefined {
  return service.isThere() ? { service, front } : undefined;
}

/** Variables for the broker besides PATH: they choose what it is, and which agent or virtual machine is its own. */
const KEPT = ["SUBSTRATE_BACKEND", "SUBSTRATE_AGENT_SOCKET", "LIMA_HOME"] as const;

function runsFor({ installation, environment }: Host, home: Home): Runs {
  const kept = KEPT.flatMap((name) => {
    const value = environment[name];
    return value === undefined || value === "" ? [] : [[name, value] as const];
  });
  const agents = existsSync(home.config)
    ? Object.keys(new Config(home.config, () => {}).current().agents ?? {})
    : [];
  return {
    front: installation.front,
    node: process.execPath,
    launcher: installation.launcher,
    units: installation.units,
    home: home.root,
    sockets: [home.controlSocket, home.agentSocket, ...agents.map((agent) => agentSocketPath(home, agent))],
    variables: { PATH: pathFor(environment["PATH"] ?? ""), ...Object.fromEntries(kept) },
  };
}

/** PATH of the person's shell: agents that send none get the broker's. The Node that runs this stays the first that is found. */
function pathFor(path: string): string {
  const folders = path.split(delimiter).filter((folder) => folder.startsWith("/"));
  const own = dirname(process.execPath);
  return [...(folders.includes(own) ? [] : [own]), ...folders].join(delimiter);
}
