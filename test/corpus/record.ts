import { writeFileSync } from "node:fs";
import { ClosedRoot } from "./closed-root.ts";
import { corpus } from "./commands.ts";
import { programNames } from "./names.ts";

/** Runs the whole corpus in both shells and writes down what they ran. Throws where there can be no closed root. */
export function record(path: string): void {
  const texts = corpus().map(({ text }) => text);
  const root = ClosedRoot.make(programNames(texts));
  if (typeof root === "string") throw new Error(`Cannot run the corpus: ${root}`);
  try {
    const dash = root.run("dash", texts);
    const bash = root.run("bash", texts);
    const lines = texts.map((text, index) => {
      const executed = { dash: dash[index], bash: bash[index] };
      return `    ${JSON.stringify(text)}: ${JSON.stringify(executed)}`;
    });
    writeFileSync(path, `{\n  "commands": {\n${lines.join(",\n")}\n  }\n}\n`);
  } finally {
    root.remove();
  }
}
