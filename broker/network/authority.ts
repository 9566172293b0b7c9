/** Which hosts a value of HTTP names: what all readers of HTTP compare with the name of a connection. */

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

type See = (name: string) => void;

/** An empty `Host` is what a client sends that has no name for the server (RFC 9110 §7.2). */
export function showAuthority(value: string, see: See): void {
  const trimmed = withoutBlanks(value);
  if (trimmed !== "") see(hostOf(trimmed));
}

/** The host of an absolute target (RFC 9112 §3.2.2); false for any other target. */
export function showAbsolute(target: string, see: See): boolean {
  const scheme = SCHEME.exec(target)?.[0];
  if (scheme === undefined) return false;
  see(hostOf(target.slice(scheme.length).split(/[/?#\\]/, 1)[0] ?? ""));
  return true;
}

/** Not `trim`: it takes what Unicode calls blank too, which no server does. */
export function withoutBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/** What lenient servers separate words with: blank, tab, vertical tab, form feed, CR. */
export function isBlank(byte: number): boolean {
  return byte === 32 || byte === 9 || (byte >= 11 && byte <= 13);
}

/** Without its port. User names and brackets stay, so that it is no host name. */
function hostOf(authority: string): string {
  return authority.replace(/:\d*$/, "");
}
