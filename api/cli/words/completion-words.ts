/** What a shell offers after `substrate` and its commands, as a script of that shell. */

/** A command, with the words that come next. */
export type Offered = {
  /** Words from the program's name on: `substrate policy`. */
  readonly path: readonly string[];
  readonly commands: readonly Explained[];
  /** Options, with their dashes. */
  readonly options: readonly Explained[];
};

type Explained = { readonly word: string; readonly meaning: string };

export const SHELLS = ["bash", "zsh", "fish"] as const;

/** Writes the script of a shell. `all` begins with `substrate` itself, followed by every command. */
export function completionScript(shell: (typeof SHELLS)[number], all: readonly Offered[]): string {
  if (shell === "fish") return fishScript(all);
  const start = shell === "zsh" ? "autoload -Uz bashcompinit && bashcompinit\n" : "";
  return `${start}${bashScript(all)}`;
}

/** After `--`, and where nothing is offered, the shell completes files. */
function bashScript(all: readonly Offered[]): string {
  const paths = all.slice(1).map(({ path }) => `"${path.join(" ")}"`);
  const rows = all.map(
    ({ path, commands, options }) =>
      `    "${path.join(" ")}") words="${wordsOf(commands)}" options="${wordsOf(options)}" ;;`,
  );
  return `_substrate() {
  local at=substrate word words options
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    [ "$word" = -- ] && return
    case "$at $word" in
      ${paths.join("|")}) at="$at $word" ;;
    esac
  done
  case "$at" in
${rows.join("\n")}
  esac
  word="\${COMP_WORDS[COMP_CWORD]}"
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
  esac
}
complete -o default -F _substrate substrate
`;
}

function fishScript(all: readonly Offered[]): string {
  return all
    .flatMap(({ path, commands, options }) => {
      const here = `complete -c substrate -n ${quoted(conditionOf(path, commands))}`;
      return [
        ...commands.map(({ word, meaning }) => `${here} -f -a ${word} -d ${quoted(meaning)}`),
        ...options.map(({ word, meaning }) =>
          word.startsWith("--")
            ? `${here} -l ${word.slice(2)} -d ${quoted(meaning)}`
            : `${here} -s ${word.slice(1)} -d ${quoted(meaning)}`,
        ),
      ].map((line) => `${line}\n`);
    })
    .join("");
}

/** Holds behind the words of the path, as long as none of its commands follows. */
function conditionOf(path: readonly string[], commands: readonly Explained[]): string {
  const [, ...words] = path;
  const tests = words.map((word) => `__fish_seen_subcommand_from ${word}`);
  const later = commands.length === 0 ? [] : [`not __fish_seen_subcommand_from ${wordsOf(commands)}`];
  return [...tests, ...later].join("; and ");
}

function wordsOf(all: readonly Explained[]): string {
  return all.map(({ word }) => word).join(" ");
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}
