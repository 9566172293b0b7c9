/** Scans of layers, one at a time for each project: each takes a reader process and several times the bytes of its list. */
import { HeldUnread, type Waiter } from "../model/held.ts";
import { abortError } from "../model/unavailable.ts";

export type ScanOrder = {
  readonly project: string;
  readonly waiter: Waiter;
  /** Callers with the same name wait for one scan and get the same answer. Absent: the scan is the caller's own. */
  readonly name?: string;
};

type Work<Answer> = (signal: AbortSignal) => Promise<Answer>;

type Scan = {
  readonly name: string | undefined;
  waiter: Waiter;
  clients: number;
  /** Aborted when the last client has left. */
  readonly leaving: AbortController;
  readonly begin: () => Promise<void>;
  readonly answer: Promise<unknown>;
};

type Project = { running: Scan | undefined; readonly waiting: Scan[] };

/** Order of waiting scans. */
const RANK: Readonly<Record<Waiter, number>> = { operator: 0, broker: 1, agent: 2 };

/** Scans that wait for agents, per project. Calls beyond are refused; a person's and the broker's own never are. */
const MAX_OF_AGENTS = 4;

export class ScanQueue {
  readonly #projects = new Map<string, Project>();

  /**
   * Runs `work` when no other scan of the project runs, with a signal that ends it when its last client has left. Rejects with the
   * reason of `signal`, and with {@link HeldUnread} when too many wait.
   */
  async run<Answer>(order: ScanOrder, signal: AbortSignal, work: Work<Answer>): Promise<Answer> {
    if (signal.aborted) throw abortError(signal);
    const project = this.#projects.get(order.project) ?? { running: undefined, waiting: [] };
    this.#projects.set(order.project, project);
    const scan = joined(project, order) ?? added(project, order, work);
    scan.clients += 1;
    project.waiting.sort((one, other) => RANK[one.waiter] - RANK[other.waiter]);
    this.#advance(order.project, project);
    return await new Promise<Answer>((resolve, reject) => {
      const leave = (): void => {
        reject(abortError(signal));
        scan.clients -= 1;
        if (scan.clients > 0) return;
        scan.leaving.abort(abortError(signal));
        const at = project.waiting.indexOf(scan);
        if (at >= 0) project.waiting.splice(at, 1);
      };
      signal.addEventListener("abort", leave, { once: true });
      const settle = (act: () => void): void => {
        signal.removeEventListener("abort", leave);
        act();
      };
      // Scans of one name have one type of answer.
      scan.answer.then(
        (answer) => settle(() => resolve(answer as Answer)),
        (error: unknown) => settle(() => reject(error instanceof Error ? error : new Error(String(error)))),
      );
    });
  }

  #advance(key: string, project: Project): void {
    if (project.running !== undefined) return;
    project.running = project.waiting.shift();
    if (project.running === undefined) return void this.#projects.delete(key);
    void project.running.begin().then(() => {
      project.running = undefined;
      this.#advance(key, project);
    });
  }
}

/** Finds a scan that has not begun: one that runs may have passed a file that has changed since. */
function joined({ waiting }: Project, { name, waiter }: ScanOrder): Scan | undefined {
  const scan = name === undefined ? undefined : waiting.find((one) => one.name === name);
  if (scan !== undefined && RANK[waiter] < RANK[scan.waiter]) scan.waiter = waiter;
  return scan;
}

function added<Answer>({ waiting }: Project, { name, waiter }: ScanOrder, work: Work<Answer>): Scan {
  const others = waiting.filter((one) => one.waiter === "agent").length;
  if (waiter === "agent" && others >= MAX_OF_AGENTS)
    throw new HeldUnread("HELD_BUSY", "Too many calls wait for the held changes of this project");
  const leaving = new AbortController();
  let begin = (): Promise<void> => Promise.resolve();
  const answer = new Promise<Answer>((resolve, reject) => {
    begin = () => work(leaving.signal).then(resolve, reject);
  });
  // Unheard when its clients have left, ignoring: each has its own reason by then.
  answer.catch(() => {});
  const scan = { name, waiter, clients: 0, leaving, begin, answer };
  waiting.push(scan);
  return scan;
}
