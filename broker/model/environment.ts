import type { KnownSecrets } from "../secrets/redact.ts";

/** Environment variables by name. */
export type Variables = Readonly<Record<string, string>>;

/** Variables, their hash, recorded in every span of a command with exactly these variables, and the secret values among them. */
export type BaseEnvironment = {
  readonly variables: Variables;
  readonly hash: string;
  readonly secrets: KnownSecrets;
  /** Variables that the caller's shell adds or changes compared to the broker's. Judged like the request's `env`. */
  readonly brought: Variables;
  /** Values accepted by allow rules as unchanged: setting such a variable to the same value is no change. */
  readonly trusted: Variables;
  /** The variables that an approval is bound to. A person's answer holds in all their terminals, whatever the PATH of each. */
  readonly bound: Variables;
  /** All passed variables of the caller's shell except PATH; undefined when the call includes no shell. */
  readonly callers: CallersVariables | undefined;
};

export type CallersVariables = {
  readonly variables: Variables;
  /** Whether a span may record the variables: no value looks like a secret. */
  readonly areKept: boolean;
};
