/** Thrown by `start` when a world cannot be made to its spec; no command has run. */
export class WorldUnavailable extends Error {
  override readonly name = "WorldUnavailable";
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** The reason for an abort, as an error even if the signal carries another value. */
export function abortError(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
}
