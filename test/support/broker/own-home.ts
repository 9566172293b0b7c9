/** A broker whose user's home is the test's own, for commands with a home of their own. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Actor } from "../users/users.ts";
import { TestBroker } from "./broker.ts";
import { type Message, StreamClient } from "./stream.ts";

const FILES = `
fs:
  read: ["/**", "$HOME/.gitconfig", "$HOME/.config/tool/**"]
  deny_read: ["$HOME/.config/tool/token", "$HOME/.cache/secret", "$HOME/.ssh"]
  write: ["$PROJECT/**", "$HOME/.cache/**"]
`;

const POLICIES = {
  agent: `
id: agent
name: What a coding agent needs of the home
mode: enforce
selectable: true
commands: { isolated: ["touch held"], ask: ["touch asked"] }
world: { env: [LANG, PASSED] }
${FILES}`,
  other: `
id: other
name: Another agent, that may write everywhere
mode: enforce
selectable: true
fs: { read: ["/**"], write: ["/**"] }
`,
  env: `
id: env
name: An agent that reads no .env
mode: enforce
selectable: true
fs: { read: ["/**"], deny_read: ["**/.env"], write: ["$PROJECT/**", "$HOME/.cache/**"] }
`,
  narrow: `
id: narrow
name: An agent that sees programs and its project
mode: enforce
selectable: true
fs: { read: ["/usr/**", "/bin/**", "/lib/**", "/lib64/**", "/etc/**", "$PROJECT/**"], write: ["$PROJECT/**"] }
`,
  default: `
id: default
name: Everything that the profiles narrow
mode: enforce
world: { env: [LANG, PASSED] }
fs: { read: ["/**"], write: ["/**"], deny_read: ["$HOME/.config/tool/token", "$HOME/.ssh"] }
`,
};

type Ended = { readonly out: string; readonly err: string; readonly end: Message };

/** A folder as the user's home, with SUBSTRATE_HOME (`home`), two projects and some files of the person's. */
export function personsHome(actor: Actor): string {
  const folder = mkdtempSync(join(actor.uid === 0 ? "/opt" : actor.home, "sb-own-"));
  const files = {
    "secrets/key": "the real home",
    ".ssh/id": "the real key",
    ".gitconfig": "[user]\n\tname = Ann\n",
    ".config/tool/settings": "shared",
    ".config/tool/token": "the real token",
    ".cache/old": "real cache",
    ".cache/secret": "the real secret",
    "deep/clients/app/here": "the other project",
    "deep/clients/app/.env": "the real env",
    ".cache/sub/.env": "the real env",
    ".local/bin/mine": "not named",
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

export function start(actor: Actor, folder: string): Promise<TestBroker> {
  return TestBroker.start(actor, {
    folder,
    environment: { HOME: folder, PASSED: "passed", UNNAMED_KEY: "not named", AWS_PROFILE: "not named" },
    policies: POLICIES,
  });
}

export function open(broker: TestBroker, cmd: string, more: Readonly<Record<string, unknown>> = {}) {
  return StreamClient.open(broker, { cmd, home: "own", profile: "agent", ...more });
}

export async function own(broker: TestBroker, cmd: string, more = {}): Promise<Ended> {
  const client = await open(broker, cmd, more);
  const end = await client.ended();
  return { out: client.screen, err: client.err.toString(), end };
}

/** A command of which every part is expected to work. */
export async function works(broker: TestBroker, cmd: string, more = {}): Promise<string> {
  const { out, err, end } = await own(broker, `set -e; ${cmd}`, more);
  if (end.type !== "exit" || end.exit !== 0)
    throw new Error(`'${cmd}' ended with ${JSON.stringify({ end, err })}`);
  return out;
}

export async function refusal(broker: TestBroker, more: Readonly<Record<string, unknown>> = {}) {
  const { end } = await own(broker, "echo ran", more);
  if (end.error === undefined) throw new Error(`Expected a refusal, received ${JSON.stringify(end)}`);
  return end.error;
}

export function homeOf(broker: TestBroker, id: string): string {
  return join(broker.home, "homes", id);
}
