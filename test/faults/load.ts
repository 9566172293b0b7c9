/** Commands of several sessions at once, and what each of them must answer. */
import type { Answer } from "../../api/client/client.ts";
import type { ErrorReply, ExecuteReply } from "../../schemas/generated/types.ts";
import type { TestBroker } from "../support/broker/broker.ts";
import type { Random } from "./random.ts";

/** The policy of the load: a command that begins with `chmod` runs on an overlay. */
export const LOAD_POLICY = "id: default\nname: faults\nmode: enforce\ncommands:\n  isolated: ['chmod *']\n";

/** An environment variable of every command of the load: what it starts is found by it. */
export const MARKER = "SB_FAULT";

export const AGENTS = ["ann", "ben", "cleo"] as const;

/** Parallel commands of one agent. */
const WORKERS = 2;

const ANSWER_PATIENCE_MS = 20_000;

type Sort = {
  readonly cmd: string;
  readonly stdout: string | RegExp;
  readonly background?: "keep";
};

const SORTS: readonly [Sort, ...Sort[]] = [
  { cmd: "echo quick", stdout: "quick\n" },
  { cmd: "true", stdout: "" },
  { cmd: "head -c 300000 /dev/zero | base64 -w 0", stdout: /^A{400000}$/ },
  { cmd: 'echo "line $$" >> plain; mkdir -p d; echo x > "d/$$"; echo wrote', stdout: "wrote\n" },
  { cmd: "chmod 700 .; echo held > held-file; mkdir -p new/folder; echo isolated", stdout: "isolated\n" },
  { cmd: "chmod 700 .; sleep 0.05; echo looked", stdout: "looked\n" },
  { cmd: "sleep 3 & echo kept", stdout: "kept\n", background: "keep" },
  {
    cmd: "for i in 1 2 3; do (setsid sh -c 'sleep 300' &); (sleep 300 &); done; echo tree",
    stdout: "tree\n",
  },
  {
    cmd: "(setsid setsid sleep 300 < /dev/null > /dev/null 2>&1 &) ; sleep 0.1; echo daemon",
    stdout: "daemon\n",
  },
  { cmd: "for i in 1 2 3 4 5; do sleep 0.02; echo $i; done", stdout: "1\n2\n3\n4\n5\n" },
];

/** How a command of the load ended, as its client saw it. */
export type Answered =
  | { readonly kind: "good"; readonly world: string }
  /** Its world ended under it, and the answer says so. */
  | { readonly kind: "lost"; readonly world: string; readonly agent: string }
  /** It was killed alone. */
  | { readonly kind: "killed"; readonly world: string }
  /** Its world could not be made. */
  | { readonly kind: "no world"; readonly message: string }
  /** The connection broke, as it does when the broker dies. */
  | { readonly kind: "cut" }
  | { readonly kind: "wrong"; readonly what: string };

/** Runs until `stop`, which settles with all that was answered. */
export class Load {
  readonly #broker: TestBroker;
  readonly #random: Random;
  readonly #marker: string;
  readonly #answers: Answered[] = [];
  readonly #spans: string[] = [];
  readonly #workers: readonly Promise<void>[];
  #stopping = false;

  constructor(broker: TestBroker, random: Random, marker: string) {
    this.#broker = broker;
    this.#random = random;
    this.#marker = marker;
    this.#workers = AGENTS.flatMap((agent) => Array.from({ length: WORKERS }, () => this.#work(agent)));
  }

  async stop(): Promise<readonly Answered[]> {
    this.#stopping = true;
    await Promise.all(this.#workers);
    return this.#answers;
  }

  /** Of the calls that were answered 200: their spans are on record, whoever dies next. */
  get spans(): readonly string[] {
    return this.#spans;
  }

  async #work(agent: string): Promise<void> {
    while (!this.#stopping) {
      const sort = this.#random.pick(SORTS);
      const answered = await this.#run(agent, sort);
      this.#answers.push(answered);
      if (answered.kind === "cut") return;
    }
  }

  async #run(agent: string, sort: Sort): Promise<Answered> {
    const { cmd, background = "kill" } = sort;
    const patience = AbortSignal.timeout(ANSWER_PATIENCE_MS);
    const env = { [MARKER]: `${this.#marker}-${background}` };
    try {
      const answer = await this.#broker.post({ agent_id: agent, cmd, background, env }, patience);
      if (answer.status === 200) this.#spans.push((answer.document as ExecuteReply).span_id);
      return judge(agent, sort, answer);
    } catch {
      return patience.aborted ? { kind: "wrong", what: `'${cmd}' was not answered` } : { kind: "cut" };
    }
  }
}

function judge(agent: string, { cmd, stdout }: Sort, { status, document }: Answer): Answered {
  if (status !== 200) {
    const { code, message } = (document as ErrorReply).error;
    if (code === "isolation_unavailable") return { kind: "no world", message };
    return { kind: "wrong", what: `'${cmd}' was refused with ${status} ${code}: ${message}` };
  }
  const reply = document as ExecuteReply;
  const world = reply.world_id;
  const complaint = Buffer.from(reply.stderr_b64, "base64").toString("utf8");
  if (reply.exit === 137 && reply.signal === "SIGKILL") {
    return complaint.includes("the world ended") ? { kind: "lost", world, agent } : { kind: "killed", world };
  }
  const output = Buffer.from(reply.stdout_b64, "base64").toString("utf8");
  const fits = typeof stdout === "string" ? output === stdout : stdout.test(output);
  if (reply.exit === 0 && fits) return { kind: "good", world };
  return {
    kind: "wrong",
    what: `'${cmd}' ended with ${reply.exit} (${reply.signal}) after ${JSON.stringify(output.slice(0, 100))} and ${JSON.stringify(complaint)}`,
  };
}
