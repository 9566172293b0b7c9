import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { plist, runsOfPlist } from "../../../../api/startup/launchd.ts";
import { isOurs, madeIn, withMade } from "../../../../api/startup/marks.ts";
import { type Account, type Runs, ServiceRefused } from "../../../../api/startup/service.ts";
import { runsOf, serviceUnit, socketUnit } from "../../../../api/startup/units.ts";
import { needs } from "../../../support/run/needs.ts";

const UNITS = fileURLToPath(new URL("../../../../systemd", import.meta.url));
const ANN: Account = { name: "ann", uid: 1000, gid: 1000, home: "/home/ann" };
const ODD = `/home/ann/100% "odd" \\ folder`;

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

function runs(more: Partial<Runs> = {}): Runs {
  return {
    front: "/opt/sub strate/.build/substrate",
    node: "/usr/bin/node",
    launcher: "/opt/sub strate/api/bin/substrate.mjs",
    units: UNITS,
    home: "/home/ann/.substrate",
    sockets: ["/home/ann/.substrate/sock/control.sock", "/home/ann/.substrate/sock/agent.sock"],
    variables: { PATH: "/usr/bin:/bin" },
    ...more,
  };
}

const SCOPES = [
  ["user", undefined],
  ["system", ANN],
] as const;

describe.each(SCOPES)("the units of the %s", (scope, account) => {
  const shipped = (name: string): string => readFileSync(join(UNITS, scope, name), "utf8");

  test("hold the installation's program, home and sockets in place of the shipped ones, and all else as shipped", () => {
    const service = serviceUnit(shipped("substrate.service"), runs(), account);
    const socket = socketUnit(shipped("substrate.socket"), runs(), account);
    expect(service).not.toContain("/usr/lib/node_modules");
    expect(service.match(/^ExecStart=.*$/gm)).toEqual([
      'ExecStart="/opt/sub strate/.build/substrate" broker start --foreground --service',
    ]);
    expect(socket.match(/^ListenStream=.*$/gm)).toEqual(runs().sockets.map((path) => `ListenStream=${path}`));
    if (account !== undefined) expect([service, socket].join("\n")).not.toMatch(/=root$|\/root/m);
    const settings = (text: string): readonly string[] => text.match(/^\w+(?==)/gm) ?? [];
    expect(settings(service).filter((key) => key !== "Environment")).toEqual(
      settings(shipped("substrate.service")),
    );
    expect([service, socket].every(isOurs)).toBe(true);
  });

  test("name what they start, whatever its folder is called", () => {
    const odd = runs({ home: ODD, front: "/opt/100% odd/substrate" });
    expect(runsOf(serviceUnit(shipped("substrate.service"), odd, account))).toEqual({
      home: ODD,
      front: "/opt/100% odd/substrate",
    });
    expect(runsOf(shipped("substrate.service"))).toBeUndefined();
  });

  test("refuse what a unit would read as something else", () => {
    const text = shipped("substrate.service");
    for (const front of ["/opt/$HOME/x", '/opt/"/x', "/opt/\\x"])
      expect(() => serviceUnit(text, runs({ front }), account)).toThrow(ServiceRefused);
    const variables = { PATH: "/bin\nExecStartPre=/bin/evil" };
    expect(() => serviceUnit(text, runs({ variables }), account)).toThrow(ServiceRefused);
    expect(() => socketUnit(shipped("substrate.socket"), runs({ sockets: ["/a\n/b"] }), account)).toThrow(
      ServiceRefused,
    );
  });

  test("pass systemd-analyze verify without a word, and a unit with a mistake does not", () => {
    needs("systemd-analyze");
    const folder = mkdtempSync(join(tmpdir(), "sb-units-"));
    folders.push(folder);
    const front = join(folder, "an odd 100% program");
    writeFileSync(front, "#!/bin/sh\n");
    chmodSync(front, 0o755);
    const me = { ...ANN, name: "root" };
    const own = account === undefined ? undefined : me;
    const service = serviceUnit(shipped("substrate.service"), runs({ front, home: ODD }), own);
    const paths = { socket: join(folder, "substrate.socket"), service: join(folder, "substrate.service") };
    writeFileSync(
      paths.socket,
      socketUnit(shipped("substrate.socket"), runs({ sockets: [`${ODD}/a.sock`], home: ODD }), own),
    );
    writeFileSync(paths.service, service);
    expect(verified(scope, folder, paths.socket, paths.service)).toBe("");
    writeFileSync(paths.service, service.replace("WatchdogSec=60", "WatchdogSec=often"));
    expect(verified(scope, folder, paths.service)).toMatch(/often/);
  });
});

