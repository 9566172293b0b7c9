/** `limactl`, which manages the virtual machine: each verb that Substrate uses. Nothing is ever passed to a shell. */
import { execa, type ExecaError } from "execa";
import { WorldUnavailable } from "../world/backend.ts";

/** The oldest Lima with templates that name their version, and with `edit --set`. */
const OLDEST = [1, 0] as const;

const INSTALL = "Install Lima 1.0 or newer ('brew install lima'), then try again";

/** How long a verb may take that only looks; `limactl` reads a few files for it. */
const LOOK_MS = 30_000;

/** A first start loads an image of 600 MB and installs packages; Lima itself gives up earlier. */
const START_MS = 30 * 60_000;

/** Lines of `limactl` repeated in an error. */
const LAST_LINES = 3;

/** One machine, as `limactl list --json` tells it. */
export type Instance = {
  readonly name: string;
  /** Running, Stopped, Broken, or a word that this version does not know. */
  readonly status: string;
  readonly dir: string;
  readonly errors: readonly string[];
  readonly mounts: readonly Mount[];
};

export type Mount = {
  readonly location: string;
  /** In the machine; absent: the same path. */
  readonly mountPoint?: string;
  readonly writable: boolean;
};

export type LimactlOptions = {
  readonly environment: Readonly<Record<string, string>>;
  /** Called with each line that a start prints: it takes minutes. */
  readonly onLine: (line: string) => void;
};

/** Every method throws {@link WorldUnavailable} with what `limactl` said. */
export class Limactl {
  readonly #options: LimactlOptions;

  constructor(options: LimactlOptions) {
    this.#options = options;
  }

  /** Throws where Lima is missing or too old. */
  async check(signal: AbortSignal): Promise<void> {
    const text = await this.#run(["--version"], LOOK_MS, signal);
    const [, major, minor] = /(\d+)\.(\d+)/.exec(text) ?? [];
    // A build from source names its commit alone.
    if (major === undefined || minor === undefined) return;
    const isOld = Number(major) < OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) < OLDEST[1]);
    if (isOld) throw new WorldUnavailable(`Lima ${major}.${minor} is too old for Substrate`, INSTALL);
  }

  /** Undefined: there is no machine of that name. */
  async find(name: string, signal: AbortSignal): Promise<Instance | undefined> {
    const text = await this.#run(["list", "--json"], LOOK_MS, signal);
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    return lines.map(instanceOf).find((instance) => instance.name === name);
  }

  /** @param file a YAML file that describes the machine. */
  async create(name: string, file: string, signal: AbortSignal): Promise<void> {
    await this.#run(["create", "--tty=false", `--name=${name}`, file], START_MS, signal);
  }

  async start(name: string, signal: AbortSignal): Promise<void> {
    await this.#run(["start", "--tty=false", name], START_MS, signal);
  }

  async stop(name: string, signal: AbortSignal): Promise<void> {
    await this.#run(["stop", name], START_MS, signal);
  }

  /** Replaces the mounts of a stopped machine. JSON is an expression of yq, strings included. */
  async setMounts(name: string, mounts: readonly Mount[], signal: AbortSignal): Promise<void> {
    await this.#run(
      ["edit", "--tty=false", "--set", `.mounts = ${JSON.stringify(mounts)}`, name],
      LOOK_MS,
      signal,
    );
  }

  /** Runs a program in the machine; `limactl` quotes the words. */
  async run(
    name: string,
    words: readonly string[],
    signal: AbortSignal,
    ms: number = LOOK_MS,
  ): Promise<string> {
    return await this.#run(["shell", "--workdir=/", name, ...words], ms, signal);
  }

  async #run(words: readonly string[], ms: number, signal: AbortSignal): Promise<string> {
    const running = execa("limactl", words, {
      env: this.#options.environment,
      extendEnv: false,
      cwd: "/",
      stdin: "ignore",
      timeout: ms,
      cancelSignal: signal,
      forceKillAfterDelay: 5000,
    });
    running.stderr.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n")) if (line.trim() !== "") this.#options.onLine(line);
    });
    try {
      return (await running).stdout;
    } catch (error) {
      throw failureOf(words[0] ?? "", error as ExecaError);
    }
  }
}

function failureOf(verb: string, error: ExecaError): WorldUnavailable {
  // ENOTDIR: an entry of PATH is a file.
  if (error.code === "ENOENT" || error.code === "ENOTDIR")
    return new WorldUnavailable(
      "Substrate needs a Linux VM here: Lima, which manages the virtual machine, is not installed",
      INSTALL,
      { cause: error },
    );
  const said = String(error.stderr ?? "")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-LAST_LINES)
    .map(messageOf)
    .join("; ");
  const ending = error.timedOut ? "did not end in time" : `ended with ${error.exitCode ?? error.signal}`;
  return new WorldUnavailable(
    `'limactl ${verb}' ${ending}: ${said === "" ? "it printed nothing" : said}`,
    "See 'limactl list' and the ha.stderr.log in the machine's folder",
    { cause: error },
  );
}

/** Lima logs `time="…" level=fatal msg="…"` where nobody looks on a terminal. */
function messageOf(line: string): string {
  const quoted = /\bmsg=("(?:[^"\\]|\\.)*")/.exec(line)?.[1];
  if (quoted === undefined) return line.trim();
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted;
  }
}

/** Throws {@link WorldUnavailable} for a line that is no machine. */
function instanceOf(line: string): Instance {
  type Told = Partial<Instance> & { readonly config?: { readonly mounts?: readonly Partial<Mount>[] } };
  let told: Told | null;
  try {
    told = JSON.parse(line) as Told | null;
  } catch (error) {
    throw new WorldUnavailable(`'limactl list --json' printed no JSON: ${line.slice(0, 200)}`, INSTALL, {
      cause: error,
    });
  }
  const { name = "", status = "", dir = "", errors, config } = told ?? {};
  const mounts = config?.mounts ?? [];
  return {
    name,
    status,
    dir,
    errors: (errors ?? []).map((each) => (typeof each === "string" ? each : JSON.stringify(each))),
    mounts: mounts.map(({ location = "", writable }) => ({ location, writable: writable === true })),
  };
}
