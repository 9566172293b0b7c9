/** Variables from the shell that called `substrate exec` or `check`: the passed variables, and the trusted values among them. */
import { isAbsolute, normalize } from "node:path";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import type { BaseEnvironment } from "../model/environment.ts";
import type { CallerShell, Passing } from "../settings/environment.ts";
import { realPath } from "../model/host-paths.ts";
import type { Effective } from "../model/effective.ts";
import type { Job } from "../model/job.ts";
import { isHarmless, isSystemFolder, namesPlace, PASSED_BY_DEFAULT, passes } from "../policy/index.ts";
import type { Place } from "../model/place.ts";
import type { Asker } from "../project/projects.ts";
import { socketVariables } from "../project/shared-sockets.ts";

/** Returns a command's base environment: from the caller's shell when the call includes one, else from the broker's. */
export function environmentFor(
  broker: Broker,
  effective: Effective,
  { caller_env: variables }: Pick<ExecuteRequest, "caller_env">,
  place: Place,
  asker: Asker,
): BaseEnvironment {
  const passing = passingOf(broker, effective);
  if (variables === undefined) return broker.environments.of(effective.hash, passing);
  if (asker === "person") broker.programFolders.add(variables["PATH"] ?? "");
  const shell = asker === "person" ? ofPerson(variables) : ofAgent(broker, place, variables);
  const folder = otherName(variables["PWD"], place.cwd);
  return broker.environments.ofShell(effective.hash, passing, {
    ...shell,
    ...(folder === undefined ? {} : { folder }),
  });
}

/** Returns PWD where it is another name of the working directory, by a symbolic link: with that a shell there began too. */
function otherName(name: string | undefined, cwd: string): string | undefined {
  if (name === undefined || name === cwd || !isAbsolute(name) || normalize(name) !== name) return undefined;
  return realPath(name) === cwd ? name : undefined;
}

function passingOf({ around }: Broker, { policies }: Effective): Passing {
  return {
    passes: (name, value) => passedLists(policies).every((list) => passes(list, name, value)),
    added: () => socketVariables(policies, around.agents),
  };
}

/** Variables that each shell sets itself: the value in the calling shell does not count. */
const SHELLS_OWN =
  /^(?:_|IFS|PWD|OLDPWD|OPT(?:IND|ARG|ERR)|PPID|PS\d|RANDOM|SECONDS|LINENO|SHLVL|E?UID|COLUMNS|LINES|BASH\w*|HIST\w*)$/;
const BASHS_OWN =
  /^(?:HOSTNAME|HOSTTYPE|MACHTYPE|OSTYPE|GROUPS|DIRSTACK|SHELLOPTS|REPLY|SRANDOM|EPOCH\w+|FUNCNAME|PIPESTATUS)$/;

/** By these git works in another repository, with another index, or as somebody else (git(1)); no text needs to name them. */
const GITS_OWN =
  /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|CONFIG_GLOBAL|CONFIG_COUNT|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE))$/;

/** What programs read without a word, by the word that starts them: the result is another one, also where they end well. */
const READ_SILENTLY: readonly (readonly [program: RegExp, variables: RegExp])[] = [
  [/\bgit\b/, GITS_OWN],
  [
    /\b(?:make|cmake|ninja|meson|configure|cargo|pip3?|gcc|g\+\+)\b/,
    /^(?:CC|CXX|LD|AR|(?:C|CXX|CPP|LD|MAKE|RUST)FLAGS)$/,
  ],
  [/\bgo\b/, /^(?:GO(?:FLAGS|OS|ARCH|PROXY|PRIVATE)|CGO_\w+)$/],
  [/\b(?:python[\d.]*|pytest|django-admin)\b/, /^(?:PYTHONPATH|PYTEST_ADDOPTS|DJANGO_SETTINGS_MODULE)$/],
  [/\b(?:java|mvn|gradle|gradlew|mvnw)\b/, /^(?:JAVA|MAVEN|GRADLE)_OPTS$|^JAVA_TOOL_OPTIONS$/],
  [/\b(?:psql|pg_\w+|createdb|dropdb)\b/, /^PG[A-Z]+$/],
];

/**
 * Returns a sentence about variables that the command's text names or its programs would read, that the caller's shell has, and that the
 * command does not get: the shell would take each for empty, and programs for unset, without a word.
 */
export function missedVariables(asked: Asked): string | undefined {
  return wordsAbout(readOrNamed(asked), asked);
}

