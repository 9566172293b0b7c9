/** Texts of the systemd units: the shipped ones with this installation's paths. Pure. */
import { type Account, MARK, type Runs, ServiceRefused } from "./service.ts";

/** @param account the user of a system unit; undefined in a user unit. Throws {@link ServiceRefused} for a path that a unit cannot name. */
export function serviceUnit(shipped: string, runs: Runs, account: Account | undefined): string {
  if (/["\\$]/.test(runs.front))
    throw new ServiceRefused(
      `A unit cannot name '${runs.front}': install into a folder without quotes, backslashes and dollar signs`,
    );
  const variables = Object.entries({ ...runs.variables, SUBSTRATE_HOME: runs.home });
  const environment = variables.map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`);
  return withLines(shipped, {
    ExecStart: [...environment, `ExecStart=${quoted(runs.front)} broker start --foreground --service`],
    ...(account === undefined ? {} : { User: [`User=${account.name}`] }),
  });
}

export function socketUnit(shipped: string, runs: Runs, account: Account | undefined): string {
  const folders = [runs.home, `${runs.home}/sock`, `${runs.home}/sock/agents`].map(quoted).join(" ");
  return withLines(shipped, {
    ListenStream: runs.sockets.map((path) => `ListenStream=${plain(path)}`),
    ...(account === undefined
      ? {}
      : {
          SocketUser: [`SocketUser=${account.name}`],
          User: [`User=${account.name}`],
          ExecStartPre: [`ExecStartPre=/usr/bin/install -d -m 0700 ${folders.replaceAll("$", "$$$$")}`],
        }),
  });
}

/** The home of the broker that a written unit starts, and its program; undefined for a unit of other origin. */
export function runsOf(unit: string): { readonly home: string; readonly front: string } | undefined {
  const home = /^Environment="SUBSTRATE_HOME=(.*)"$/m.exec(unit)?.[1];
  const front = /^ExecStart="(.*)" broker start /m.exec(unit)?.[1];
  if (!unit.startsWith(MARK) || home === undefined || front === undefined) return undefined;
  return { home: unquoted(home), front: unquoted(front) };
}

/** Replaces the lines of each key by others, where its first line stands. */
function withLines(shipped: string, lines: Readonly<Record<string, readonly string[]>>): string {
  const left = new Map(Object.entries(lines));
  const text = shipped.split("\n").flatMap((line) => {
    const key = /^(\w+)=/.exec(line)?.[1] ?? "";
    if (!Object.hasOwn(lines, key)) return [line];
    const now = left.get(key) ?? [];
    left.delete(key);
    return now;
  });
  if (left.size > 0) throw new Error(`The shipped unit has no line '${[...left.keys()].join("', '")}'`);
  return [MARK, ...text].join("\n");
}

/** A word in double quotes (systemd.syntax(7)), with specifiers switched off (systemd.unit(5)). */
function quoted(text: string): string {
  return `"${plain(text).replace(/["\\]/g, String.raw`\$&`)}"`;
}

function unquoted(text: string): string {
  return text.replace(/\\(["\\])/g, "$1").replaceAll("%%", "%");
}

function plain(text: string): string {
  if (/[\p{Cc}]/u.test(text))
    throw new ServiceRefused(`A unit cannot hold control characters: ${JSON.stringify(text)}`);
  return text.replaceAll("%", "%%");
}
