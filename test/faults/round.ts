/** One round: commands run, somebody is killed at a random moment, and then nothing may be amiss. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestBroker } from "../support/broker/broker.ts";
import { Applies, Generations } from "./applies.ts";
import { cgroups, layers, marked, mounts, outliving, soonNone, TraceReader } from "./leftovers.ts";
import { AGENTS, type Answered, Load } from "./load.ts";
import { Random } from "./random.ts";
import { chooseVictim, isAlive, type Kind, type Kinds, type Victim } from "./victims.ts";

/** How long the load runs before the kill, at most: some worlds are being made, some are busy, some idle. */
const LONGEST_LOAD_MS = 600;

/** An apply of all its files takes about as long. */
const LONGEST_APPLY_MS = 120;
const APPLY_PATIENCE_MS = 10_000;

const LOAD_SEED = 0x5bd1_e995;
const APPLIES_SEED = 0x2545_f491;

/** A moment with no victim of the wanted kind (no isolated world, no leader) is waited out. */
const CHOICES = 50;

/** Of pino's levels. */
const ERROR = 50;

export type RoundResult = {
  readonly broker: TestBroker;
  readonly kind: Kind | "nobody";
  readonly commands: number;
  readonly findings: readonly string[];
};

/** The rounds of one broker's home, one after the other. */
export class FaultRounds {
  readonly #trace = new TraceReader();
  readonly #doctor: Doctor;
  /** Every broker of this home so far. */
  readonly #pids = new Set<number>();
  readonly #generations = new Generations();
  readonly #kinds: Kinds;
  #broker: TestBroker;

  /** @param kinds of victims, of which each round has one */
  constructor(broker: TestBroker, doctor: Doctor, kinds: Kinds) {
    this.#broker = broker;
    this.#doctor = doctor;
    this.#kinds = kinds;
  }

  /** The broker that runs now: each death of one brings another. */
  get broker(): TestBroker {
    return this.#broker;
  }

  get applies(): Generations["counts"] {
    return this.#generations.counts;
  }

