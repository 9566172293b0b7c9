/** Thrown by `start` when a world cannot be made as the spec asks; nothing has run. */
export class WorldUnavailable extends Error {
  override readonly name = "WorldUnavailable";
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** Why a wait was given up, as an error whatever the signal carries. */
export function abortError(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
}
