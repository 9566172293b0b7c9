/** Resolves to the first value that `listen` hears within `ms` milliseconds, else to `otherwise`. */
export function within<Value>(
  ms: number,
  otherwise: Value,
  listen: (got: (value: Value) => void) => void,
): Promise<Value> {
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(otherwise), ms);
    listen((value) => {
      clearTimeout(late);
      resolve(value);
    });
  });
}
