/** Bits of clone(2) and unshare(2), from the kernel's `include/uapi/linux/sched.h`. */
export const NAMESPACE_BITS = {
  mount: 0x0002_0000,
  uts: 0x0400_0000,
  ipc: 0x0800_0000,
  user: 0x1000_0000,
  pid: 0x2000_0000,
  net: 0x4000_0000,
} as const;

export type NamespaceName = keyof typeof NAMESPACE_BITS;

/** Every namespace of a world except the user namespace, needed only without privileges. */
export const ALWAYS: readonly NamespaceName[] = ["mount", "pid", "net", "ipc", "uts"];

export function namespaceBits(names: readonly NamespaceName[]): number {
  return names.reduce((bits, name) => bits | NAMESPACE_BITS[name], 0);
}

export function hasNamespace(bits: number, name: NamespaceName): boolean {
  return (bits & NAMESPACE_BITS[name]) !== 0;
}
