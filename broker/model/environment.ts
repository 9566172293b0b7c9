import type { KnownSecrets } from "../secrets/redact.ts";

/** Environment variables by name. */
export type Variables = Readonly<Record<string, string>>;

/** Variables, their hash, which every span of a command with just these names, and those of them that are secret. */
export type BaseEnvironment = {
  readonly variables: Variables;
  readonly hash: string;
  readonly secrets: KnownSecrets;
  /** Those that a caller's own shell has and the broker's has not, or not so. They are judged as the request's `env` is. */
  readonly brought: Variables;
  /** What a rule that allows takes as it is: a variable that is set to the same is not changed. */
  readonly trusted: Variables;
  /** What an approval is bound to. A person's yes or no holds in each of their terminals, whatever their PATH says. */
  readonly bound: Variables;
  /** Of the caller's shell, all that was passed, PATH apart; undefined when the call says nothing of a shell. */
  readonly callers: CallersVariables | undefined;
};

export type CallersVariables = {
  readonly variables: Variables;
  /** Whether a span may hold them: none looks like a secret. */
  readonly areKept: boolean;
};
