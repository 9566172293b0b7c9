/**
 * Writes that are never proposed: each would let a command change programs that run outside every world. A person can add such a
 * write by hand.
 */
const ROWS: readonly { readonly path: RegExp; readonly reason: string }[] = [
  {
    path: /^\/(etc|usr|bin|sbin|lib[^/]*|boot|opt|srv|dev|proc|sys|root)(\/|$)/,
    reason: "the system runs from it",
  },
  {
    path: /^\/var\/(lib|spool|cache|log|mail)(\/|$)/,
    reason: "system services keep their state there",
  },
  {
    path: /^~\/\.(bash[^/]*|profile|zsh[^/]*|zlog[^/]*|zprofile|login|logout|inputrc|xinitrc|xsession[^/]*|xprofile|pam_environment)$/,
    reason: "shells and sessions run it at start",
  },
  {
    path: /^~\/\.config\/(fish|autostart|systemd|environment\.d|nvim|git)(\/|$)/,
    reason: "session start and git read it",
  },
  {
    path: /^~\/\.(vim[^/]*|emacs[^/]*|gitconfig|gdbinit|tmux\.conf|screenrc|npmrc|yarnrc[^/]*)(\/|$)/,
    reason: "tools run programs that it names",
  },
  {
    path: /^~\/(\.local\/bin|bin|\.cargo\/(bin|env|config[^/]*)|\.npm\/_npx|go\/bin)(\/|$)/,
    reason: "programs on PATH or run from there",
  },
  {
    path: /^~\/\.local\/share\/(applications|systemd)(\/|$)/,
    reason: "the desktop starts programs that it names",
  },
  {
    path: /^~\/\.(aider\.conf\.yml|claude|codex|copilot|cursor|gemini|opencode|vscode[^/]*)(\.json)?(\/|$)/,
    reason: "agents and editors read hooks and servers from it",
  },
  {
    path: /^~\/\.config\/(opencode|cursor|Cursor|Code[^/]*)(\/|$)/,
    reason: "agents and editors read hooks and servers from it",
  },
  {
    path: /(^|\/)\.git\/(hooks|config|config\.worktree|commondir)(\/|$)/,
    reason: "git runs programs that it names",
  },
];

/** Returns why a write is not proposed, or undefined. `home` is shown as `~`. */
export function notProposedBecause(path: string, home: string): string | undefined {
  const shown = path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
  // Root's home is among the machine's folders, but counts as a home.
  const rows = shown.startsWith("~") ? ROWS.filter(({ path: row }) => !row.source.startsWith("^\\/")) : ROWS;
  return rows.find((row) => row.path.test(shown))?.reason;
}