function readOrNamed({ request }: Pick<Asked, "request">): readonly string[] {
  const { cmd = "", argv: [program = ""] = [], caller_env: callers = {} } = request;
  const text = cmd === "" ? program : cmd.replace(QUOTED, " ");
  const read = READ_SILENTLY.filter(([programs]) => programs.test(text)).map(([, variables]) => variables);
  const named = new Set([
    ...[...cmd.matchAll(/\$\{?([A-Za-z_]\w*)/g)].map(([, name = ""]) => name),
    ...Object.keys(callers).filter((name) => read.some((variables) => variables.test(name))),
  ]);
  return [...named];
}

/** A word in quotes is seldom a program: `git commit -m "make it go"`. */
const QUOTED = /'[^']*'|"[^"]*"/g;

/** Returns the same about variables that a failed command's output names, and its text does not: `KeyError: 'DATABASE_URL'`. */
export function missedByFailed(asked: Asked, said: string): string | undefined {
  const { caller_env: callers = {}, cmd = "" } = asked.request;
  const [told, inText] = [said, cmd].map((text) => new Set(text.match(NAMES)));
  const before = readOrNamed(asked);
  const named = Object.keys(callers).filter(
    (name) => told?.has(name) === true && inText?.has(name) === false && !before.includes(name),
  );
  return wordsAbout(named, asked);
}

/** Shorter names are words of many messages. */
const NAMES = /(?<!\w)[A-Z][A-Z0-9_]{3,}(?!\w)/g;

type Asked = Pick<Job, "request" | "environment">;

function wordsAbout(named: readonly string[], { request, environment }: Asked): string | undefined {
  const { cmd = "", shell, caller_env: callers = {}, env = {} } = request;
  const unpassed = named.filter(
    (name) =>
      Object.hasOwn(callers, name) &&
      !Object.hasOwn(env, name) &&
      !Object.hasOwn(environment.variables, name) &&
      !SHELLS_OWN.test(name) &&
      !(shell === "bash" && BASHS_OWN.test(name)),
  );
  if (unpassed.length === 0) return undefined;
  const set = namesSet(cmd);
  const missed = unpassed.filter((name) => !set.has(name));
  const [first, ...others] = missed;
  if (first === undefined) return undefined;
  const [is, them] = others.length === 0 ? ["is", "it"] : ["are", "them"];
  return `'${missed.join("', '")}' ${is} set in the calling shell and empty in the world: no 'world.env' of the policies in force passes ${them} on. "substrate exec --env ${first}" gives a variable to one command, SUBSTRATE_SH_ENV=${first} to those of substrate-sh`;
}

/** Statements with one of these words may set any name in them. */
const SETS = /\b(?:for|select|read|mapfile|readarray|getopts|printf)\b/;

/** Names that the text may set itself. Takes time in proportion to the text, which has up to a megabyte. */
function namesSet(cmd: string): ReadonlySet<string> {
  const assigned = [...cmd.matchAll(/(?<![\w$])([A-Za-z_]\w*)(?:\+?=|\[)/g)].map(([, name = ""]) => name);
  const statements = cmd.split(/[;\n]/).filter((statement) => SETS.test(statement));
  return new Set([
    ...assigned,
    ...statements.flatMap((statement) => statement.match(/(?<![\w$])\w+/g) ?? []),
  ]);
}

/** The `world.env` lists of all policies in force; with several lists, a variable needs to be in each. */
function passedLists(policies: Effective["policies"]): readonly (readonly string[])[] {
  const lists = policies.map(({ document }) => document.world?.env).filter((list) => list !== undefined);
  return lists.length === 0 ? [PASSED_BY_DEFAULT] : lists;
}

/** Trusts every variable: a caller on the operator's socket may approve any command anyway. */
function ofPerson(variables: CallerShell["variables"]): CallerShell {
  return { variables, key: "person", isPersons: true, trusts: () => true };
}

/**
 * Trusts only harmless variables of an agent's shell, because an agent can invent them. Rules may allow a program by name, so an
 * agent's PATH must not put another program behind the name: each folder must belong to the system or to the broker's own PATH,
 * and so must a folder named by a version manager's variable. Hidden folders of the home are not trusted: such a folder may be,
 * or contain, another project, writable by commands.
 */
function ofAgent(
  { environments }: Broker,
  { project }: Place,
  variables: CallerShell["variables"],
): CallerShell {
  const known = new Set(environments.path.split(":"));
  const isSafe = (path: string): boolean => isSystemFolder(path) || known.has(path);
  return {
    variables,
    key: `agent\0${project}`,
    isPersons: false,
    trusts: (name, value) =>
      name === "PATH"
        ? value.split(":").every(isSafe)
        : isHarmless(name, value) || (namesPlace(name) && isSafe(value)),
  };
}
