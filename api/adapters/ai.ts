/** AI SDK: `tools: { bash: bashTool(connect()) }`, and `experimental_sandbox: sandbox(connect())` from version 7 on. */
import { resolve } from "node:path";
import type { Command } from "../client/command.ts";
import { ABOUT, runForModel, type ToldResult } from "../client/for-models.ts";
import type { Substrate } from "../client/index.ts";

export type BashInput = { command: string };

type Issues = { readonly issues: readonly { readonly message: string }[] };

/** A Standard Schema (standardschema.dev) that knows its own JSON Schema. */
type InputSchema = {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "substrate";
    readonly types?: { readonly input: BashInput; readonly output: BashInput };
    readonly validate: (
      value: unknown,
    ) => { readonly value: BashInput; readonly issues?: undefined } | Issues;
    readonly jsonSchema: {
      readonly input: (options?: unknown) => Record<string, unknown>;
      readonly output: (options?: unknown) => Record<string, unknown>;
    };
  };
};

const JSON_SCHEMA = {
  type: "object",
  properties: { command: { type: "string", description: "The shell command" } },
  required: ["command"],
  additionalProperties: false,
};

const INPUT: InputSchema = {
  "~standard": {
    version: 1,
    vendor: "substrate",
    validate: (value) =>
      typeof (value as Partial<BashInput> | null)?.command === "string"
        ? { value: value as BashInput }
        : { issues: [{ message: "command must be a string" }] },
    jsonSchema: { input: () => ({ ...JSON_SCHEMA }), output: () => ({ ...JSON_SCHEMA }) },
  },
};

export type BashTool = {
  description: string;
  inputSchema: InputSchema;
  execute: (
    input: BashInput,
    options: { readonly abortSignal?: AbortSignal | undefined },
  ) => Promise<Pick<ToldResult, "exitCode" | "stdout" | "stderr">>;
};

export function bashTool(substrate: Substrate): BashTool {
  return {
    description: ABOUT,
    inputSchema: INPUT,
    execute: async ({ command }, { abortSignal }) => {
      const told = await runForModel(substrate, { cmd: command }, { signal: abortSignal });
      return { exitCode: told.exitCode, stdout: told.stdout, stderr: told.stderr };
    },
  };
}

type Abortable = { readonly abortSignal?: AbortSignal | undefined };
type AtPath = Abortable & { readonly path: string };
export type RunOptions = Abortable & {
  readonly command: string;
  readonly workingDirectory?: string | undefined;
  readonly env?: Record<string, string> | undefined;
};
export type SandboxProcess = {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  readonly stdin: WritableStream<Uint8Array>;
  wait(): Promise<{ exitCode: number }>;
  kill(): Promise<void>;
};

/** Exit codes of the scripts below. */
const MISSING = 44;
const WRONG_KIND = 45;

const SCRIPTS = {
  read: `[ -e "$1" ] || exit ${MISSING}; cat -- "$1"`,
  write: `[ ! -d "$1" ] || exit ${WRONG_KIND}; mkdir -p -- "$(dirname -- "$1")" && cat > "$1"`,
  stat: `[ -e "$1" ] || exit ${MISSING}; stat -L -c '%F:%s' -- "$1"`,
  list: `[ -e "$1" ] || exit ${MISSING}; [ -d "$1" ] || exit ${WRONG_KIND}; find "$1/" -mindepth 1 -maxdepth 1 -printf '%y%f\\0'`,
  delete: `[ -e "$1" ] || [ -L "$1" ] || exit ${MISSING}; [ -L "$1" ] || [ ! -d "$1" ] || exit ${WRONG_KIND}; rm -f -- "$1"`,
};

const MOST_BYTES = 16 * 1024 * 1024;

const KINDS: Readonly<Record<string, "file" | "directory" | "symlink">> = {
  f: "file",
  d: "directory",
  l: "symlink",
};

/** The SDK's `Experimental_SandboxSession`. Its file operations are commands in the world too, so the policy's `fs` lists hold for them. */
export class SubstrateSandbox {
  readonly description: string;
  readonly #substrate: Substrate;
  readonly #base: string;

  /** @param base folder that relative paths start from */
  constructor(substrate: Substrate, base: string) {
    this.#substrate = substrate;
    this.#base = base;
    this.description = `${ABOUT} The folder is '${base}'.`;
  }

