import type { Denial } from "./default-denials.ts";

/**
 * Personal data of applications in the home folder: sessions, messages, keys to money, and typed history. As with credentials, no
 * build, test or commit reads such a file.
 *
 * Left out on purpose: documents and downloads, because their folders differ and people do give such files to agents.
 */
export const ACCOUNTS: readonly Denial[] = [
  // Agents' own tokens and keys: the commands of an agent need neither.
  { path: "$HOME/.claude/.credentials.json", reason: "an agent's own token: its commands do not need it" },
  { path: "$HOME/.codex/auth.json", reason: "an agent's own token: its commands do not need it" },
  { path: "$HOME/.gemini/oauth_creds.json", reason: "an agent's own token: its commands do not need it" },
  { path: "$HOME/.config/github-copilot", reason: "an agent's own token: its commands do not need it" },
  { path: "$HOME/.claude.json", reason: "an agent's MCP servers, with the keys that they are started with" },
  { path: "$HOME/.codex/.credentials.json", reason: "tokens for an agent's MCP servers" },
  { path: "$HOME/.gemini/mcp-oauth-tokens.json", reason: "tokens for an agent's MCP servers" },
  { path: "$HOME/.gemini/.env", reason: "the keys that an agent loads" },
  { path: "$HOME/.config/cursor/auth.json", reason: "an agent's own token: its commands do not need it" },
  { path: "$HOME/.cursor/cli-config.json", reason: "an agent's own token, in its newer place" },
  { path: "$HOME/.local/share/opencode/auth.json", reason: "an agent's tokens for every model it uses" },
  { path: "$HOME/.local/share/opencode/mcp-auth.json", reason: "tokens for an agent's MCP servers" },
  { path: "$HOME/.copilot", reason: "an agent's own token: its commands do not need it" },
  { path: "$HOME/.gemini/google_accounts.json", reason: "an agent's account: its commands do not need it" },
  { path: "$HOME/.qwen/oauth_creds.json", reason: "an agent's own token: its commands do not need it" },
  {
    path: "$HOME/.local/share/amp/secrets.json",
    reason: "an agent's own token: its commands do not need it",
  },
  { path: "$HOME/.local/share/crush", reason: "an agent's keys for every model it uses" },
  { path: "$HOME/.config/goose/secrets.yaml", reason: "an agent's keys for every model it uses" },
  { path: "$HOME/.aider/oauth-keys.env", reason: "an agent's own token: its commands do not need it" },
  { path: "$HOME/.continue/config.yaml", reason: "an agent's keys for every model it uses" },
  { path: "$HOME/.continue/config.json", reason: "an agent's keys for every model it uses" },
  { path: "$HOME/.cline/data", reason: "an agent's keys for every model it uses" },
  { path: "$HOME/.codeium", reason: "an agent's own token: its commands do not need it" },
  { path: "$HOME/.augment/session.json", reason: "an agent's own token: its commands do not need it" },
  { path: "$HOME/.factory/auth.json", reason: "an agent's own token: its commands do not need it" },
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
    reason: "what applications installed by snap keep, browsers among them: passwords and cookies",
  },
  {
    path: "$HOME/.var/app",
    reason: "what applications installed by flatpak keep, browsers among them: passwords and cookies",
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
    reason: "an editor's cookies, tokens of its accounts, and what was open in it",
  },
  { path: "$HOME/.config/Code - Insiders", reason: "an editor's cookies, and the tokens of its accounts" },
  { path: "$HOME/.config/VSCodium", reason: "an editor's cookies, and the tokens of its accounts" },
  { path: "$HOME/.config/Windsurf", reason: "an editor's cookies, and the token of its account" },
  { path: "$HOME/.config/JetBrains", reason: "an editor's passwords, and the tokens of its accounts" },
  // Keys to money.
  { path: "$HOME/.bitcoin", reason: "keys to money" },
  { path: "$HOME/.electrum", reason: "keys to money" },
  { path: "$HOME/.ethereum", reason: "keys to money" },
  { path: "$HOME/.config/solana", reason: "keys to money" },
  { path: "$HOME/.foundry/keystores", reason: "keys to money" },
  { path: "$HOME/.config/Exodus", reason: "keys to money" },
  { path: "$HOME/.config/Ledger Live", reason: "accounts of money" },
  { path: "$HOME/.bitmonero", reason: "keys to money" },
  { path: "$HOME/.sui", reason: "keys to money" },
  { path: "$HOME/.near-credentials", reason: "keys to money" },
  // Typed history: contains passwords and tokens.
  { path: "$HOME/.bash_history", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.zsh_history", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.local/share/fish/fish_history", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.python_history", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.node_repl_history", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.psql_history", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.mysql_history", reason: "what was typed: passwords and tokens among it" },
  {
    path: "$HOME/.claude/history.jsonl",
    reason: "what was typed to an agent: passwords and tokens among it",
  },
  { path: "$HOME/.codex/history.jsonl", reason: "what was typed to an agent: passwords and tokens among it" },
  {
    path: "$HOME/.local/share/atuin",
    reason: "what was typed, on every machine: passwords and tokens among it",
  },
  { path: "$HOME/.config/nushell/history.txt", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.config/nushell/history.sqlite3", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.local/state/bash/history", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.local/state/zsh/history", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.zhistory", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.histfile", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.sqlite_history", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.rediscli_history", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.mongodb", reason: "what was typed: passwords and tokens among it" },
  { path: "$HOME/.irb_history", reason: "what was typed: passwords and tokens among it" },
  {
    path: "$HOME/.local/share/powershell/PSReadLine",
    reason: "what was typed: passwords and tokens among it",
  },
];
