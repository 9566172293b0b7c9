/**
 * Variables that the broker passes from a shell to a command (`world.env`). Data, and how a list of names is read. Pure.
 *
 * Left out on purpose: variables that make a program run or load code (NODE_OPTIONS, LD_PRELOAD, PYTHONPATH, RUBYLIB, GEM_PATH,
 * BASH_ENV, JAVA_TOOL_OPTIONS, every GIT_* but an editor that edits nothing, npm_config_*), credentials, and programs such as EDITOR.
 */
import { globMatches } from "./pattern.ts";

export interface PassedRow {
  readonly names: readonly string[];
  /**
   * `text`: a word that programs compare or print. `place`: a file or folder from which programs of a version manager, or
   * certificates, are loaded, as programs are from the folders of PATH.
   */
  readonly holds: "text" | "place";
  readonly reason: string;
}

/** The default for a policy without `world.env`. The shipped policies list the same rows. */
export const PASSED_ROWS: readonly PassedRow[] = [
  { names: ["LANG", "LANGUAGE", "LC_*", "TZ"], holds: "text", reason: "locale and time zone" },
  {
    names: ["TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"],
    holds: "text",
    reason: "what the terminal can show",
  },
  { names: ["CI"], holds: "text", reason: "no person at a terminal" },
  {
    names: ["CLAUDECODE", "GEMINI_CLI", "CURSOR_AGENT", "OPENCODE"],
    holds: "text",
    reason: "the agent that runs the command, for which tools print less",
  },
  {
    names: ["GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true"],
    holds: "text",
    reason: "no editor: agents set it, since git would wait for one without end",
  },
  {
    names: ["NODE_ENV", "RAILS_ENV", "RACK_ENV"],
    holds: "text",
    reason: "the environment whose settings a project uses",
  },
  {
    names: ["PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONUTF8", "PYTHONIOENCODING"],
    holds: "text",
    reason: "what Python leaves behind, and how it writes",
  },
  { names: ["SOURCE_DATE_EPOCH"], holds: "text", reason: "the time stamp that builds write" },
  {
    names: [
      ...["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"],
      ...["CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO"],
      ...["CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE"],
    ],
    holds: "place",
    reason: "certificates of a company's proxy",
  },
  { names: ["VIRTUAL_ENV", "CONDA_PREFIX"], holds: "place", reason: "the active environment of Python" },
  { names: ["CONDA_DEFAULT_ENV"], holds: "text", reason: "the name of the active environment" },
  {
    names: ["NVM_DIR", "NVM_BIN", "NVM_INC", "FNM_DIR", "VOLTA_HOME", "NODENV_ROOT", "N_PREFIX"],
    holds: "place",
    reason: "version managers of Node",
  },
  { names: ["PYENV_ROOT", "RBENV_ROOT"], holds: "place", reason: "version managers of Python and Ruby" },
  {
    names: ["NODENV_VERSION", "PYENV_VERSION", "RBENV_VERSION", "ASDF_*_VERSION", "RUSTUP_TOOLCHAIN"],
    holds: "text",
    reason: "the version for a version manager to use",
  },
  {
    names: ["ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR"],
    holds: "place",
    reason: "version managers of many tools",
  },
  {
    names: ["SDKMAN_DIR", "JAVA_HOME"],
    holds: "place",
    reason: "version managers of Java, and the Java in use",
  },
  { names: ["RUSTUP_HOME", "CARGO_HOME"], holds: "place", reason: "the folders of rustup's toolchains" },
];

/** The names of {@link PASSED_ROWS}. */
export const PASSED_BY_DEFAULT: readonly string[] = PASSED_ROWS.flatMap(({ names }) => names);

/**
 * Whether a list passes a variable; `value` counts for entries as `GIT_EDITOR=true`. `*` does not match Substrate's own variables:
 * inside a world they would mean nothing.
 */
export function passes(list: readonly string[], name: string, value?: string): boolean {
  return list.some(
    (one) =>
      one === name ||
      (value !== undefined && one === `${name}=${value}`) ||
      (one.includes("*") && !name.startsWith("SUBSTRATE_") && globMatches(one, name)),
  );
}

/** Whether the variable names a file or folder from which programs are loaded. */
export function namesPlace(variable: string): boolean {
  return PASSED_ROWS.some(({ names, holds }) => holds === "place" && names.includes(variable));
}
