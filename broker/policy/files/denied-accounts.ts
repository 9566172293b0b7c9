import type { Denial } from "./default-denials.ts";

/**
 * Personal data of applications in the home folder: sessions, messages, keys to money, and typed history. As with credentials, no
 * build, test or commit reads such a file.
 *
 * Left out on purpose: documents and downloads, because their folders differ and people do give such files to agents.
 */
export const ACCOUNTS: readonly Denial[] = [
  // Agents' own tokens and keys: the commands of an agent need neither.
  {
    path: "$HOME/.claude/.credentials.json",
    reason: "an agent's own token, which the commands of the agent do not need",
  },
  {
    path: "$HOME/.codex/auth.json",
    reason: "an agent's own token, which the commands of the agent do not need",
  },
  {
    path: "$HOME/.gemini/oauth_creds.json",
    reason: "an agent's own token, which the commands of the agent do not need",
  },
  {
    path: "$HOME/.config/github-copilot",
    reason: "an agent's own token, which the commands of the agent do not need",
  },
  { path: "$HOME/.claude.json", reason: "an agent's MCP servers, with the keys given to the servers" },
  { path: "$HOME/.codex/.credentials.json", reason: "tokens for an agent's MCP servers" },
  { path: "$HOME/.gemini/mcp-oauth-tokens.json", reason: "tokens for an agent's MCP servers" },
  { path: "$HOME/.gemini/.env", reason: "an agent's keys" },
  {
    path: "$HOME/.config/cursor/auth.json",
    reason: "an agent's own token, which the commands of the agent do not need",
  },
  { path: "$HOME/.cursor/cli-config.json", reason: "an agent's own token, in its newer place" },
  { path: "$HOME/.local/share/opencode/auth.json", reason: "an agent's tokens for all its models" },
  { path: "$HOME/.local/share/opencode/mcp-auth.json", reason: "tokens for an agent's MCP servers" },
  { path: "$HOME/.copilot", reason: "an agent's own token, which the commands of the agent do not need" },
  {
    path: "$HOME/.gemini/google_accounts.json",
    reason: "an agent's account, which the commands of the agent do not need",
  },
  {
    path: "$HOME/.qwen/oauth_creds.json",
    reason: "an agent's own token, which the commands of the agent do not need",
  },
  {
    path: "$HOME/.local/share/amp/secrets.json",
    reason: "an agent's own token, which the commands of the agent do not need",
  },
  { path: "$HOME/.local/share/crush", reason: "an agent's keys for all its models" },
  { path: "$HOME/.config/goose/secrets.yaml", reason: "an agent's keys for all its models" },
  { path: "$HOME/.aider.conf.yml", reason: "an agent's keys for all its models" },
  {
    path: "$HOME/.aider/oauth-keys.env",
    reason: "an agent's own token, which the commands of the agent do not need",
  },
  { path: "$HOME/.continue/config.yaml", reason: "an agent's keys for all its models" },
  { path: "$HOME/.continue/config.json", reason: "an agent's keys for all its models" },
  { path: "$HOME/.cline/data", reason: "an agent's keys for all its models" },
  { path: "$HOME/.codeium", reason: "an agent's own token, which the commands of the agent do not need" },
  {
    path: "$HOME/.augment/session.json",
    reason: "an agent's own token, which the commands of the agent do not need",
  },
  {
    path: "$HOME/.factory/auth.json",
    reason: "an agent's own token, which the commands of the agent do not need",
  },
  {
    path: "$HOME/.config/Claude",
    reason: "the cookies of an agent's account, and the keys of its MCP servers",
  },
  // Applications: cookies and passwords of browsers, mail, chat and editors.
  { path: "$HOME/.mozilla", reason: "a browser's passwords and the cookies of every open session" },
  {
    path: "$HOME/.config/google-chrome",
    reason: "a browser's passwords and the cookies of every open session",
  },
  { path: "$HOME/.config/chromium", reason: "a browser's passwords and the cookies of every open session" },
  {
    path: "$HOME/.config/BraveSoftware",
    reason: "a browser's passwords and the cookies of every open session",
  },
  {
    path: "$HOME/.config/microsoft-edge",
    reason: "a browser's passwords and the cookies of every open session",
  },
  { path: "$HOME/.thunderbird", reason: "mail, and the passwords of mail accounts" },
  { path: "$HOME/.config/Slack", reason: "the cookies of a chat account" },
  { path: "$HOME/.config/Cursor", reason: "an editor's cookies, and the token of its account" },
  {
    path: "$HOME/snap",
    reason: "passwords and cookies of applications installed by snap, such as browsers",
  },
  {
    path: "$HOME/.var/app",
    reason: "passwords and cookies of applications installed by flatpak, such as browsers",
  },
  {
    path: "$HOME/.config/mozilla",
    reason: "a browser's passwords and the cookies of every open session, in its newer place",
  },
  {
    path: "$HOME/.config/google-chrome-beta",
    reason: "a browser's passwords and the cookies of every open session",
  },
  {
    path: "$HOME/.config/google-chrome-unstable",
    reason: "a browser's passwords and the cookies of every open session",
  },
  { path: "$HOME/.config/vivaldi", reason: "a browser's passwords and the cookies of every open session" },
  { path: "$HOME/.config/opera", reason: "a browser's passwords and the cookies of every open session" },
  { path: "$HOME/.librewolf", reason: "a browser's passwords and the cookies of every open session" },
  { path: "$HOME/.zen", reason: "a browser's passwords and the cookies of every open session" },
  {
    path: "$HOME/.local/share/epiphany",
    reason: "a browser's passwords and the cookies of every open session",
  },
  { path: "$HOME/.local/share/qutebrowser", reason: "the cookies of every open session" },
  { path: "$HOME/.local/share/evolution", reason: "mail, and the passwords of mail accounts" },
  { path: "$HOME/.config/evolution", reason: "mail, and the passwords of mail accounts" },
  { path: "$HOME/.config/Signal", reason: "messages, and the key to them" },
  { path: "$HOME/.local/share/TelegramDesktop", reason: "messages, and the session of an account" },
  { path: "$HOME/.config/discord", reason: "the token of a chat account" },
  { path: "$HOME/.config/Element", reason: "messages, and the session of an account" },
  { path: "$HOME/.config/Microsoft", reason: "the cookies of a chat account" },
  { path: "$HOME/.config/teams-for-linux", reason: "the cookies of a chat account" },
  {
    path: "$HOME/.config/Code",
    reason: "an editor's cookies, the tokens of its accounts, and the texts open in it",
  },
  { path: "$HOME/.config/Code - Insiders", reason: "an editor's cookies, and the tokens of its accounts" },
  { path: "$HOME/.config/VSCodium", reason: "an editor's cookies, and the tokens of its accounts" },
  { path: "$HOME/.config/Windsurf", reason: "an editor's cookies, and the token of its account" },
  { path: "$HOME/.config/JetBrains", reason: "an editor's passwords, and the tokens of its accounts" },
  // Keys to money.
  { path: "$HOME/.bitcoin", reason: "keys of a cryptocurrency wallet" },
  { path: "$HOME/.electrum", reason: "keys of a cryptocurrency wallet" },
  { path: "$HOME/.ethereum", reason: "keys of a cryptocurrency wallet" },
  { path: "$HOME/.config/solana", reason: "keys of a cryptocurrency wallet" },
  { path: "$HOME/.foundry/keystores", reason: "keys of a cryptocurrency wallet" },
  { path: "$HOME/.config/Exodus", reason: "keys of a cryptocurrency wallet" },
  { path: "$HOME/.config/Ledger Live", reason: "accounts of a cryptocurrency wallet" },
  { path: "$HOME/.bitmonero", reason: "keys of a cryptocurrency wallet" },
  { path: "$HOME/.sui", reason: "keys of a cryptocurrency wallet" },
  { path: "$HOME/.near-credentials", reason: "keys of a cryptocurrency wallet" },
  // Typed history: contains passwords and tokens.
  { path: "$HOME/.bash_history", reason: "typed commands, which may contain passwords and tokens" },
  { path: "$HOME/.zsh_history", reason: "typed commands, which may contain passwords and tokens" },
  {
    path: "$HOME/.local/share/fish/fish_history",
    reason: "typed commands, which may contain passwords and tokens",
  },
  { path: "$HOME/.python_history", reason: "typed commands, which may contain passwords and tokens" },
  { path: "$HOME/.node_repl_history", reason: "typed commands, which may contain passwords and tokens" },
  { path: "$HOME/.psql_history", reason: "typed commands, which may contain passwords and tokens" },
  { path: "$HOME/.mysql_history", reason: "typed commands, which may contain passwords and tokens" },
  {
    path: "$HOME/.claude/history.jsonl",
    reason: "prompts to an agent, which may contain passwords and tokens",
  },
  {
    path: "$HOME/.codex/history.jsonl",
    reason: "prompts to an agent, which may contain passwords and tokens",
  },
  {
    path: "$HOME/.local/share/atuin",
    reason: "typed commands of every machine, which may contain passwords and tokens",
  },
  {
    path: "$HOME/.config/nushell/history.txt",
    reason: "typed commands, which may contain passwords and tokens",
  },
  {
    path: "$HOME/.config/nushell/history.sqlite3",
    reason: "typed commands, which may contain passwords and tokens",
  },
  {
    path: "$HOME/.local/state/bash/history",
    reason: "typed commands, which may contain passwords and tokens",
  },
  {
    path: "$HOME/.local/state/zsh/history",
    reason: "typed commands, which may contain passwords and tokens",
  },
  { path: "$HOME/.zhistory", reason: "typed commands, which may contain passwords and tokens" },
  { path: "$HOME/.histfile", reason: "typed commands, which may contain passwords and tokens" },
  { path: "$HOME/.sqlite_history", reason: "typed commands, which may contain passwords and tokens" },
  { path: "$HOME/.rediscli_history", reason: "typed commands, which may contain passwords and tokens" },
  { path: "$HOME/.mongodb", reason: "typed commands, which may contain passwords and tokens" },
  { path: "$HOME/.irb_history", reason: "typed commands, which may contain passwords and tokens" },
  {
    path: "$HOME/.viminfo",
    reason: "typed commands and copied text, which may contain passwords and tokens",
  },
  {
    path: "$HOME/.local/share/powershell/PSReadLine",
    reason: "typed commands, which may contain passwords and tokens",
  },
];
