/** `substrate shell`: a bash in a world, whose lines are typed here and judged by the broker before bash sees them. */
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Answer } from "../../client/client.ts";
import { type LineMessage, Stream } from "../../client/stream.ts";
import { askingHere } from "../questions/ask-here.ts";
import { searchHistory } from "../terminal/history-search.ts";
import { completions } from "../terminal/line-completion.ts";
import { LineHistory, MOST_LINES } from "../terminal/line-history.ts";
import { ScreenState } from "../terminal/screen-reset.ts";
import { isTerminal, onEnding, rawMode, sizeOf } from "../terminal/raw-mode.ts";
import { insertText, isUnfinished, onLines, Pastes, toLineBegin } from "../terminal/line-editing.ts";
import { wordsOf } from "../terminal/replies.ts";
import { beginOfPrompt, promptBegins, promptIn } from "../terminal/shell-prompt.ts";
import { TypedKeys } from "../terminal/typed-keys.ts";
import { within } from "../terminal/within.ts";
import { Complaint, harmlessLine, type Terminal } from "../terminal/terminal.ts";
import { coloursFor } from "../words/colours.ts";
import { callerShell, setVariables } from "./caller-shell.ts";
import { parentSpan, refuseWithoutWorld, spotOf, variable, type WhoseOptions } from "./command-body.ts";
import { execCommand } from "./exec.ts";
import { endOf, uncounted } from "./run.ts";

export type ShellOptions = WhoseOptions & { readonly env?: readonly string[] };

/** How long a prompt waits for what the broker says about the last line; what comes later is shown at the shell's end. */
const MOST_WAIT_MS = 1000;

/** 128 + SIGINT. */
const INTERRUPTED = 130;

/** 128 + SIGHUP: the terminal was closed. */
const HUNG_UP = 129;

export async function shellCommand(terminal: Terminal, options: ShellOptions): Promise<number> {
  if (!isTerminal(terminal)) {
    throw new Complaint(
      "Cannot start a shell: standard input and output must be a terminal. For a script: substrate exec -- 'COMMAND', or substrate run -- bash SCRIPT",
    );
  }
  refuseWithoutWorld(terminal, "shell");
  return await new Shell(terminal, options).ended();
}

class Shell {
  readonly #terminal: Terminal;
  readonly #options: ShellOptions;
  readonly #history: LineHistory;
  readonly #stream: Stream;
  #world = "";
  /** Begins the shell's prompts. Without its random word, text of a program's would choose the folder of the next line. */
  #promptBegins = "";
  #cwd: string;
  #exit = 0;
  /** Output not yet shown, because it may be the beginning of a prompt. */
  #held = "";
  #endsLine = true;
  #isAsking = false;
  #isOver = false;
  /** Goes on to the next prompt, once the broker has told what happened in the last line. */
  #onTold: (sentences: readonly string[]) => void = () => {};
  /** Goes on to the next prompt, once bash has given back what nobody read. */
  #onAhead: (text: string) => void = () => {};
  /** What the person has typed since the last line was sent. */
  #typed = new TypedKeys();
  readonly #told = new Set<string>();
  readonly #screen = new ScreenState();
  /** Whole lines, and the beginning of another one, that were typed before they were asked for. */
  readonly #ahead: string[] = [];
  #begun = "";
  #typing: Interface | undefined;
  #undo: (() => void)[] = [];
  #onLine: (message: LineMessage) => void = () => {};
  #left: number | undefined;

