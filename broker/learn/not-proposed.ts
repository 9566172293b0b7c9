/**
 * Writes that are never proposed: each would let a command change programs that run outside every world. A person can add such a
 * write by hand.
 */
const ROWS: readonly { readonly path: RegExp; readonly reason: string }[] = [
  {
    path: /^\/(etc|usr|bin|sbin|lib[^/]*|boot|opt|srv|dev|proc|sys|root)(\/|$)/,
    reason: "the machine runs from it",
  },
  {
    path: /^\/var\/(lib|spool|cache|log|mail)(\/|$)/,
    reason: "services of the machine keep their state there",
  },
  {
    path: /^~\/\.(bash[^/]*|profile|zsh[^/]*|zlog[^/]*|zprofile|login|logout|inputrc|xinitrc|xsession[^/]*|xprofile|pam_environment)$/,
    reason: "shells and sessions run it at start",
  },
  {
    path: /^~\/\.config\/(fish|autostart|systemd|environment\.d|nvim|git)(\/|$)/,
    reason: "it runs at start, or git does",
  },
  {
    path: /^~\/\.(vim[^/]*|emacs[^/]*|gitconfig|gdbinit|tmux\.conf|screenrc|npmrc|yarnrc[^/]*)(\/|$)/,
    reason: "tools run what it names",
  },
  {
    path: /^~\/(\.local\/bin|bin|\.cargo\/(bin|env|config[^/]*)|\.npm\/_npx|go\/bin)(\/|$)/,
    reason: "it is on the PATH, or run from there",
  },
  { path: /^~\/\.local\/share\/(applications|systemd)(\/|$)/, reason: "the desktop starts what it names" },
  {
    path: /^~\/\.(claude|codex|cursor|gemini|opencode|vscode[^/]*)(\.json)?(\/|$)/,
    reason: "agents and editors take hooks and servers from it",
  },
  {
    path: /^~\/\.config\/(opencode|cursor|Cursor|Code[^/]*)(\/|$)/,
    reason: "agents and editors take hooks and servers from it",
  },
  { path: /(^|\/)\.git\/(hooks|config|config\.worktree|commondir)(\/|$)/, reason: "git runs what it names" },
];

/** Returns why a write is not proposed, or undefined. `home` is shown as `~`. */
export function notProposedBecause(path: string, home: string): string | undefined {
  const shown = path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
  // Root's home is among the machine's folders, but counts as a home.
  const rows = shown.startsWith("~") ? ROWS.filter(({ path: row }) => !row.source.startsWith("^\\/")) : ROWS;
  return rows.find((row) => row.path.test(shown))?.reason;
}
