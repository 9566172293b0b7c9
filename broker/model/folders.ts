/** Kernel file systems: each world has its own, whatever a policy grants. */
const KERNEL = ["/proc", "/sys", "/dev"] as const;

/** Whether `path` is `folder` or lies below it; both real paths. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}

/** Whether a real path belongs to a kernel file system. */
export function isKernels(path: string): boolean {
  return KERNEL.some((folder) => isWithin(path, folder));
}
