/** Terminals of tmux: programs driven by keys, and compared by what their screens show. */
import { chmodSync, copyFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { TestBroker } from "../broker/broker.ts";
import { installationFor } from "../broker/installation.ts";
import { runAs } from "../users/users.ts";
import type { Front } from "./person.ts";

const WAIT_MS = 20_000;
const LOOK_EVERY_MS = 50;
/** Looks in a row that agree once a screen has been drawn. */
const SAME_LOOKS = 4;

/** How a person comes to the terminal of a world; `directly` is the terminal of tmux itself. */
export type Way = "directly" | "substrate shell" | "substrate run" | "a raw WebSocket client";

/** A text is typed as it is; a name in angle brackets is a key of tmux: `<C-c>`, `<Enter>`, `<Up>`. */
export type Keys = readonly string[];

/** What a screen shows: text alone, text with the colours as tmux repeats them, and where the cursor is: column, then row from 0. */
export type Look = { readonly text: string; readonly coloured: string; readonly cursor: string };

/** A shell without a person's settings. */
const SHELL = "bash --norc --noprofile -i";
const OUTSIDE = "OUTSIDE> ";
const PROMPT = "$ ";
/** The prompt of `substrate shell`, without the blank, in whose place looks have that of the other shells. */
const SHELL_PROMPT = /\[world [0-9a-f]{4}(?: \d+)?\] \S+ \$/;

/** A server of tmux beside a broker. */
export class Screens {
  readonly broker: TestBroker;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #rawClient: string;
  #opened = 0;

  private constructor(broker: TestBroker, environment: Readonly<Record<string, string>>, rawClient: string) {
    this.broker = broker;
    this.#environment = environment;
    this.#rawClient = rawClient;
  }

  static async beside(broker: TestBroker, front: Front = "node"): Promise<Screens> {
    const { node, root, launcher } = await installationFor(broker.actor);
    const bin = join(broker.folder, "bin");
    const program = front === "node" ? `'${node}' '${launcher}'` : `'${join(root, ".build/substrate")}'`;
    broker.write(join(bin, "substrate"), `#!/bin/sh\nexec ${program} "$@"\n`);
    chmodSync(join(bin, "substrate"), 0o755);
    // This user may be unable to read the checkout.
    const client = join(bin, "raw-client.mjs");
    copyFileSync(fileURLToPath(new URL("./raw-client.mjs", import.meta.url)), client);
    const socket = join(broker.home, "sock/agent.sock");
    const environment = {
      PATH: `${bin}:${dirname(node)}:/usr/local/bin:/usr/bin:/bin`,
      // The socket of tmux lies there, and is removed with the folder.
      TMUX_TMPDIR: broker.folder,
      SUBSTRATE_HOME: broker.home,
      PS1: OUTSIDE,
    };
    return new Screens(broker, environment, `'${node}' '${client}' '${root}' '${socket}'`);
  }

  /** A pane with the person's shell, on the host. */
  async open(): Promise<Screen> {
    this.#opened += 1;
    const name = `pane-${this.#opened}`;
    const server = "start-server ; set -g exit-empty off ; set -g default-terminal tmux-256color ;";
    await this.tmux([
      ...(this.#opened === 1 ? server.split(" ") : []),
      ...`new-session -d -s ${name} -x 100 -y 24`.split(" "),
      ...["-c", this.broker.project, ...SHELL.split(" ")],
    ]);
    const screen = new Screen(this, name);
    await screen.shows(/^OUTSIDE>$/);
    return screen;
  }

  /** Runs one client of tmux. */
  async tmux(words: readonly string[]): Promise<string> {
    const { actor, project } = this.broker;
    const argv = ["tmux", "-u", "-L", "substrate-test", "-f", "/dev/null", ...words];
    const { code, stdout, stderr } = await runAs(actor, argv, { cwd: project, env: this.#environment });
    if (code !== 0) throw new Error(`tmux ${words.join(" ")} ended with ${code}: ${stderr}`);
    return stdout;
  }

  /** The line that starts a shell, or a command of `sh`, in a terminal of a world. */
  lineOf(way: Exclude<Way, "substrate shell">, command: string | undefined): string {
    const words = command === undefined ? SHELL : `sh -c '${command.replaceAll("'", "'\\''")}'`;
    if (way === "substrate run") return `substrate run --env PS1='${PROMPT}' -- ${words}`;
    return `PS1='${PROMPT}' ${way === "directly" ? "" : `${this.#rawClient} `}${words}`;
  }

  async close(): Promise<void> {
    if (this.#opened > 0) await this.tmux(["kill-server"]);
  }
}

export class Screen {
  readonly #screens: Screens;
  readonly #name: string;

  constructor(screens: Screens, name: string) {
    this.#screens = screens;
    this.#name = name;
  }

  /** Starts a command of `sh`, or without one a shell; it finds an empty screen. */
  async start(way: Way, command: string | undefined): Promise<void> {
    await this.type(["MODES=$(stty -g); clear", "<Enter>"]);
    await this.shows(/^OUTSIDE>$/);
    const clearing = command === undefined ? undefined : `clear; ${command}`;
    const line = way === "substrate shell" ? way : this.#screens.lineOf(way, clearing);
    await this.type([line, "<Enter>"]);
    if (way !== "substrate shell" && clearing !== undefined) return;
    await this.shows(/^\$$/m);
    await this.type([clearing ?? "clear", "<Enter>"]);
    if (clearing === undefined) await this.shows(/^\$$/);
  }

  /** Leaves the shell, where there is one, and looks whether the terminal is what it was. */
  async end(way: Way, command: string | undefined): Promise<void> {
    if (way === "substrate shell" || command === undefined) {
      await this.shows(/(?:^|\n)\$$/);
      await this.type(["exit", "<Enter>"]);
    }
    await this.shows(/OUTSIDE>$/);
    await this.type([`clear; [ "$MODES" = "$(stty -g)" ] && echo the terminal is re""stored`, "<Enter>"]);
    await this.shows(/^the terminal is restored\nOUTSIDE>$/);
  }

  async type(keys: Keys): Promise<void> {
    const commands = keys.map((word) => {
      const name = /^<(.+)>$/.exec(word)?.[1];
      // tmux takes a semicolon at a word's end for its own.
      const literal = ["-l", "--", word.replace(/;$/, "\\;")];
      return ["send-keys", "-t", this.#name, ...(name === undefined ? literal : [name])];
    });
    await this.#screens.tmux(commands.flatMap((words, at) => (at === 0 ? words : [";", ...words])));
  }

  /** Pastes as a terminal does: in brackets, where the program has asked for that. */
  async paste(text: string): Promise<void> {
    await this.#screens.tmux(["set-buffer", "--", text, ";", "paste-buffer", "-p", "-d", "-t", this.#name]);
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#screens.tmux(["resize-window", "-t", this.#name, "-x", `${columns}`, "-y", `${rows}`]);
  }

  /** Waits for a text; returns the look after that, once it changes no more. */
  async shows(wanted: RegExp): Promise<Look> {
    let same = 0;
    let before = "";
    return await this.#until(
      (look) => {
        const now = JSON.stringify(look);
        same = now === before && wanted.test(look.text) ? same + 1 : 0;
        before = now;
        return same >= SAME_LOOKS;
      },
      () => String(wanted),
    );
  }

  /** Waits until what counts of the screen is what was recorded. */
  async equals(recorded: string, counts: (look: Look) => string): Promise<Look> {
    return await this.#until(
      (look) => counts(look) === recorded,
      (look) => `this, which another terminal showed:\n${recorded}\nand saw\n${counts(look)}\n`,
    );
  }

  async #until(holds: (look: Look) => boolean, what: (look: Look) => string): Promise<Look> {
    for (const end = Date.now() + WAIT_MS; ; await sleep(LOOK_EVERY_MS)) {
      const look = await this.#look();
      if (holds(look)) return look;
      if (Date.now() > end)
        throw new Error(
          `Waited for ${what(look)}\non the screen with the cursor at ${look.cursor}:\n${look.text}`,
        );
    }
  }

  async #look(): Promise<Look> {
    const target = ["-t", this.#name];
    const capture = ["capture-pane", "-p", ...target];
    const cursor = ["display-message", "-p", ...target, "#{cursor_x} #{cursor_y}"];
    const all = await this.#screens.tmux([...capture, ";", ...capture, "-e", ";", ...cursor]);
    const lines = all.split("\n").slice(0, -1);
    const [column = 0, row = 0] = (lines.pop() ?? "").split(" ").map(Number);
    const height = lines.length / 2;
    const plain = lines.slice(0, height);
    const shift = (SHELL_PROMPT.exec(plain[row] ?? "")?.[0].length ?? 1) - 1;
    return {
      text: textOf(plain, row),
      coloured: lines.slice(height).join("\n"),
      cursor: `${column - shift},${row}`,
    };
  }

  /** What tmux tells of the pane, as `#{cursor_flag}`. */
  async told(format: string): Promise<string> {
    return (await this.#screens.tmux(["display-message", "-p", "-t", this.#name, format])).trimEnd();
  }

  async close(): Promise<void> {
    await this.#screens.tmux(["kill-session", "-t", this.#name]);
  }
}

/** Without blanks at the ends of lines, and without empty lines below the last text and the cursor. */
function textOf(lines: readonly string[], row: number): string {
  const shown = lines.map((line) => line.replace(SHELL_PROMPT, "$").trimEnd());
  const last = shown.findLastIndex((line) => line !== "");
  return shown.slice(0, Math.max(last, row) + 1).join("\n");
}
