/** The broker as a service of systemd: of the user's manager, or of the system's. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Account, type Runs, type Service, ServiceRefused, type ServiceState } from "./service.ts";
import { serviceUnit, socketUnit } from "./units.ts";

const SOCKET = "substrate.socket";
const SERVICE = "substrate.service";

export type SystemdOptions = {
  readonly runs: () => Runs;
  /** The user whose broker a system service runs; undefined: a user service. */
  readonly account: Account | undefined;
  /** Home folder of the caller. */
  readonly userHome: string;
  readonly uid: number;
  readonly environment: Readonly<Record<string, string | undefined>>;
};

export type Scope = "user" | "system";

export function unitFolder(scope: Scope, userHome: string): string {
  return scope === "user" ? join(userHome, ".config/systemd/user") : "/etc/systemd/system";
}

export function systemdService({ runs, account, userHome, uid, environment }: SystemdOptions): Service {
  const scope = account === undefined ? "user" : "system";
  const flag = `--${scope}`;
  const folder = unitFolder(scope, userHome);
  const systemctl = (...words: readonly string[]): Told =>
    tell(["systemctl", flag, ...words], environment, uid);
  const must = (...words: readonly string[]): void => {
    const { code, err } = systemctl(...words);
    if (code !== 0)
      throw new ServiceRefused(
        `'systemctl ${[flag, ...words].join(" ")}' failed: ${err.trim()}\n  See 'systemctl ${flag} status ${SERVICE}' and 'substrate broker logs'`,
      );
  };
  const shipped = (name: string): string => readFileSync(join(runs().units, scope, name), "utf8");
  return {
    manager: `systemd ${flag}`,
    owner: account,
    paths: [join(folder, SOCKET), join(folder, SERVICE)],
    files: () => [
      { path: join(folder, SOCKET), text: socketUnit(shipped(SOCKET), runs(), account) },
      { path: join(folder, SERVICE), text: serviceUnit(shipped(SERVICE), runs(), account) },
    ],
    hints: account === undefined && !lingers(environment) ? [LINGER] : [],
    words: {
      stop: `systemctl ${flag} stop ${SOCKET} ${SERVICE}`,
      inspect: `systemctl ${flag} status ${SERVICE}`,
    },
    isThere: () => systemctl("show", "--property=Version").code === 0,
    whyNot: () => whyNot(systemctl("show", "--property=Version"), account, uid),
    enable: () => {
      must("daemon-reload");
      must("enable", SOCKET, SERVICE);
      // Both may be in a failed state that counts starts.
      systemctl("reset-failed", SOCKET, SERVICE);
      must("start", SOCKET, SERVICE);
    },
    start: () => {
      systemctl("reset-failed", SOCKET, SERVICE);
      must("start", SOCKET, SERVICE);
    },
    stop: () => void systemctl("stop", SOCKET, SERVICE),
    disable: () => void systemctl("disable", SOCKET, SERVICE),
    forget: () => {
      must("daemon-reload");
      systemctl("reset-failed", SOCKET, SERVICE);
    },
    state: () => stateOf((unit) => systemctl("show", `--property=${PROPERTIES}`, unit).out),
  };
}

const LINGER = "The service runs while you are logged in. To keep it without a login: loginctl enable-linger";

const PROPERTIES = "ActiveState,MainPID,NRestarts,UnitFileState";

function stateOf(show: (unit: string) => string): ServiceState {
  const [service, socket] = [SERVICE, SOCKET].map((unit) => new Map(show(unit).split("\n").map(halves)));
  const pid = Number(service?.get("MainPID") ?? 0);
  return {
    enabled: service?.get("UnitFileState") === "enabled" && socket?.get("UnitFileState") === "enabled",
    active: service?.get("ActiveState") ?? "unknown",
    listens: socket?.get("ActiveState") === "active",
    pid: pid > 0 ? pid : null,
    restarts: Number(service?.get("NRestarts") ?? 0),
  };
}

function halves(line: string): readonly [string, string] {
  const at = line.indexOf("=");
  return [line.slice(0, at), line.slice(at + 1)];
}

function whyNot({ code, err }: Told, account: Account | undefined, uid: number): string | undefined {
  if (code === 0)
    return account !== undefined && uid !== 0
      ? "A system service is root's to install: run it with sudo"
      : undefined;
  const cause = err.trim().split("\n")[0] ?? "";
  return account === undefined
    ? `No systemd of this user answers here (${cause}). After 'su' or 'sudo' there is none: log in as this user, or run 'sudo loginctl enable-linger USER'. Without systemd, let another service manager run 'substrate broker start --foreground', or do without: each command starts the broker when it needs one`
    : `No systemd answers here (${cause}). Let another service manager run 'substrate broker start --foreground'`;
}

type Told = { readonly code: number; readonly out: string; readonly err: string };

/** A manager that is busy answers within seconds; a start waits for the broker (TimeoutStartSec). */
const PATIENCE_MS = 11 * 60_000;

function tell(words: readonly string[], environment: SystemdOptions["environment"], uid: number): Told {
  const [program = "", ...rest] = words;
  const env = {
    ...environment,
    // Left out by some logins, while the manager runs.
    XDG_RUNTIME_DIR: environment["XDG_RUNTIME_DIR"] ?? `/run/user/${uid}`,
    LC_ALL: "C",
  };
  const { status, stdout, stderr, error } = spawnSync(program, rest, {
    env,
    encoding: "utf8",
    timeout: PATIENCE_MS,
  });
  if (error !== undefined && status === null)
    return {
      code: 1,
      out: "",
      err: (error as NodeJS.ErrnoException).code === "ENOENT" ? "systemctl is not installed" : error.message,
    };
  return { code: status ?? 1, out: stdout, err: stderr };
}

function lingers(environment: SystemdOptions["environment"]): boolean {
  const user = environment["USER"] ?? environment["LOGNAME"];
  return user !== undefined && existsSync(join("/var/lib/systemd/linger", user));
}
