/**
 * What a policy denies that has no list of its own. An absent `fs.deny_read` or `fs.deny_write` gives these; a list that is
 * there means what it says. Each row has its reason; the shipped policies write the rows out for people to edit.
 */

export type Denial = { readonly path: string; readonly reason: string };

/**
 * Credentials in the home folder. A row is here when the file is worth stealing and no build, test or commit reads it.
 *
 * Left out on purpose, although each may hold a password: `.gitconfig` and `.config/git/config` (git does not work without
 * them; a helper named there keeps the secret elsewhere), `.config/pip`, `.m2/settings.xml`, `.gradle/gradle.properties`,
 * `.bundle/config`, `.nuget`, `.yarnrc.yml`, `.condarc` (the tool fails when it cannot read its own settings).
 */
export const DENIED_READS: readonly Denial[] = [
  { path: "$HOME/.ssh", reason: "private keys to other machines and to git hosts" },
  { path: "$HOME/.gnupg", reason: "private keys that sign and decrypt in your name" },
  { path: "$HOME/.netrc", reason: "passwords that curl, git and others send by themselves" },
  { path: "$HOME/.authinfo", reason: "the same for Emacs and Gnus" },
  { path: "$HOME/.npmrc", reason: "the token that publishes packages in your name" },
  { path: "$HOME/.pypirc", reason: "the token that publishes packages in your name" },
  { path: "$HOME/.cargo/credentials", reason: "the token that publishes crates, in its old file" },
  { path: "$HOME/.cargo/credentials.toml", reason: "the token that publishes crates" },
  { path: "$HOME/.gem/credentials", reason: "the key that publishes gems" },
  { path: "$HOME/.local/share/gem/credentials", reason: "the key that publishes gems, in its new place" },
  { path: "$HOME/.composer/auth.json", reason: "tokens for package hosts" },
  { path: "$HOME/.config/composer/auth.json", reason: "tokens for package hosts" },
  { path: "$HOME/.m2/settings-security.xml", reason: "the master password of Maven's other passwords" },
  { path: "$HOME/.git-credentials", reason: "passwords of git hosts, in plain text" },
  { path: "$HOME/.config/git/credentials", reason: "passwords of git hosts, in plain text" },
  { path: "$HOME/.config/gh", reason: "a token with all rights of the GitHub account" },
  { path: "$HOME/.config/hub", reason: "a token with all rights of the GitHub account" },
  { path: "$HOME/.config/glab-cli", reason: "a token with all rights of the GitLab account" },
  { path: "$HOME/.docker", reason: "passwords of registries, and certificates for remote daemons" },
  { path: "$HOME/.config/containers/auth.json", reason: "passwords of registries, as podman keeps them" },
  { path: "$HOME/.kube", reason: "access to clusters" },
  { path: "$HOME/.aws", reason: "access to a cloud account" },
  { path: "$HOME/.azure", reason: "access to a cloud account" },
  { path: "$HOME/.config/gcloud", reason: "access to a cloud account" },
  { path: "$HOME/.oci", reason: "access to a cloud account" },
  { path: "$HOME/.config/doctl", reason: "access to a cloud account" },
  { path: "$HOME/.config/hcloud", reason: "access to a cloud account" },
  { path: "$HOME/.boto", reason: "keys of object stores" },
  { path: "$HOME/.s3cfg", reason: "keys of object stores" },
  { path: "$HOME/.config/rclone", reason: "keys of object stores and drives" },
  { path: "$HOME/.terraform.d/credentials.tfrc.json", reason: "tokens that change infrastructure" },
  { path: "$HOME/.vault-token", reason: "access to a store of secrets" },
  { path: "$HOME/.config/sops", reason: "keys that decrypt the secrets of projects" },
  { path: "$HOME/.password-store", reason: "passwords, and the names of what they open" },
  { path: "$HOME/.config/op", reason: "sessions of a password manager" },
  { path: "$HOME/.config/Bitwarden CLI", reason: "sessions of a password manager" },
  { path: "$HOME/.local/share/keyrings", reason: "the desktop's own store of passwords" },
  { path: "$HOME/.local/share/kwalletd", reason: "the desktop's own store of passwords" },
  { path: "$HOME/.pgpass", reason: "passwords of databases" },
  { path: "$HOME/.my.cnf", reason: "passwords of databases" },
  { path: "$HOME/.mylogin.cnf", reason: "passwords of databases, only obscured" },
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
  { path: "$HOME/.bitcoin", reason: "keys to money" },
  { path: "$HOME/.electrum", reason: "keys to money" },
  { path: "$HOME/.ethereum", reason: "keys to money" },
  { path: "$HOME/.config/solana", reason: "keys to money" },
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
];

/** What makes git run a program, or take its settings from elsewhere, in every kind of git folder. */
const GIT_RUNS: readonly Denial[] = [
  { path: "hooks", reason: "git runs these programs by itself" },
  { path: "config", reason: "its pagers, editors, filters, aliases, helpers and monitors are programs" },
  { path: "config.worktree", reason: "a second config, read after the first" },
  { path: "commondir", reason: "it says in which other folder hooks and config are" },
];

/** Each worktree's own folder below the git folder, and those of submodules, which nest. */
const OTHERS = ["worktrees/*/", "modules/**/"] as const;

/** Git's ways to run code. What else runs by itself in a project is listed as `autorun` when it changes. */
export const DENIED_WRITES: readonly Denial[] = gitRows("$PROJECT/.git", [""]);

/**
 * The same in the folders of worktrees and submodules that exist. A new one may be made (`git worktree add`): the working
 * tree that leads to it is made by the same command, and could lead to any other folder as well.
 */
export const SEALED_WRITES: readonly Denial[] = gitRows("$PROJECT/.git", OTHERS);

/**
 * The same for the git folder of a worktree or a submodule. A worktree shares it with a working tree of somebody else's,
 * where `git rebase --continue` runs the programs that `rebase-merge` lists.
 */
export function deniedInGitFolder(folder: string, shared: boolean): readonly string[] {
  return [...pathsOf(gitRows(folder, [""])), ...(shared ? [`${folder}/rebase-merge`] : [])];
}

/** And what stands in the folders of other worktrees, and of submodules. */
export function sealedInGitFolder(folder: string): readonly string[] {
  return pathsOf(gitRows(folder, OTHERS));
}

export function pathsOf(rows: readonly Denial[]): readonly string[] {
  return rows.map(({ path }) => path);
}

function gitRows(folder: string, places: readonly string[]): readonly Denial[] {
  return places.flatMap((within) =>
    GIT_RUNS.map(({ path, reason }) => ({ path: `${folder}/${within}${path}`, reason })),
  );
}