  async run(seed: number): Promise<RoundResult> {
    const random = new Random(seed);
    this.#pids.add(this.#broker.process.pid ?? 0);
    const marker = `fault-${randomBytes(6).toString("hex")}`;
    // Of its own: how often the load chooses depends on how fast the machine answers.
    const load = new Load(this.#broker, new Random(seed ^ LOAD_SEED), marker);
    const applies = new Applies(this.#broker, new Random(seed ^ APPLIES_SEED), marker, this.#generations);
    await moment(random, applies);
    const victim = await this.#kill(random);
    if (victim === undefined) return await this.#nobody(load, applies);
    const left = await outliving(victim);
    const answers = await load.stop();
    const findings = [
      ...(await applies.stop()),
      ...left,
      ...(victim.kind === "broker"
        ? await this.#afterBroker(marker)
        : await this.#afterWorld(marker, victim, answers)),
      ...(await this.#afterAny()),
      ...this.#generations.look(this.#broker),
      ...unrecorded(this.#broker, load.spans),
    ];
    const causes = findings.length === 0 ? [] : errorsIn(this.#broker);
    return {
      broker: this.#broker,
      kind: victim.kind,
      commands: answers.length,
      findings: [...findings, ...causes],
    };
  }

  async #kill(random: Random): Promise<Victim | undefined> {
    const wanted = random.pick(this.#kinds);
    for (let choice = 0; choice < CHOICES; choice += 1) {
      const victim = chooseVictim(this.#broker.process.pid ?? 0, wanted, random);
      if (victim !== undefined && isAlive(victim.process)) {
        if (victim.kind === "broker") await this.#broker.kill("SIGKILL");
        else if (!isKilled(victim.process.pid)) continue;
        return victim;
      }
      await sleep(5);
    }
    return undefined;
  }

  async #nobody(load: Load, applies: Applies): Promise<RoundResult> {
    const answers = await load.stop();
    const findings = [...(await applies.stop()), "nobody of the wanted kind was there to be killed"];
    return { broker: this.#broker, kind: "nobody", commands: answers.length, findings };
  }

  /** The answers say nothing: what was cut was cut, and what came was judged by the load. */
  async #afterBroker(marker: string): Promise<readonly string[]> {
    const left = await soonNone(() => marked(marker));
    this.#broker = await this.#broker.again();
    return left;
  }

  async #afterWorld(
    marker: string,
    victim: Victim,
    answers: readonly Answered[],
  ): Promise<readonly string[]> {
    const left = await soonNone(() => marked(`${marker}-kill`));
    const alive = this.#broker.process.exitCode === null && this.#broker.process.signalCode === null;
    const cut = answers.filter(({ kind }) => kind === "cut").length;
    return [
      ...left,
      ...(alive ? [] : [`the broker ended although only the ${victim.kind} of a world was killed`]),
      ...(cut === 0 ? [] : [`${cut} commands were not answered`]),
      ...unharmed(victim, answers),
      ...(await this.#newWorlds(answers)),
    ];
  }

  async #newWorlds(answers: readonly Answered[]): Promise<readonly string[]> {
    const lost = answers.flatMap((answer) => (answer.kind === "lost" ? [answer] : []));
    const looks = lost.map(async ({ world, agent }) => {
      const next = await this.#broker.run({ agent_id: agent, cmd: "echo next" });
      return next.world_id === world ? [`after its world ${world} ended, '${agent}' was given it again`] : [];
    });
    return (await Promise.all(looks)).flat();
  }

  async #afterAny(): Promise<readonly string[]> {
    const good = await Promise.all(
      AGENTS.map(async (agent) => {
        const { stdout, exit } = await this.#broker.run({ agent_id: agent, cmd: "echo good" });
        return exit === 0 && stdout === "good\n" ? [] : [`a good command of '${agent}' ended with ${exit}`];
      }),
    );
    const open = await soonNone(() => this.#trace.open(this.#broker.spans()));
    const verified = await this.#broker.cli(["trace", "verify"]);
    return [
      ...good.flat(),
      ...open,
      ...(verified.code === 0 ? [] : [`the trace does not verify: ${verified.stdout}${verified.stderr}`]),
      ...(await soonNone(() => layers(this.#broker, this.#trace.held))),
      ...(await soonNone(() => mounts(this.#broker))),
      ...(await soonNone(() => cgroups(this.#pids))),
      ...(await this.#doctor(this.#broker)),
    ];
  }
}

/** When to kill: at any moment of the load, or while an apply is on its way, which a new broker's first takes a while to reach. */
async function moment(random: Random, applies: Applies): Promise<void> {
  if (random.below(2) === 0) return await sleep(random.below(LONGEST_LOAD_MS));
  await Promise.race([applies.underWay, sleep(APPLY_PATIENCE_MS)]);
  await sleep(random.below(LONGEST_APPLY_MS));
}

/** What the broker's log has as an error: the folder it lies in goes with the test. */
function errorsIn(broker: TestBroker): readonly string[] {
  const lines = readFileSync(join(broker.home, "log/broker.log"), "utf8").trimEnd().split("\n");
  return lines.filter((line) => (JSON.parse(line) as { readonly level: number }).level >= ERROR).slice(-3);
}

/** What was answered is on record with its end, or as lost when its broker was killed before that was written. */
function unrecorded(broker: TestBroker, answered: readonly string[]): readonly string[] {
  const ended = new Set(
    broker.spans().flatMap(({ span_id: id, event_type: type }) => (type === "command_complete" ? [id] : [])),
  );
  return answered
    .filter((span) => !ended.has(span))
    .map((span) => `the answered span ${span} is not on record`);
}

/** What `world doctor` finds amiss. */
export type Doctor = (broker: TestBroker) => Promise<readonly string[]>;

/** One world may end, or one command: everything else is as if nothing had happened. */
function unharmed(victim: Victim, answers: readonly Answered[]): readonly string[] {
  const wrong = answers.flatMap((answer) => (answer.kind === "wrong" ? [answer.what] : []));
  const lost = new Set(answers.flatMap((answer) => (answer.kind === "lost" ? [answer.world] : [])));
  const killed = answers.filter(({ kind }) => kind === "killed").length;
  const refused = answers.flatMap((answer) => (answer.kind === "no world" ? [answer.message] : []));
  const one = victim.kind === "leader";
  return [
    ...wrong,
    ...(lost.size > (one ? 0 : 1) ? [`${lost.size} worlds were lost: ${[...lost].join(", ")}`] : []),
    ...(killed > (one ? 1 : 0) ? [`${killed} commands were killed that nobody killed`] : []),
    // The one that died may have been about to be ready.
    ...(refused.length > 0 && (one || lost.size > 0) ? [`a world could not be made: ${refused[0]}`] : []),
  ];
}

/** False for a process that has ended by itself since it was chosen. */
function isKilled(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    return false;
  }
}
