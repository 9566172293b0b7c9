import type { Command, SyntaxNode } from "unbash";

/** A text of the same length to put at `at`, so that every offset stays what it was. */
export interface Patch {
  readonly at: number;
  readonly text: string;
}

/**
 * Where dash and bash read one text as different commands, what makes bash's grammar read it as dash does. The policy
 * judges both readings, since `/bin/sh` is either.
 *
 * Left out on purpose: text that dash refuses as a syntax error (`<( )`, `|&`, `<<<`, arrays), which runs nothing.
 */
export function patchesOf(node: SyntaxNode): Patch[] {
  switch (node.type) {
    case "AnsiCQuoted":
      // In dash a backslash does not keep $'…' open: `$'\'; rm x #'` runs rm.
      return node.text.includes("\\'") ? [{ at: node.pos, text: "_" }] : [];
    case "TestCommand":
      // In dash `[[ a && rm x ]]` is a list of two commands.
      return [{ at: node.pos, text: "_ " }];
    case "ArithmeticCommand":
      // In dash `((rm x))` is a subshell in a subshell.
      return [
        { at: node.pos, text: "( " },
        { at: node.end - 2, text: " )" },
      ];
    case "Command":
      return joinedRedirects(node);
    default:
      return [];
  }
}

/** In dash `a &>b rm x` is `a &` and `>b rm x`. */
function joinedRedirects(node: Command): Patch[] {
  return node.redirects
    .filter((redirect) => redirect.operator.startsWith("&>") && redirect.end < node.end)
    .map((redirect) => ({ at: redirect.pos, text: ";" }));
}

export function patchedForDash(text: string, patches: readonly Patch[]): string {
  let patched = text;
  for (const { at, text: part } of patches)
    patched = patched.slice(0, at) + part + patched.slice(at + part.length);
  return patched;
}