  readonly run = async (
    options: RunOptions,
  ): Promise<{ exitCode: number; stdout: string; stderr: string }> => {
    const request = { ...this.#request(options), max_output_bytes: MOST_BYTES };
    const told = await runForModel(this.#substrate, request, { signal: options.abortSignal });
    return { exitCode: told.exitCode, stdout: told.stdout, stderr: told.stderr };
  };

  readonly spawn = async (options: RunOptions & { readonly stdin?: boolean }): Promise<SandboxProcess> => {
    const request = { ...this.#request(options), no_time_limit: true, stdin: options.stdin === true };
    const command = this.#substrate.stream(request, { signal: options.abortSignal });
    await command.started;
    return processOf(command);
  };

  readonly readFile = async (options: AtPath): Promise<ReadableStream<Uint8Array> | null> => {
    const bytes = await this.readBinaryFile(options);
    return bytes === null ? null : (new Blob([bytes]).stream() as ReadableStream<Uint8Array>);
  };

  readonly readBinaryFile = (options: AtPath): Promise<Uint8Array | null> => this.#script("read", options);

  readonly readTextFile = async ({
    encoding = "utf-8",
    startLine = 1,
    endLine,
    ...options
  }: AtPath & {
    readonly encoding?: string;
    readonly startLine?: number;
    readonly endLine?: number;
  }): Promise<string | null> => {
    const bytes = await this.readBinaryFile(options);
    if (bytes === null) return null;
    const text = new TextDecoder(encoding).decode(bytes);
    if (startLine === 1 && endLine === undefined) return text;
    return text
      .split("\n")
      .slice(startLine - 1, endLine)
      .join("\n");
  };

  readonly writeFile = async ({
    content,
    ...options
  }: AtPath & { readonly content: ReadableStream<Uint8Array> }): Promise<void> => {
    const parts: Uint8Array[] = [];
    for await (const part of content) parts.push(part);
    await this.writeBinaryFile({ ...options, content: Buffer.concat(parts) });
  };

  readonly writeBinaryFile = async ({
    content,
    ...options
  }: AtPath & { readonly content: Uint8Array }): Promise<void> => {
    await this.#script("write", options, content);
  };

  readonly writeTextFile = async ({
    content,
    encoding = "utf-8",
    ...options
  }: AtPath & { readonly content: string; readonly encoding?: string }): Promise<void> => {
    if (!Buffer.isEncoding(encoding)) throw new TypeError(`Cannot write text as '${encoding}'`);
    await this.writeBinaryFile({ ...options, content: Buffer.from(content, encoding) });
  };

  readonly stat = async (
    options: AtPath,
  ): Promise<{ type: "file" | "directory" | "other"; size: number } | null> => {
    const bytes = await this.#script("stat", options);
    if (bytes === null) return null;
    const [kind = "", size] = Buffer.from(bytes).toString("utf8").trim().split(":");
    const type = kind.startsWith("regular") ? "file" : kind === "directory" ? "directory" : "other";
    return { type, size: Number(size) };
  };

  readonly listDirectory = async (
    options: AtPath,
  ): Promise<{ name: string; type: "file" | "directory" | "symlink" | "other" }[] | null> => {
    const bytes = await this.#script("list", options);
    if (bytes === null) return null;
    const entries = Buffer.from(bytes).toString("utf8").split("\0").filter(Boolean);
    return entries.map((entry) => ({ name: entry.slice(1), type: KINDS[entry.charAt(0)] ?? "other" }));
  };

  readonly deleteFile = async (options: AtPath): Promise<boolean> =>
    (await this.#script("delete", options)) !== null;

  #request({ command, workingDirectory = ".", env }: RunOptions): {
    cmd: string;
    cwd: string;
    env?: Record<string, string>;
  } {
    const cwd = resolve(this.#base, workingDirectory);
    return { cmd: command, cwd, ...(env === undefined ? {} : { env }) };
  }

  /** Standard output of a script about a path; null where nothing has that path. Throws for every other failure. */
  async #script(
    name: keyof typeof SCRIPTS,
    { path, abortSignal: signal }: AtPath,
    stdin?: Uint8Array,
  ): Promise<Uint8Array | null> {
    const place = resolve(this.#base, path);
    const { exit, stdout_b64, stderr, truncated, notices, fs_diff, span_id } = await this.#substrate.execute(
      {
        argv: ["/bin/sh", "-c", SCRIPTS[name], "sh", place],
        cwd: this.#base,
        max_output_bytes: MOST_BYTES,
        ...(stdin === undefined ? {} : { stdin }),
      },
      { signal },
    );
    if (exit === MISSING) return null;
    const kind = name === "list" ? "it is no folder" : "it is a folder";
    const why = exit === WRONG_KIND ? kind : (notices[0]?.message ?? stderr.trim());
    if (exit !== 0) throw new Error(`Cannot ${name} '${path}': ${why}`);
    if (fs_diff?.held === true)
      throw new Error(
        `Cannot ${name} '${path}' yet: the policy holds the change until a person applies it ('substrate apply ${span_id}')`,
      );
    if (truncated) throw new Error(`Cannot ${name} '${path}': it has more than ${MOST_BYTES} bytes`);
    return Buffer.from(stdout_b64, "base64");
  }
}

/** @param base folder that relative paths start from; default: the folder of this process */
export function sandbox(substrate: Substrate, base: string = process.cwd()): SubstrateSandbox {
  return new SubstrateSandbox(substrate, base);
}

/** A stream that nobody reads holds up the other one, and the command, once it is full. */
const UNREAD_BYTES = 256 * 1024;

function processOf(command: Command): SandboxProcess {
  const pipe = (): TransformStream<Uint8Array, Uint8Array> =>
    new TransformStream(undefined, undefined, { highWaterMark: UNREAD_BYTES, size: ({ length }) => length });
  const pipes = { stdout: pipe(), stderr: pipe() };
  const writers = { stdout: pipes.stdout.writable.getWriter(), stderr: pipes.stderr.writable.getWriter() };
  const ended = (async () => {
    // A cancelled stream takes no more; the command goes on.
    for await (const { stream, bytes } of command) await writers[stream].write(bytes).catch(() => {});
    return await command.finished();
  })().finally(() => {
    for (const writer of Object.values(writers)) writer.close().catch(() => {});
  });
  ended.catch(() => {});
  let killed = false;
  return {
    stdout: pipes.stdout.readable,
    stderr: pipes.stderr.readable,
    stdin: new WritableStream<Uint8Array>({
      write: (bytes) => command.write(bytes),
      close: () => command.end(),
    }),
    wait: async () => {
      const { exit } = await ended;
      return { exitCode: exit };
    },
    kill: async () => {
      if (!killed) command.signal("SIGKILL");
      killed = true;
      await ended.catch(() => {});
    },
  };
}
