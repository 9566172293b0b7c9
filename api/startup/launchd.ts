/** The broker as a service of launchd, on macOS. The text is tested; no machine here runs launchd. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { isOurs, PLIST_MARK } from "./marks.ts";
import { type Runs, type Service, ServiceRefused } from "./service.ts";

const LABEL = "dev.substrate.broker";

export function plistPath(userHome: string): string {
  return join(userHome, "Library/LaunchAgents", `${LABEL}.plist`);
}

export function launchdService(runs: () => Runs, userHome: string, uid: number): Service {
  const domain = `gui/${uid}`;
  const path = plistPath(userHome);
  const launchctl = (
    ...words: readonly string[]
  ): { readonly code: number; readonly out: string; readonly err: string } => {
    const { status, stdout, stderr, error } = spawnSync("launchctl", words, { encoding: "utf8" });
    return { code: status ?? 1, out: stdout ?? "", err: error?.message ?? stderr };
  };
  const must = (...words: readonly string[]): void => {
    const { code, err } = launchctl(...words);
    if (code !== 0) throw new ServiceRefused(`'launchctl ${words.join(" ")}' failed: ${err.trim()}`);
  };
  return {
    manager: "launchd",
    owner: undefined,
    paths: [path],
    files: () => [{ path, text: plist(runs()) }],
    hints: [
      "Not tried on a Mac yet, and launchd hands over no sockets: a client that connects while the broker starts again fails",
    ],
    words: { stop: `launchctl bootout ${domain}/${LABEL}`, inspect: `launchctl print ${domain}/${LABEL}` },
    isThere: () => launchctl("print", domain).code === 0,
    whyNot: () => {
      const { code, err } = launchctl("print", domain);
      return code === 0
        ? undefined
        : `launchd has no session of this user (${err.trim()}). Log in at the screen first`;
    },
    enable: () => must("bootstrap", domain, path),
    start: () => {
      // Loaded after a stop, too.
      if (launchctl("print", `${domain}/${LABEL}`).code === 0) must("kickstart", `${domain}/${LABEL}`);
      else must("bootstrap", domain, path);
    },
    stop: () => void launchctl("bootout", `${domain}/${LABEL}`),
    disable: () => {},
    forget: () => {},
    state: () => {
      const { code, out } = launchctl("print", `${domain}/${LABEL}`);
      const pid = /^\s*pid = (\d+)$/m.exec(out)?.[1];
      const active = code !== 0 ? "inactive" : pid === undefined ? "waiting" : "active";
      return {
        enabled: code === 0,
        active,
        listens: false,
        pid: pid === undefined ? null : Number(pid),
        restarts: null,
      };
    },
  };
}

/** A property list (plist(5)): started at the login, and again after a failure. */
export function plist({ node, launcher, home, variables }: Runs): string {
  const rows = Object.entries({ ...variables, SUBSTRATE_HOME: home });
  const words = [node, launcher, "broker", "start", "--foreground", "--service"];
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
${PLIST_MARK}
<dict>
  <key>Label</key><string>${LABEL}</string>
  <key>ProgramArguments</key>
  <array>
${words.map((word) => `    <string>${escaped(word)}</string>`).join("\n")}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${rows.map(([name, value]) => `    <key>${escaped(name)}</key><string>${escaped(value)}</string>`).join("\n")}
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ProcessType</key><string>Interactive</string>
  <key>ExitTimeOut</key><integer>20</integer>
  <key>Umask</key><integer>63</integer>
  <key>StandardErrorPath</key><string>${escaped(join(home, "log/broker.log.start"))}</string>
</dict>
</plist>
`;
}

export function runsOfPlist(text: string): { readonly home: string; readonly front: string } | undefined {
  const home = /<key>SUBSTRATE_HOME<\/key><string>(.*)<\/string>/.exec(text)?.[1];
  const root = /<array>\n.*\n\s*<string>(.*)\/api\/bin\/substrate\.mjs<\/string>/.exec(text)?.[1];
  return isOurs(text) && home !== undefined && root !== undefined
    ? { home: unescaped(home), front: join(unescaped(root), "api/bin/substrate.mjs") }
    : undefined;
}

const ENTITIES: readonly (readonly [string, string])[] = [
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
];

function escaped(text: string): string {
  // XML 1.0 has no way to write them (section 2.2).
  if (/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(text))
    throw new ServiceRefused(`A property list cannot hold control characters: ${JSON.stringify(text)}`);
  return ENTITIES.reduce((before, [plain, entity]) => before.replaceAll(plain, entity), text);
}

function unescaped(text: string): string {
  return ENTITIES.reduceRight((before, [plain, entity]) => before.replaceAll(entity, plain), text);
}
