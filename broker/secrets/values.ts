/** What a value must look like to be a secret at its place, and what stands there instead of one. */

/** A quoted value goes to its quote, so that one with spaces is no half secret; a bare one to where a shell ends it. */
export const VALUE = "(?:\"[^\"]{1,4096}\"?|'[^']{1,4096}'?|[^\\s'\";&|)]{1,4096})";

const CONSTANT =
  /^(?:\d{1,7}|true|false|yes|no|on|off|null|nil|none|undefined|string|str|required|optional|inherit|bearer|basic|stdin|-|id=\S*|type=\S*|src=\S*|env=\S*|env:\S*|file:\S*|fd:\d*)$/i;

/** `/etc/x`, `./x`, `~/x`, `@x`, `cert.pem`: a place where a secret lies, and not the secret. */
const PLACE =
  /^(?:(?:~|\.{1,2})\/|\/(?:etc|run|var|home|root|tmp|usr|opt|mnt|dev|proc|srv|secrets|workspace|app)\/|file:\/\/|@)|\.(?:pem|key|crt|cer|p12|pfx|asc|gpg|pub|json|ya?ml|txt)$/i;

/** `$TOKEN`, `${TOKEN}`, `$(pass show x)`, `{{ token }}`, `<token>`, `%TOKEN%`, `***`: what will be there, and is not yet. */
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

/** A reference, a constant of a syntax, or the place of a secret. */
export function standsForAnother(value: string): boolean {
  const bare = value.replace(/^\\{0,2}["']/, "").replace(/\\{0,2}["']?[}\],]*$/, "");
  return isReference(value) || CONSTANT.test(bare) || PLACE.test(bare);
}

/** Letters and digits in a row that no person has for a name: a token where a user's name may stand as well. */
export function looksMadeUp(value: string): boolean {
  const isMixed = /[a-z]/.test(value) && /[A-Z]/.test(value);
  return value.length >= 30 || (/\d/.test(value) && value.length >= (isMixed ? 12 : 16));
}
