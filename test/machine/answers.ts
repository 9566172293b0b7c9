/** Requests whose replies and spans must be the same on each backend, and the fields that differ by nature. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TestBroker } from "../support/broker/broker.ts";
import { put } from "../support/broker/replays.ts";

export const ANSWERS_POLICY = `id: default
name: Answers
mode: enforce
fs:
  deny_read: ["$PROJECT/secret"]
  deny_write: ["$PROJECT/frozen"]
  write: ["$PROJECT/**"]
commands:
  denied: ["forbidden *", "git push *"]
  isolated: ["sh held.sh", "touch held", "rm -r tree"]
`;

const FILES: Readonly<Record<string, string>> = {
  "a.txt": "one\ntwo\nthree\n",
  "sub/b.txt": "b\n",
  "tree/x": "x\n",
  "tree/y/z": "z\n",
  secret: "hidden",
  frozen: "frozen",
  "held.sh":
    "mkdir out; echo 1 > out/a; echo more >> a.txt; rm sub/b.txt; ln -s a.txt link; chmod 600 frozen; echo done; exit 3",
  "deep.sh": "sh -c 'sh -c \"exec ./leaf.sh\"'",
  "leaf.sh": "#!/bin/sh\necho leaf $0 $#\n",
};

const QUOTES = [
  "",
  "a  b",
  "'",
  '"',
  "$HOME `id` $(id)",
  "\\",
  "*",
  "-n",
  "line\nline",
  "\u00e9\u{1f600}",
  "\t;&|<>",
];

type Body = Readonly<Record<string, unknown>>;

/** Sent in this order: later requests read files of earlier requests. */
export const REQUESTS: readonly Body[] = [
  { cmd: "true" },
  { cmd: "false" },
  { cmd: "exit 7" },
  { cmd: "echo out; echo err >&2; exit 3" },
  { cmd: "printf 'no newline'" },
  { cmd: "printf '\\0\\377\\200'" },
  { cmd: "kill -9 $$" },
  { cmd: "kill -TERM $$" },
  { argv: ["printf", "[%s]", ...QUOTES] },
  { argv: ["no-such-program"] },
  { argv: ["/etc"] },
  { cmd: "no-such-program" },
  { cmd: "if then" },
  { cmd: "cat", stdin_b64: Buffer.from("input\0\n").toString("base64") },
  { cmd: "wc -c", stdin_b64: Buffer.alloc(200_000, "x").toString("base64") },
  { cmd: "seq 1 20000" },
  { cmd: "yes | head -c 3000000 | wc -c" },
  { cmd: "cat a.txt" },
  { cmd: "cat a.txt sub/b.txt | sort -r | head -n 2" },
  { cmd: "cat secret" },
  { cmd: "ls -A1 | sort" },
  { cmd: "echo x > frozen" },
  { cmd: "echo x > ../outside" },
  { cmd: "echo x > /etc/made" },
  { cmd: "echo x > /tmp/mine; cat /tmp/mine" },
  { cmd: "echo x > made; cat made" },
  { cmd: "echo more >> made; rm made" },
  { cmd: "mkdir -p d/e/f; touch d/e/f/g; mv d/e d/h" },
  { cmd: "ln -s a.txt linked; ln a.txt hard; readlink linked; stat -c %h hard" },
  { cmd: "chmod 741 a.txt; stat -c %a a.txt" },
  { cmd: "umask; touch masked; stat -c %a masked" },
  { cmd: "id -u; id -g; id -G" },
  { cmd: "pwd; cd sub; pwd", cwd: "" },
  { cmd: "pwd", cwd: "sub" },
  { cmd: "pwd", cwd: "nowhere" },
  { cmd: "echo $GIVEN", env: { GIVEN: 'it\'s "given"' } },
  { cmd: "env | cut -d = -f 1 | sort" },
  { cmd: "forbidden now" },
  { cmd: "git push origin" },
  { cmd: "sh -c 'forbidden now'" },
  { cmd: "sh deep.sh; chmod +x leaf.sh; sh deep.sh" },
  { cmd: "touch held" },
  { cmd: "sh held.sh" },
  { cmd: "rm -r tree" },
  { cmd: "sleep 600", timeout_ms: 1500 },
  { cmd: "trap '' TERM; echo begun; while :; do :; done", timeout_ms: 1500 },
  { cmd: "ls /proc | grep -c '^[0-9]' > /dev/null; kill -9 1; echo $?" },
  { cmd: "grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status" },
  { cmd: "unshare -U true; echo $?" },
  { cmd: "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '" },
  { cmd: "getent hosts denied.example; echo $?" },
  { cmd: "hostname" },
  { cmd: "echo one & wait; echo two & wait" },
  { cmd: "" },
  { cmd: "true", timeout_ms: -1 },
];

/** What differs between two backends, or between two runs of one, and why that is no fault. */
const BY_NATURE: readonly (readonly [path: RegExp, why: string])[] = [
  [
    /\.(ts|span_id|world_id|session_id|seq|prev|hash|parent_span)$/,
    "names one event and its place in the record",
  ],
  [/(duration|charged|cpu|wall)_ms$/, "is a time"],
  [/\.usage\./, "is what this run took"],
  [/\.isolation\.backend$/, "is the backend's name"],
  [/\.isolation\.cgroup$/, "says what the machine's own manager of groups lets a user do"],
  [/\.world_image\.(kernel|os_release)$/, "is the machine's kernel and system"],
  [/\.overlay\.mounted_at$/, "is a time"],
  [/\.dirty_hash$/, "is known only where a pause let the broker look at the files"],
  [/"hostname"\}.*\.stdout_(b64|bytes|sha256)$/, "is the machine's name"],
];

export type Answers = ReadonlyMap<string, string>;

/** Makes a project of the files alone, runs all requests, and returns each field of each answer that is no matter of nature. */
export async function answersOf(broker: TestBroker): Promise<Answers> {
  for (const name of readdirSync(broker.project))
    rmSync(join(broker.project, name), { recursive: true, force: true });
  for (const [name, text] of Object.entries(FILES)) put(broker, join(broker.project, name), text);
  const fields = new Map<string, string>();
  for (const [at, { cwd, ...body }] of REQUESTS.entries()) {
    const where = typeof cwd === "string" ? { cwd: join(broker.project, cwd) } : {};
    const { status, document } = await broker.post({ ...body, ...where });
    const title = `${at} ${JSON.stringify(body).slice(0, 60)}`;
    const id = (document as { span_id?: string }).span_id;
    const span = id === undefined ? undefined : await broker.span(id);
    flatten({ status, reply: document, span }, title, fields);
  }
  for (const name of ["a.txt", "frozen", "sub/b.txt"])
    fields.set(`afterwards ${name}`, readFileSync(join(broker.project, name), "utf8"));
  return fields;
}

function flatten(value: unknown, path: string, into: Map<string, string>): void {
  if (BY_NATURE.some(([pattern]) => pattern.test(path))) return;
  if (typeof value !== "object" || value === null)
    into.set(path, JSON.stringify(value ?? null).replace(/\bspn_[0-9a-f-]+/g, "spn_"));
  else for (const [name, part] of Object.entries(value)) flatten(part, `${path}.${name}`, into);
}

/** Each field that is not the same, in words. */
export function differences(one: Answers, other: Answers): readonly string[] {
  return [...new Set([...one.keys(), ...other.keys()])]
    .filter((path) => one.get(path) !== other.get(path))
    .map((path) => `${path}: ${one.get(path)} / ${other.get(path)}`);
}
