/**
 * What programs are known to start, for `approval.require`: a line that a rule alone let through starts no more than its words
 * name and what stands here. Data only.
 */
import type { SimpleCommand } from "../words/command.ts";
import { baseName } from "../words/inner.ts";
import { isSystemProgram } from "./match.ts";
import { plainName } from "../programs/programs.ts";

/**
 * They run commands of the project, or of their own words, on purpose: whoever let one of them through let through what it
 * starts. Everything else (git, ls, curl) is here for none of that.
 */
export const RUNS_ANYTHING: ReadonlySet<string> = new Set(
  [
    // Build tools and task runners: a Makefile, a package's scripts, a build script.
    "make gmake bmake ninja cmake ctest meson scons bazel bazelisk buck2 just task rake invoke",
    "npm npx pnpm pnpx yarn bun bunx deno turbo nx lerna",
    "cargo go dotnet mvn mvnw gradle gradlew sbt lein mix rebar3 stack cabal swift zig dune opam",
    "bundle composer poetry uv uvx pipx hatch pdm tox nox pytest phpunit rspec jest vitest mocha pre-commit",
    // Interpreters and shells: their script is the project's.
    "sh bash dash ash ksh mksh zsh fish busybox python pypy node perl ruby php lua luajit Rscript java tclsh",
    // Compilers start assemblers, linkers and plugins of many names.
    "cc c++ gcc g++ clang clang++ rustc javac tsc",
  ].flatMap((names) => names.split(" ")),
);

interface KnownStarts {
  /** Names of programs in the system's folders. */
  readonly names: readonly string[];
  /** Folders of the system that hold programs of its own. */
  readonly folders: readonly string[];
}

/** Programs that start a few others, whoever calls them. */
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

/** The programs of a line, as the tables name them; one that is called by a path outside of the system's folders by that path. */
export function programsOf(commands: readonly SimpleCommand[]): readonly string[] {
  const names = commands.flatMap(({ words: [program] }) => {
    if (program?.kind !== "literal") return [];
    return isSystemProgram(program.text) ? [plainName(baseName(program.text))] : [program.text];
  });
  return [...new Set(names)];
}

/** Whether whatever such a program starts was let through with it. A script that a rule names by its path is the project's. */
export function runsAnything(program: string): boolean {
  return program.includes("/") || RUNS_ANYTHING.has(program);
}

/** Nobody but the system writes there: no world does, whatever a policy says. */
const SYSTEM_FILES = /^\/(usr\/)?(bin|sbin|lib|lib32|lib64|libexec|local\/bin|local\/libexec)\//;

/** Whether a file, by its real path, is the system's. */
export function isSystemFile(real: string): boolean {
  return SYSTEM_FILES.test(real);
}

/** Whether one of these programs is known to start the file of that real path. */
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
