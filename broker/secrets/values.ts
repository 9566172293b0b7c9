/** Patterns of secret values, and tests for values that are no secret. */

/** A quoted value extends to its quote, spaces included; a bare value ends where a shell ends the word. */
export const VALUE = "(?:\"[^\"]{1,4096}\"?|'[^']{1,4096}'?|[^\\s'\";&|)]{1,4096})";

const CONSTANT =
  /^(?:\d{1,7}|true|false|yes|no|on|off|null|nil|none|undefined|string|str|required|optional|inherit|bearer|basic|stdin|-|id=\S*|type=\S*|src=\S*|env=\S*|env:\S*|file:\S*|fd:\d*)$/i;

/** `/etc/x`, `./x`, `~/x`, `@x`, `cert.pem`: the path of a secret, not the secret. */
const PLACE =
  /^(?:(?:~|\.{1,2})\/|\/(?:etc|run|var|home|root|tmp|usr|opt|mnt|dev|proc|srv|secrets|workspace|app)\/|file:\/\/|@)|\.(?:pem|key|crt|cer|p12|pfx|asc|gpg|pub|json|ya?ml|txt)$/i;

/** Matches placeholders for a later value: `$TOKEN`, `${TOKEN}`, `$(pass show x)`, `{{ token }}`, `<token>`, `%TOKEN%`, `***`. */
export function isReference(value: string): boolean {
  if (value.startsWith("'")) return isPlaceholder(value.slice(1));
  const bare = value.replace(/^\\{0,2}"/, "");
  return /^(?:\$[A-Za-z_{(]|`)/.test(bare) || isPlaceholder(bare);
}

function isPlaceholder(value: string): boolean {
  return /^(?:\.[A-Za-z_][\w.]*[}\])]*$|\{\{|<[A-Za-z]|%[A-Za-z_]+%|\*{3}|\.{3}|x{4,}['"]?$|\[redacted:)/i.test(
    value,
  );
}

/** Whether a value is a reference, a keyword of a syntax, or a secret's path. */
export function standsForAnother(value: string): boolean {
  const bare = value.replace(/^\\{0,2}["']/, "").replace(/\\{0,2}["']?[}\],]*$/, "");
  return isReference(value) || CONSTANT.test(bare) || PLACE.test(bare);
}

/** Whether letters and digits look like a token rather than a user's name, where either may stand. */
export function looksMadeUp(value: string): boolean {
  const isMixed = /[a-z]/.test(value) && /[A-Z]/.test(value);
  return value.length >= 30 || (/\d/.test(value) && value.length >= (isMixed ? 12 : 16));
}