test("the agent's unit passes systemd-analyze verify without a word, and starts what the CLI has", () => {
  needs("systemd-analyze");
  const folder = mkdtempSync(join(tmpdir(), "sb-units-"));
  folders.push(folder);
  const front = join(folder, "substrate");
  writeFileSync(front, "#!/bin/sh\n");
  chmodSync(front, 0o755);
  const shipped = readFileSync(join(UNITS, "system/substrate-agent.service"), "utf8");
  const unit = join(folder, "substrate-agent.service");
  writeFileSync(unit, shipped.replace(/^ExecStart=\S+/m, `ExecStart=${front}`));
  expect(verified("system", folder, unit)).toBe("");
  expect(shipped).toMatch(/^ExecStart=\S+ agent --socket \/run\/substrate-agent\/agent\.sock$/m);
});

/** What systemd has to say about units; nothing about those of the host. */
function verified(scope: string, folder: string, ...units: readonly string[]): string {
  const runtime = join(folder, "run");
  mkdirSync(runtime, { recursive: true, mode: 0o700 });
  try {
    const words = [`--${scope}`, "--man=no", "verify", ...units];
    const env = { ...process.env, XDG_RUNTIME_DIR: runtime, SYSTEMD_UNIT_PATH: `${folder}:` };
    const text = execFileSync("sh", ["-c", 'exec systemd-analyze "$@" 2>&1', "sh", ...words], {
      env,
      encoding: "utf8",
    });
    return about(text, folder);
  } catch (error) {
    return about(String((error as { stdout?: unknown }).stdout), folder);
  }
}

function about(text: string, folder: string): string {
  const lines = text.split("\n").filter((line) => line.includes("substrate") || line.includes(folder));
  return lines.join("\n");
}

describe("the property list", () => {
  const odd = runs({
    home: '/Users/ann/<a> & "b"',
    launcher: "/opt/x & y/api/bin/substrate.mjs",
    variables: { PATH: "/a&b:/c" },
  });

  test("is read by another parser as what it says", () => {
    needs("python3");
    const script = "import plistlib,sys,json; json.dump(plistlib.loads(sys.stdin.buffer.read()), sys.stdout)";
    const read: unknown = JSON.parse(
      execFileSync("python3", ["-c", script], { input: plist(odd), encoding: "utf8" }),
    );
    expect(read).toEqual({
      Label: "dev.substrate.broker",
      ProgramArguments: ["/usr/bin/node", odd.launcher, "broker", "start", "--foreground", "--service"],
      EnvironmentVariables: { PATH: "/a&b:/c", SUBSTRATE_HOME: odd.home },
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
      ProcessType: "Interactive",
      ExitTimeOut: 20,
      Umask: 0o077,
      StandardErrorPath: `${odd.home}/log/broker.log.start`,
    });
  });

  test("names what it starts, and holds no control character", () => {
    expect(runsOfPlist(plist(odd))).toEqual({ home: odd.home, front: "/opt/x & y/api/bin/substrate.mjs" });
    expect(runsOfPlist("<plist/>")).toBeUndefined();
    expect(() => plist(runs({ home: "/Users/\u0001" }))).toThrow(ServiceRefused);
  });
});

describe("the mark of folders that were made", () => {
  test("gives back any names, and no mark means no folder", () => {
    const unit = serviceUnit(readFileSync(join(UNITS, "user/substrate.service"), "utf8"), runs(), undefined);
    fc.assert(
      fc.property(fc.array(fc.string()), (names) => {
        expect(madeIn(withMade(unit, names))).toEqual(names);
      }),
    );
    expect(madeIn(unit)).toEqual([]);
  });
});
