/**
 * A word in single quotes as sh, bash, zsh and fish read it alike. Backslashes stand outside: in fish `\'` and `\\` are escapes also
 * between single quotes, so the rest of a word could become a command.
 */
export function quotedWord(word: string): string {
  return `'${word.replaceAll(/['\\]/g, String.raw`'\$&'`)}'`;
}

/** {@link quotedWord}, without quotes where no shell needs them. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : quotedWord(word);
}
