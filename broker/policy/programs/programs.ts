import type { ProgramFacts } from "./program-facts.ts";
import { FILE_PROGRAMS } from "./program-table-files.ts";
import { PACKAGE_PROGRAMS } from "./program-table-packages.ts";
import { TOOL_PROGRAMS } from "./program-table-tools.ts";

const FACTS: ReadonlyMap<string, ProgramFacts> = new Map([
  ...FILE_PROGRAMS,
  ...PACKAGE_PROGRAMS,
  ...TOOL_PROGRAMS,
]);
const NO_FACTS: ProgramFacts = {};
const VERSIONED: ReadonlyMap<string, RegExp> = new Map([
  ["pip", /^pip[0-9.]+$/],
  ["python", /^python[0-9.]+$/],
]);

export function factsOf(program: string): ProgramFacts {
  return FACTS.get(program) ?? NO_FACTS;
}

/** Strips a version: rules write `pip` for `pip3.11`. */
export function plainName(name: string): string {
  for (const [plain, versioned] of VERSIONED) if (versioned.test(name)) return plain;
  return name;
}

/** Whether a variable is known to make a program load or run other code. */
export function loadsCode(variable: string): boolean {
  return (
    /^(LD_|DYLD_|GIT_|BASH_|PYTHON|NODE_|PERL5|RUBY|JAVA_TOOL_OPTIONS$|npm_config_|CARGO_|RUSTC|GO)/.test(
      variable,
    ) ||
    [
      "PATH",
      "ENV",
      "PAGER",
      "EDITOR",
      "VISUAL",
      "IFS",
      "SHELL",
      "HOME",
      "LESSOPEN",
      "MANPAGER",
      "PROMPT_COMMAND",
    ].includes(variable)
  );
}
