/** Variables that make and npm set for their commands, as `shim/front/sh_variables.c`. */
import { readFileSync } from "node:fs";

/** Set by make (GNU make, 5.7) and by npm (docs.npmjs.com, "scripts") for what they run. */
const SET_BY_TOOLS: readonly string[] = [
  ...["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MAKE_TERMOUT", "MAKE_TERMERR", "MAKE_RESTARTS"],
  ...["INIT_CWD", "NODE"],
];

/** Parts of names of npm's settings that hold credentials, or files with them. */
const CREDENTIALS = /^npm_config_(_|.*(:|_auth|token|pass|otp|key|cert|email|username))/is;

/** `https://user:password@host`. */
const LOGIN = /:\/\/[^]*@/;

/** Words of make's options that name the jobserver; what follows ` -- ` are variables. */
const JOBSERVERS = [" --jobserver-auth=", " --jobserver-fds="];

type Environment = Readonly<Record<string, string | undefined>>;

/** The variables to set for a command besides those of the policy. The rest may hold a person's credentials. */
export function shVariables(environment: Environment): Record<string, string> {
  const added = (environment["SUBSTRATE_SH_ENV"] ?? "").split(",");
  const before = environmentOfMake(environment);
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value = ""]) =>
      isSetByTools(name, value) || added.includes(name) || isExported(name, value, before)
        ? [[name, name === "MAKEFLAGS" || name === "MFLAGS" ? withoutJobserver(value) : value]]
        : [],
    ),
  );
}

function isSetByTools(name: string, value: string): boolean {
  if (SET_BY_TOOLS.includes(name)) return true;
  if (!name.startsWith("npm_")) return false;
  return !name.startsWith("npm_config_") || !(CREDENTIALS.test(name) || LOGIN.test(value));
}

/** The environment that make was started with; undefined where the parent is no make. */
function environmentOfMake(environment: Environment): ReadonlySet<string> | undefined {
  // macOS shows no other process's environment.
  if (environment["MAKELEVEL"] === undefined || process.platform !== "linux") return undefined;
  try {
    const parent = readFileSync(`/proc/${process.ppid}/comm`, "utf8");
    if (parent !== "make\n" && parent !== "gmake\n") return undefined;
    return new Set(readFileSync(`/proc/${process.ppid}/environ`, "utf8").split("\0"));
  } catch {
    return undefined;
  }
}

/** Whether make has added or changed the variable for its commands: the Makefile exports it, or the command line sets it. */
function isExported(name: string, value: string, before: ReadonlySet<string> | undefined): boolean {
  if (before === undefined || name === "PATH" || name.startsWith("SUBSTRATE_")) return false;
  return !before.has(`${name}=${value}`);
}

/** The jobserver's descriptors do not exist in a world, and a make there would say so and run one job at a time. */
function withoutJobserver(flags: string): string {
  const own = flags.indexOf(" -- ") < 0 ? flags.length : flags.indexOf(" -- ");
  const kept = JOBSERVERS.reduce(
    (words, name) => {
      const at = words.indexOf(name);
      if (at < 0) return words;
      const end = words.indexOf(" ", at + 1);
      return words.slice(0, at) + (end < 0 ? "" : words.slice(end));
    },
    flags.slice(0, own),
  );
  return kept + flags.slice(own);
}
