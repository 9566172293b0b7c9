/** Sizes and ages for people. Pure. */

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

/** Formats a size: `1 byte`, `512 bytes`, `1.5 KiB`. */
export function sizeWords(bytes: number): string {
  const step = Math.min(UNITS.length - 1, bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10));
  if (step === 0) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  return `${(bytes / 1024 ** step).toFixed(1)} ${UNITS[step] ?? ""}`;
}

const AGES = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
] as const;

/** Formats the age of a past time in the largest whole unit: `3 min ago`. */
export function ageWords(time: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(time)) / 1000));
  const [size, unit] = AGES.find(([least]) => seconds >= least) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit} ago`;
}
