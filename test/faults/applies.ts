/** A person who takes over what an agent made, again and again, while somebody is killed: each is there wholly or not at all. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ErrorReply, ExecuteReply } from "../../schemas/generated/types.ts";
import type { TestBroker } from "../support/broker/broker.ts";
import { type Action, change } from "../support/held/changes.ts";
import { MARKER } from "./load.ts";
import type { Random } from "./random.ts";

const AGENT = "dora";
const FOLDER = "generations";

/** Enough that an apply takes about as long as the command that made them. */
const FILES = 120;

/** Nothing of it in the project. */
const NONE = 0;

/** What an apply puts together before it is moved into place lies here, where that cannot lie in the journal. */
const STAGED = ".substrate-apply-";

/** The generations of one project, over the deaths of its brokers. */
export class Generations {
  /** What the project may hold now: two of them while an action has no answer. */
  #possible: readonly number[] = [NONE];
  #last = NONE;
  #asked = 0;
  #done = 0;

  /** Applies and undos so far: how many were begun, and of how many success was told before the kill. */
  get counts(): { readonly asked: number; readonly done: number } {
    return { asked: this.#asked, done: this.#done };
  }

  begin(): number {
    this.#last += 1;
    return this.#last;
  }

  /** The one that the project holds; undefined while that is not sure. */
  get current(): number | undefined {
    return this.#possible.length === 1 ? this.#possible[0] : undefined;
  }

  /** An action that would make it `next` has been asked for. */
  asked(next: number): void {
    this.#possible = [...new Set([...this.#possible, next])];
    this.#asked += 1;
  }

  done(next: number): void {
    this.#possible = [next];
    this.#done += 1;
  }

  /** What is amiss in the project, now that nothing is on its way. */
  look(broker: TestBroker): readonly string[] {
    const left = [broker.project, join(broker.project, "..")].flatMap((folder) =>
      readdirSync(folder).filter((name) => name.startsWith(STAGED)),
    );
    const found = generationsIn(join(broker.project, FOLDER));
    const [only = NONE, ...others] = found;
    const wanted = this.#possible;
    this.#possible = others.length === 0 ? [only] : wanted;
    return [
      ...left.map((name) => `what an apply staged is left: ${name}`),
      ...(others.length === 0 ? [] : [`a half apply: the generations ${found.join(", ")} stand together`]),
      ...(others.length > 0 || wanted.includes(only)
        ? []
        : [`generation ${only} stands, and it may only be ${wanted.join(" or ")}`]),
    ];
  }
}

/** Which generations the files are of: one, or it is half an apply. A file that is not there is of none. */
function generationsIn(folder: string): readonly number[] {
  if (!existsSync(folder)) return [NONE];
  const of = Array.from({ length: FILES }, (_, at) => {
    const path = join(folder, String(at));
    return existsSync(path) ? Number(readFileSync(path, "utf8")) : NONE;
  });
  return [...new Set(of)].sort((one, other) => one - other);
}

/** Runs until `stop`, which settles with what was amiss in the answers. */
export class Applies {
  readonly #broker: TestBroker;
  readonly #random: Random;
  readonly #marker: string;
  readonly #generations: Generations;
  readonly #findings: string[] = [];
  readonly #work: Promise<void>;
  #stopping = false;
  #asked: () => void = () => {};

  /** Settles when an apply, or an undo, has been asked for and has no answer yet. */
  readonly underWay = new Promise<void>((resolve) => {
    this.#asked = resolve;
  });

  constructor(broker: TestBroker, random: Random, marker: string, generations: Generations) {
    this.#broker = broker;
    this.#random = random;
    this.#marker = marker;
    this.#generations = generations;
    this.#work = this.#loop();
  }

  async stop(): Promise<readonly string[]> {
    this.#stopping = true;
    await this.#work;
    return this.#findings;
  }

  async #loop(): Promise<void> {
    try {
      while (!this.#stopping) await this.#once();
    } catch (error) {
      // The connection broke, as it does when the broker dies: what was asked for may have happened or not.
      if (!(error instanceof Error && "code" in error)) this.#findings.push(String(error));
    }
  }

  async #once(): Promise<void> {
    const before = this.#generations.current;
    if (before === undefined) throw new Error("After a refusal it is not known what stands in the project");
    const next = this.#generations.begin();
    const span = await this.#make(next);
    if (span === undefined) return;
    const applied = await this.#act("apply", span, next);
    if (applied && this.#random.below(4) === 0) await this.#act("undo", span, before);
  }

  /** The span that holds the generation; undefined where its world was killed under it, or before it was ready. */
  async #make(generation: number): Promise<string | undefined> {
    const cmd = `chmod 700 .; mkdir -p ${FOLDER}; i=0; while [ $i -lt ${FILES} ]; do echo ${generation} > ${FOLDER}/$i; i=$((i+1)); done`;
    const env = { [MARKER]: `${this.#marker}-kill` };
    const { status, document } = await this.#broker.post({ agent_id: AGENT, cmd, env });
    if (status !== 200) {
      const { code, message } = (document as ErrorReply).error;
      if (code !== "isolation_unavailable") this.#findings.push(`'${AGENT}' was refused: ${code} ${message}`);
      return undefined;
    }
    const reply = document as ExecuteReply;
    if (reply.exit === 137) return undefined;
    if (reply.exit !== 0)
      this.#findings.push(
        `'${AGENT}' ended with ${reply.exit}: ${Buffer.from(reply.stderr_b64, "base64").toString()}`,
      );
    return reply.exit === 0 ? reply.span_id : undefined;
  }

  async #act(action: Action, span: string, next: number): Promise<boolean> {
    this.#generations.asked(next);
    this.#asked();
    const { status, document } = await change(this.#broker, action, span);
    if (status === 200) this.#generations.done(next);
    else this.#findings.push(`${action} of generation ${next} was refused: ${JSON.stringify(document)}`);
    return status === 200;
  }
}
