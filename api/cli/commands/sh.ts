/** The program `substrate-sh`: a shell for SHELL, make, npm and child processes. Does the same as `shim/front/sh.c`. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { askingHere } from "../questions/ask-here.ts";
import { isTerminal, sizeOf } from "../terminal/raw-mode.ts";
import { Complaint, harmlessLine, type Terminal } from "../terminal/terminal.ts";
import { areWordsText, callerShell } from "./caller-shell.ts";
import { commandSocket, parentSpan, spotOf, variable } from "./command-body.ts";
import { streamed, togetherField } from "./exec-stream.ts";
import { endOf } from "./run.ts";
import { shellCommand } from "./shell.ts";
import { shVariables } from "./sh-variables.ts";
import { isNullDevice } from "./stdin-field.ts";

const SH = "/bin/sh";

/** Letters of sh(1) in POSIX, and `l`, `p`, `k` and `t` of bash; `o` takes the next word. */
const LETTERS = /^[-+][abCefhiklmnpstuvxc]*(o[abCefhiklmnpstuvxc]*)?$/;

/** A name of terminfo; the broker refuses others. */
const TERM = /^[A-Za-z0-9._+-]{1,128}$/;

type Asked = {
  readonly hasCommand: boolean;
  /** Options besides `-c`. */
  readonly hasOptions: boolean;
  readonly fromInput: boolean;
  /** The command or the script's file, and what follows. */
  readonly rest: readonly string[];
};

export async function shCommand(terminal: Terminal, words: readonly string[]): Promise<number> {
  if (isInsideWorld(terminal)) return becomeSh(words);
  const asked = askedBy(words);
  if (!areWordsText()) throw cannot("…", "a word is not UTF-8, and the broker would get another one");
  const isTyped = !asked.hasCommand && !asked.fromInput && asked.rest.length === 0;
  if (isTyped && terminal.stdin.isTTY) return await shellCommand(terminal, {});
  if (terminal.environment["SUBSTRATE_WORLD"] === "disabled") {
    throw new Complaint(
      "Cannot run with SUBSTRATE_WORLD=disabled: this version runs every command in a world. Unset the variable",
    );
  }
  const pty = hasOwnTerminal(terminal);
  const input = pty || (terminal.stdin.isTTY !== true && !isNullDevice(terminal.stdin));
  const body = {
    ...spotOf(terminal, {}),
    ...commandOf(asked, words),
    ...callerShell(terminal),
    env: shVariables(terminal.environment),
    ...parentSpan(terminal),
    no_time_limit: true,
    ...(pty ? terminalOf(terminal) : togetherField()),
    stdin: input,
  };
  const call = { socket: commandSocket(terminal, {}), path: "/v1/stream", hasInput: input };
  const asking = { body, wait: false, silent: false, inputTaken: false };
  const answer = await askingHere(terminal, asking, (sent, requestId) =>
    streamed(terminal, { ...call, body: sent, requestId }),
  );
  return endOf(terminal, answer);
}

function cannot(word: string, why: string): Complaint {
  return new Complaint(`Cannot run 'substrate-sh ${harmlessLine(word)}': ${why}`);
}

function askedBy(words: readonly string[]): Asked {
  let [hasCommand, hasOptions, fromInput, at] = [false, false, false, 0];
  for (let word = words[at]; word !== undefined && /^[-+]./s.test(word); word = words[at]) {
    if (word === "--") break;
    if (!LETTERS.test(word) || (word.includes("o") && words[at + 1] === undefined))
      throw cannot(
        word,
        "it takes '-c COMMAND [NAME ARGUMENT…]', '-s', 'FILE [ARGUMENT…]', and the options of sh(1)",
      );
    if (word.includes("c")) hasCommand = word.startsWith("-");
    // A world's shell reads no file of a person's, so an interactive one runs a command as any other.
    hasOptions ||= /[^-+ci]/.test(word);
    fromInput ||= word.includes("s");
    at += word.includes("o") ? 2 : 1;
  }
  // Both end the options.
  if (words[at] === "--" || words[at] === "-") at += 1;
  const rest = words.slice(at);
  if (hasCommand && rest.length === 0) throw cannot("-c", "a command must follow");
  return { hasCommand, hasOptions, fromInput, rest };
}

/** A command alone is sent as text, as `exec` sends it; else /bin/sh gets the words as they are. */
function commandOf({ hasCommand, hasOptions, rest }: Asked, words: readonly string[]): object {
  const [command = "", ...more] = rest;
  const isPlain = hasCommand && !hasOptions && more.length === 0 && command !== "";
  return isPlain ? { cmd: command } : { argv: [SH, ...words] };
}

/** make -j runs several commands at one terminal, and the raw mode that one of them needs spoils the output of all others. */
function hasOwnTerminal(terminal: Terminal): boolean {
  const flags = terminal.environment["MAKEFLAGS"] ?? "";
  return !flags.includes("-j") && terminal.err.isTTY && isTerminal(terminal);
}

function terminalOf(terminal: Terminal): object {
  const term = variable(terminal, "TERM") ?? "";
  return { pty: true, ...sizeOf(terminal.out), ...(TERM.test(term) ? { term } : {}) };
}

/** The world's own /bin/sh, with the same words. */
function becomeSh(words: readonly string[]): number {
  const { status, signal, error } = spawnSync(SH, words, { stdio: "inherit" });
  if (error !== undefined) throw cannot(SH, error.message);
  return signal === null ? (status ?? 0) : 128 + constants.signals[signal];
}

/**
 * Whether this process is a command in a world, by the kernel's word alone: a variable would let a command on the host say it too,
 * and run there. False in a world that has a broker of its own.
 */
function isInsideWorld({ home }: Terminal): boolean {
  if (process.platform !== "linux") return false;
  try {
    if (!/^NoNewPrivs:\t1$/m.test(readFileSync("/proc/self/status", "utf8"))) return false;
    if (readFileSync("/proc/1/comm", "utf8") !== "substrate-init\n") return false;
  } catch {
    return false;
  }
  return !existsSync(home.controlSocket) && !existsSync(home.agentSocket);
}
