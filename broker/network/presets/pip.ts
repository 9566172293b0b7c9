/** `@pip`: the indexes in pip's settings, and the file host of pip's default index. */
import { join } from "node:path";
import type { HostTools } from "./host-tools.ts";
import type { PresetHost, Urls } from "./preset.ts";

/** pip.pypa.io/en/stable/topics/configuration: the user's files and the machine's. */
export function pipSettings({ home, environment }: PresetHost): readonly string[] {
  const folder = environment["XDG_CONFIG_HOME"] ?? join(home, ".config");
  const named = environment["PIP_CONFIG_FILE"];
  const files = [join(folder, "pip/pip.conf"), join(home, ".pip/pip.conf"), "/etc/pip.conf"];
  return named === undefined || named === "/dev/null" ? files : [named, ...files];
}

/**
 * A line of `pip config list`: `global.index-url='https://…'`, `:env:.find-links='…'`. Blanks separate several values.
 */
const LINE = /^\S+\.(index-url|extra-index-url|find-links)=(['"])(.*)\2$/gm;

/** Prints pip's default index. pip has no option for this, so its own module is asked. */
const DEFAULTS =
  "from pip._internal.models.index import PyPI; print(PyPI.simple_url); print('https://' + PyPI.file_storage_domain)";

export async function askPip(tools: HostTools): Promise<Urls | string> {
  const said = await tools.ask("python3", ["-m", "pip", "config", "list"]);
  if (typeof said === "string") return said;
  if (!said.ok) return "pip is not installed, or does not report its settings";
  const settings = [...said.out.matchAll(LINE)].map(([, key, , value = ""]) => ({
    key,
    urls: urlsIn(value),
  }));
  const urls = settings.flatMap((setting) => setting.urls);
  if (settings.some(({ key }) => key === "index-url")) return { urls };
  const own = await tools.ask("python3", ["-c", DEFAULTS]);
  if (typeof own === "string") return own;
  return own.ok
    ? { urls: [...urls, ...urlsIn(own.out)] }
    : { urls, notes: ["this version of pip does not report its default index"] };
}

/** Splits values; pip prints a line feed inside a value as `\n`, like Python's `repr`. */
function urlsIn(text: string): readonly string[] {
  return text.replaceAll("\\n", " ").split(/\s+/);
}
