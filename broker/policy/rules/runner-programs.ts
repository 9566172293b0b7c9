/**
 * Programs known to start others, for `approval.require`: a line allowed by a rule alone starts only the programs of its words
 * and of these tables. Data only.
 */
import type { SimpleCommand } from "../words/command.ts";
import { baseName } from "../words/inner.ts";
import { isSystemProgram } from "./match.ts";
import { plainName } from "../programs/programs.ts";

/**
 * Programs that by design run commands of the project or of their own arguments: allowing such a program allows its starts. git,
 * ls and curl do not, so are not listed.
 */
export const RUNS_ANYTHING: ReadonlySet<string> = new Set(
  [
    // Build tools and task runners: a Makefile, a package's scripts, a build script.
    "make gmake bmake ninja cmake ctest meson scons bazel bazelisk buck2 just task rake invoke",
    "npm npx pnpm pnpx yarn bun bunx deno turbo nx lerna",
    "cargo go dotnet mvn mvnw gradle gradlew sbt lein mix rebar3 stack cabal swift zig dune opam",
    "bundle composer poetry uv uvx pipx hatch pdm tox nox pytest phpunit rspec jest vitest mocha pre-commit",
    // Interpreters and shells: the script is the project's.
    "sh bash dash ash ksh mksh zsh fish busybox python pypy node perl ruby php lua luajit Rscript java tclsh",
    // Compilers start assemblers, linkers and plugins of many names.
    "cc c++ gcc g++ clang clang++ rustc javac tsc",
  ].flatMap((names) => names.split(" ")),
);

interface KnownStarts {
  /** Names of programs in the system's folders. */
  readonly names: readonly string[];
  /** System folders with the program's own helpers. */
  readonly folders: readonly string[];
}

/** Programs with a few known starts, the same for every caller. */
export const KNOWN_STARTS: ReadonlyMap<string, KnownStarts> = new Map([
  [
    "git",
    {
      // A pager at a terminal, the way to a remote, signatures.
      names: ["less", "more", "pager", "ssh", "gpg", "gpgsm", "gpgv"],
      folders: ["/usr/lib/git-core", "/usr/libexec/git-core", "/usr/local/libexec/git-core"],
    },
  ],
  ["tar", { names: ["gzip", "bzip2", "xz", "zstd", "lz4"], folders: [] }],
  [
    "man",
    {
      names: ["less", "more", "pager", "groff", "nroff", "troff", "preconv", "tbl", "col"],
      folders: ["/usr/libexec/man-db"],
    },
  ],
]);

/** Returns the programs of a line by their names in the tables; for a path outside the system's folders, the path itself. */
export function programsOf(commands: readonly SimpleCommand[]): readonly string[] {
  const names = commands.flatMap(({ words: [program] }) => {
    if (program?.kind !== "literal") return [];
    return isSystemProgram(program.text) ? [plainName(baseName(program.text))] : [program.text];
  });
  return [...new Set(names)];
}

/** Whether allowing the program allows all its starts. A script that a rule names by its path belongs to the project. */
export function runsAnything(program: string): boolean {
  return program.includes("/") || RUNS_ANYTHING.has(program);
}

/** Only the system writes there: no policy lets a world write there. */
const SYSTEM_FILES = /^\/(usr\/)?(bin|sbin|lib|lib32|lib64|libexec|local\/bin|local\/libexec)\//;

/** Whether a real path is a file of the system. */
export function isSystemFile(real: string): boolean {
  return SYSTEM_FILES.test(real);
}

/** Whether a program of the list is known to start the file with this real path. */
export function isKnownStart(programs: readonly string[], real: string): boolean {
  if (!isSystemFile(real)) return false;
  const name = baseName(real);
  return programs.some((program) => {
    const known = KNOWN_STARTS.get(program);
    return (
      known !== undefined &&
      (known.names.includes(name) || known.folders.some((folder) => real.startsWith(`${folder}/`)))
    );
  });
}
