/** A person at a terminal: a bash of the host, the actor's, with `substrate` as a command. */
import { join } from "node:path";
import { type IPty, spawn } from "node-pty";
import { stripVTControlCharacters } from "node:util";
import { eventually, type TestBroker } from "../broker/broker.ts";
import { installationFor } from "../broker/installation.ts";
import { changeTo } from "../users/users.ts";

const WAIT_MS = 20_000;

/** The launcher in Node, and the native front, which has Node ask. */
export type Front = "node" | "native";
export const FRONTS: readonly Front[] = ["node", "native"];

export class Person {
  #text = "";
  readonly #terminal: IPty;

  private constructor(terminal: IPty) {
    this.#terminal = terminal;
    terminal.onData((data) => (this.#text += data));
  }

  /** @param more variables of the shell's environment. */
  static async at(
    broker: TestBroker,
    more: Readonly<Record<string, string>> = {},
    front: Front = "node",
  ): Promise<Person> {
    const { root, node, launcher } = await installationFor(broker.actor);
    const shell = [...changeTo(broker.actor), "/bin/bash", "--norc", "--noprofile", "-i"];
    const [first = "", ...words] = shell;
    const terminal = spawn(first, words, {
      cwd: broker.project,
      cols: 100,
      rows: 30,
      env: {
        PATH: "/usr/local/bin:/usr/bin:/bin",
        HOME: broker.actor.home,
        TERM: "xterm-256color",
        NO_COLOR: "1",
        PS1: "OUTSIDE> ",
        SUBSTRATE_HOME: broker.home,
        ...more,
      },
    });
    const person = new Person(terminal);
    const program = front === "node" ? `'${node}' '${launcher}'` : `'${join(root, ".build/substrate")}'`;
    person.type(`substrate() { ${program} "$@"; }\r`);
    await person.sees(/OUTSIDE> $/);
    return person;
  }

  type(keys: string): void {
    this.#terminal.write(keys);
  }

  resize(columns: number, rows: number): void {
    this.#terminal.resize(columns, rows);
  }

  /** Waits for a text, without its terminal sequences, and forgets all up to its end. */
  async sees(wanted: RegExp): Promise<string> {
    await eventually(() => wanted.test(stripVTControlCharacters(this.#text)), WAIT_MS);
    const shown = stripVTControlCharacters(this.#text);
    const found = wanted.exec(shown);
    if (found === null) throw new Error(`Waited for ${wanted} in ${JSON.stringify(shown.slice(-1500))}`);
    const end = found.index + found[0].length;
    this.#text = shown.slice(end);
    return shown.slice(0, end);
  }

  /** Closes the window: its programs lose their terminal, and its shell gets SIGHUP. */
  closeWindow(): void {
    // node-pty has this method and does not declare it.
    (this.#terminal as IPty & { destroy(): void }).destroy();
  }

  leave(): void {
    this.#terminal.kill("SIGKILL");
  }
}