  constructor(terminal: Terminal, options: ShellOptions) {
    this.#terminal = terminal;
    this.#options = options;
    this.#cwd = terminal.cwd;
    this.#history = new LineHistory(join(terminal.home.root, "shell-history"));
    const term = variable(terminal, "TERM");
    const body = {
      ...spotOf(terminal, options),
      ...callerShell(terminal),
      ...setVariables(terminal, options.env),
      ...parentSpan(terminal),
      session_shell: true,
      no_time_limit: true,
      pty: true,
      ...sizeOf(terminal.out),
      ...(term === undefined ? {} : { term }),
    };
    // Whoever the shell is for, it is a person's: other sockets have no shell.
    this.#stream = new Stream(terminal.home.controlSocket, "/v1/stream", body, {
      started: (start) => {
        const { world_id: world, prompt_word: word } = start as Readonly<Record<string, string | undefined>>;
        this.#world = world ?? "";
        if (word === undefined) return this.#leaveOldBroker();
        this.#promptBegins = promptBegins(word);
      },
      output: (_stream, bytes, taken) => this.#show(bytes, taken),
      inputTaken: () => {},
      line: (message) => {
        // At once: the line's output may be in the same read, and must find a raw terminal.
        if (message.run === "here") this.#passEverything();
        this.#onLine(message);
      },
      lineEnded: (sentences) => this.#onTold(sentences),
    });
  }

  async ended(): Promise<number> {
    const { stdin, out } = this.#terminal;
    const resize = (): void => this.#stream.send({ type: "resize", ...sizeOf(out) });
    out.on("resize", resize);
    // This listener stays: restoring the modes of a terminal that has hung up emits an error too.
    stdin.on("error", this.#hangUp);
    stdin.once("end", this.#hangUp);
    const heard = onEnding((name) => this.#leave(name === "SIGHUP" ? HUNG_UP : 143));
    try {
      const answer = await this.#stream.ended;
      this.#passNothing();
      return endOf(this.#terminal, answer, this.#told);
    } catch (error) {
      if (this.#left === undefined) throw error;
      return this.#left;
    } finally {
      this.#isOver = true;
      heard();
      out.off("resize", resize);
      this.#typing?.close();
      this.#passNothing();
      if (this.#left !== HUNG_UP) out.write(this.#screen.forShell());
      stdin.off("end", this.#hangUp);
      stdin.destroy();
    }
  }

  /** Leaves when the terminal has hung up: SIGHUP may come later or never. */
  readonly #hangUp = (): void => this.#leave(HUNG_UP);

  #leave(code: number): void {
    this.#left ??= code;
    this.#stream.close();
  }

  /** Shows output, and takes prompts out of it. */
  #show(bytes: Buffer, taken: () => void): void {
    // Latin-1 keeps every byte as it is, also those of characters that two messages split.
    let text = this.#held + bytes.toString("latin1");
    this.#held = "";
    const begins = this.#promptBegins;
    for (let found = promptIn(text, begins); found !== undefined; found = promptIn(text, begins)) {
      this.#write(text.slice(0, found.begin));
      text = text.slice(found.end);
      if (found.kind === "prompt") this.#prompted(found.exit, found.cwd);
      else this.#onAhead(found.text);
    }
    const rest = beginOfPrompt(text, begins);
    this.#held = text.slice(rest);
    this.#write(text.slice(0, rest), taken);
  }

  #write(text: string, written: () => void = () => {}): void {
    if (text === "") return written();
    this.#endsLine = text.endsWith("\n");
    const bytes = Buffer.from(text, "latin1");
    this.#screen.seen(bytes);
    this.#terminal.out.write(bytes, () => written());
  }

  /** The shell waits for a line. */
  #prompted(exit: number, cwd: string): void {
    this.#stream.send({ type: "line_end", exit: Math.min(exit, 255) });
    this.#passNothing();
    // A Ctrl-C that comes late makes the shell wait for a line twice. Any other prompt now is a program's own.
    if (this.#isAsking) return;
    this.#exit = exit;
    this.#cwd = cwd;
    // A terminal drops what nobody has read when Ctrl-C ends a program.
    if (exit === INTERRUPTED) [this.#ahead.length, this.#begun] = [0, ""];
    if (!this.#endsLine) this.#terminal.out.write(toLineBegin(sizeOf(this.#terminal.out).cols));
    this.#endsLine = true;
    this.#isAsking = true;
    // Until the line editor listens, keys wait, and Ctrl-C and Ctrl-Z are keys.
    const { stdin } = this.#terminal;
    stdin.pause();
    stdin.setRawMode(true);
    this.#undo.push(() => stdin.setRawMode(false));
    Promise.all([this.#tellLine(), this.#takeAhead()])
      .then(async () => {
        if (this.#isOver) return;
        this.#passNothing();
        await this.#ask("");
      })
      .catch((error: unknown) => {
        this.#terminal.err.write(`substrate: ${String(error)}\n`);
        this.#leave(125);
      });
  }

  /** Takes back what was typed while the last line ran and no program read: the line editor gets it as keys. */
  async #takeAhead(): Promise<void> {
    const text = await within(MOST_WAIT_MS, "", (got) => (this.#onAhead = got));
    // A program beside the shell can read the prompt's word, and write such a sequence itself.
    if (text !== "" && this.#typed.endsWith(text)) this.#terminal.stdin.unshift(Buffer.from(text));
  }

  /** Shows what the broker says about the last line: what was refused in it, and why. */
  async #tellLine(): Promise<void> {
    const sentences = await within<readonly string[]>(MOST_WAIT_MS, [], (got) => (this.#onTold = got));
    for (const sentence of sentences) {
      this.#told.add(uncounted(sentence));
      this.#terminal.err.write(`substrate: ${harmlessLine(sentence)}\n`);
    }
  }

  /** Reads lines until one is typed into the shell. `begun`: the lines of an unfinished command. */
  async #ask(begun: string): Promise<void> {
    const line = await this.#readLine(begun === "" ? this.#promptWords() : "> ");
    if (line === "interrupted") return await this.#ask("");
    if (line === "end") return this.#leaveShell(begun);
    const typed = begun === "" ? this.#expanded(line.typed) : line.typed;
    if (typed === undefined) return await this.#ask("");
    const command = begun + typed;
    if (command.trim() === "") {
      if (!(await this.#sent(" "))) await this.#ask("");
      return;
    }
    if (isUnfinished(command)) return await this.#ask(`${command}\n`);
    this.#history.add(command);
    if (!(await this.#sent(command))) return await this.#ask("");
    this.#history.ran(command);
  }

  /** Replaces `!!` and its like, and shows the line then, as bash does; undefined when no line is to run. */
  #expanded(line: string): string | undefined {
    const text = this.#history.expand(line);
    if (text === line) return line;
    const { err } = this.#terminal;
    err.write(
      text === undefined ? `bash: ${harmlessLine(line)}: event not found\n` : `${harmlessLine(text)}\n`,
    );
    // `:p` only prints.
    return /![^ ]*:p/.test(line) ? undefined : text;
  }

  #leaveOldBroker(): void {
    this.#terminal.err.write(
      "substrate: The running broker is of an older version: 'substrate broker stop' ends it, 'substrate broker start' starts this one\n",
    );
    this.#leave(125);
  }

  #leaveShell(begun: string): void {
    this.#terminal.out.write("exit\n");
    if (begun !== "") return this.#leave(2);
    this.#sent("exit").then(
      (runs) => (runs ? undefined : this.#leave(1)),
      () => this.#leave(125),
    );
  }

  /** Sends a command to be judged; true when the shell runs it. */
  async #sent(command: string): Promise<boolean> {
    const asking = {
      body: { type: "line", cmd: command, cwd: this.#cwd },
      wait: false,
      silent: false,
      inputTaken: false,
    };
    let message: LineMessage = {};
    const answer = await askingHere(this.#terminal, asking, async (body, call) => {
      message = await this.#judged({ ...body, ...(call === undefined ? {} : { call }) });
      return answerOf(message);
    });
    if (message.run === "here") return true;
    if (message.run === "apart") {
      // Without the broker's word for it the folder would be a program's.
      if (message.cwd === undefined) {
        this.#leaveOldBroker();
        return false;
      }
      this.#terminal.err.write(
        "substrate: this command's changes are held, so it runs apart from the shell; a folder, variable or alias that it sets is not kept\n",
      );
      await execCommand({ ...this.#terminal, cwd: message.cwd }, [command], {
        ...this.#options,
        shell: "bash",
      });
      return false;
    }
    if (typeof answer !== "number") this.#terminal.err.write(`substrate: ${wordsOf(answer)}\n`);
    return false;
  }

  #judged(body: object): Promise<LineMessage> {
    return new Promise((resolve) => {
      this.#onLine = resolve;
      this.#stream.send(body);
    });
  }

  /** Passes keys on to the program that runs. */
  #passEverything(): void {
    this.#isAsking = false;
    const { stdin } = this.#terminal;
    this.#typed = new TypedKeys();
    const type = (bytes: Buffer): void => {
      this.#typed.add(bytes);
      this.#stream.type(bytes);
    };
    this.#undo.push(rawMode(stdin), () => stdin.off("data", type));
    stdin.on("data", type);
    stdin.resume();
  }

  #passNothing(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }

  #promptWords(): string {
    const colours = coloursFor(this.#terminal);
    const world = this.#world.slice(-4);
    const home = this.#terminal.environment["HOME"];
    const folder =
      home !== undefined && `${this.#cwd}/`.startsWith(`${home}/`)
        ? `~${this.#cwd.slice(home.length)}`
        : this.#cwd;
    const failed = this.#exit === 0 ? "" : ` ${this.#exit}`;
    return `${colours.dim(`[world ${world}${failed}]`)} ${harmlessLine(folder)} $ `;
  }

  #readLine(prompt: string): Promise<{ readonly typed: string } | "interrupted" | "end"> {
    const { stdin, out } = this.#terminal;
    const next = this.#ahead.shift();
    if (next !== undefined) {
      out.write(`${prompt}${next}\n`);
      return Promise.resolve({ typed: next });
    }
    const history = [...this.#history.newestFirst()];
    const typing = createInterface({
      input: stdin,
      output: out,
      terminal: true,
      prompt,
      history: [...history],
      historySize: MOST_LINES,
      completer: (line: string) => completions(line, this.#cwd),
    });
    this.#typing = typing;
    const pastes = new Pastes(stdin, out, typing);
    searchHistory(stdin, typing, history);
    return new Promise((done) => {
      const end = (result: { readonly typed: string } | "interrupted" | "end"): void => {
        pastes.end();
        // First: closing tells of an end, which then no longer counts.
        done(result);
        typing.close();
      };
      let first: string | undefined;
      onLines(stdin, typing, (typed) => {
        if (first !== undefined) return this.#ahead.push(typed);
        // A paste may end in line feeds before Enter.
        const whole = typed.replace(/\n+$/, "");
        first = whole;
        const ended = (): void => {
          this.#begun = typing.line;
          end({ typed: whole });
        };
        // Later: what was pasted with this line comes now, and would be lost.
        setImmediate(() => pastes.whenWhole(ended));
        return undefined;
      });
      typing.once("SIGINT", () => {
        out.write("^C\n");
        end("interrupted");
      });
      typing.once("close", () => end("end"));
      // The editor repeats the errors of its input.
      typing.on("error", this.#hangUp);
      typing.prompt();
      if (this.#begun !== "") insertText(typing, this.#begun);
      this.#begun = "";
    });
  }
}

function answerOf({ error }: LineMessage): Answer {
  return error === undefined ? { status: 200, document: {} } : { status: 403, document: { error } };
}
