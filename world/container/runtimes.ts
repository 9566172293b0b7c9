import { docker } from "./docker.ts";
import { runtimeEnvironment } from "./environment.ts";
import { podman } from "./podman.ts";
import type { ContainerRuntime } from "./runtime.ts";

export type RuntimeName = "podman" | "podman:runc" | "docker";

/** Returns a container runtime by name, with the environment variables visible to the runtime. */
export function containerRuntime(
  name: RuntimeName,
  host: Readonly<Record<string, string | undefined>>,
  uid: number,
  folder: string,
): ContainerRuntime {
  const options = { environment: runtimeEnvironment(host), uid, folder };
  if (name === "docker") return docker(options);
  return podman(name === "podman" ? options : { ...options, ociRuntime: "runc" });
}
