/**
 * Files that a tool runs by itself, later, outside any world: a change to one of them is listed apart.
 * Patterns match the path relative to the project.
 */
const AUTORUN: readonly { readonly pattern: RegExp; readonly reason: string }[] = [
  {
    pattern: /(^|\/)\.git\/(hooks|config|config\.worktree|commondir)(\/|$)/,
    reason: "git runs hooks, and programs its config names",
  },
  { pattern: /(^|\/)\.git$/, reason: "a git file leads git to another folder's config" },
  { pattern: /(^|\/)\.gitmodules$/, reason: "names what git fetches and runs filters on" },
  { pattern: /(^|\/)\.gitattributes$/, reason: "switches on filters and diff programs" },
  { pattern: /(^|\/)\.husky\//, reason: "husky points git's hooks here" },
  { pattern: /(^|\/)\.envrc$/, reason: "direnv runs it on entering the folder" },
  {
    pattern: /(^|\/)\.(bashrc|bash_profile|profile|zshrc|zshenv|zprofile)$/,
    reason: "shells run them at start",
  },
  { pattern: /(^|\/)\.(vscode|idea|devcontainer)\//, reason: "editors run tasks and settings from it" },
  { pattern: /(^|\/)\.mcp\.json$/, reason: "agents start the servers it names" },
  {
    pattern: /(^|\/)\.(claude|codex|cursor|gemini|opencode)\//,
    reason: "agents read hooks and commands from it",
  },
  { pattern: /(^|\/)package\.json$/, reason: "npm runs its scripts" },
  { pattern: /(^|\/)\.npmrc$/, reason: "npm takes programs and registries from it" },
  { pattern: /(^|\/)node_modules\/\.bin\//, reason: "npm puts it first on PATH" },
  {
    pattern: /(^|\/)(GNUmakefile|[Mm]akefile|justfile|Taskfile\.ya?ml)$/,
    reason: "make and its like run its recipes",
  },
  { pattern: /(^|\/)(setup\.py|conftest\.py|build\.rs)$/, reason: "builds and tests run it" },
  { pattern: /(^|\/)\.github\/workflows\//, reason: "the forge runs it" },
  { pattern: /(^|\/)\.pre-commit-config\.yaml$/, reason: "pre-commit runs what it names" },
];

/** All of them at once: one after the other took a third of a listing of many files. */
const ANY = new RegExp(AUTORUN.map(({ pattern }) => pattern.source).join("|"));

/** Whether some tool would run the file at this path (relative to the project) by itself. */
export function isAutorun(path: string): boolean {
  return ANY.test(path);
}
