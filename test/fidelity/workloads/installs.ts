/**
 * One new package from a registry, by each package manager, as a user types it: from an empty cache and from one that the host
 * has filled. Under `default` and `ci` the commands run plainly, under the others isolated.
 */
import { SAYS } from "../../support/registry/pages.ts";
import { registryUrl } from "../registries.ts";
import type { PolicyName, Varies, Workload } from "../workload.ts";

const POLICIES: readonly PolicyName[] = ["default", "enforced", "strict", "claude-code", "ci"];

/** How an installer tells of its progress differs each time; what the package says afterwards does not. */
const LAST_WORDS = [
  [new RegExp(`^[\\s\\S]*(?=${SAYS}\\n)`), ""],
  [new RegExp(`^(?!${SAYS}\\n)[\\s\\S]*$`), ""],
] as const;

type Install = Pick<Workload, "quick" | "name" | "needs" | "tried" | "files" | "prepare" | "command"> & {
  readonly varies?: Omit<Varies, "output">;
};

const JS = '{"name":"app","version":"1.0.0"}\n';

/**
 * `links` of pnpm and bun: both link files from their store in the home (pnpm.io/settings, packageImportMethod; bun.sh/docs/install/cache)
 * and copy where link(2) fails, as it does between mounts, which home and project are in a world.
 */
const TOOLS: readonly Install[] = [
  {
    name: "npm install of a new package",
    needs: ["npm"],
    files: { "package.json": JS },
    command: `npm install thing && node -p 'require("thing")'`,
    quick: true,
  },
  {
    name: "pnpm add of a new package",
    needs: ["pnpm"],
    files: { "package.json": JS, ".npmrc": `registry=${registryUrl("npm")}/\n` },
    command: `pnpm add thing && node -p 'require("thing")'`,
    varies: {
      content: [/\.pnpm-workspace-state/, /\.modules\.yaml$/],
      links: [/\/node_modules\/\.pnpm\/thing@1\.0\.0\/node_modules\/thing\/[^/]+$/],
    },
  },
  {
    name: "yarn 4 add of a new package",
    needs: ["yarn"],
    tried: "yarn --version | grep -q '^[4-9]'",
    files: { "package.json": JS, "yarn.lock": "" },
    command: `yarn add thing && yarn node -p 'require("thing")'`,
    varies: { content: [/install-state\.gz$/] },
  },
  {
    name: "bun add of a new package",
    needs: ["bun"],
    files: { "package.json": JS, "bunfig.toml": `[install]\nregistry = "${registryUrl("npm")}/"\n` },
    command: `bun add thing && bun -e 'console.log(require("thing"))'`,
    varies: { links: [/\/node_modules\/thing\/[^/]+$/] },
  },
  {
    name: "pip install of a new package into a virtual environment",
    needs: ["python3"],
    tried: "python3 -c 'import venv, ensurepip'",
    prepare: "python3 -m venv .venv",
    command: `.venv/bin/pip install thing && .venv/bin/python -c 'import thing; print(thing.SAYS)'`,
    varies: { content: [/\.pyc$/] },
  },
  {
    name: "uv add of a new package",
    needs: ["uv"],
    files: {
      "pyproject.toml": `[project]\nname = "app"\nversion = "1.0.0"\nrequires-python = ">=3.8"\n[[tool.uv.index]]\nurl = "${registryUrl("pypi")}/simple"\ndefault = true\n`,
    },
    command: `uv add thing && uv run python -c 'import thing; print(thing.SAYS)'`,
    varies: { content: [/\.pyc$/] },
  },
  {
    name: "poetry add of a new package",
    needs: ["poetry"],
    files: {
      "app/__init__.py": "",
      "pyproject.toml": `[tool.poetry]\nname = "app"\nversion = "1.0.0"\ndescription = ""\nauthors = []\n[tool.poetry.dependencies]\npython = ">=3.8"\n[[tool.poetry.source]]\nname = "own"\nurl = "${registryUrl("pypi")}/simple/"\ndefault = true\n`,
    },
    command: `poetry add thing && poetry run python -c 'import thing; print(thing.SAYS)'`,
  },
  {
    name: "cargo add of a new package",
    needs: ["cargo", "cc"],
    // Cargo's change log: sparse registries are stable since 1.68.
    tried: "cargo --version | grep -Eq '^cargo 1\\.(6[89]|[7-9][0-9]|[1-9][0-9][0-9])'",
    files: {
      "Cargo.toml": '[package]\nname = "app"\nversion = "1.0.0"\nedition = "2018"\n',
      "src/main.rs": 'fn main() {\n    println!("{}", thing::SAYS);\n}\n',
    },
    command: "cargo add thing && cargo run",
    varies: { paths: [/\/target\//] },
  },
  {
    name: "go get of a new package",
    needs: ["go"],
    files: {
      "go.mod": "module app\n\ngo 1.16\n",
      "main.go":
        'package main\n\nimport (\n\t"fmt"\n\n\t"example.test/thing"\n)\n\nfunc main() { fmt.Println(thing.Says) }\n',
    },
    command: "go get example.test/thing && go run .",
  },
  {
    name: "gem install of a new package",
    needs: ["gem", "ruby"],
    files: { "app.rb": 'require "thing"\nputs THING_SAYS\n' },
    command: "gem install thing && ruby app.rb",
  },
  {
    name: "bundle add of a new package",
    needs: ["bundle", "ruby"],
    files: {
      Gemfile: `source "${registryUrl("gems")}"\n`,
      ".bundle/config": '---\nBUNDLE_PATH: "vendor/bundle"\n',
      "app.rb": 'require "thing"\nputs THING_SAYS\n',
    },
    command: "bundle add thing && bundle exec ruby app.rb",
  },
  {
    name: "composer require of a new package",
    needs: ["composer", "php"],
    files: {
      "composer.json": `{"repositories":[{"type":"composer","url":"${registryUrl("composer")}"},{"packagist.org":false}],"config":{"secure-http":false}}\n`,
      "app.php": '<?php require "vendor/autoload.php"; echo THING_SAYS, "\\n";\n',
    },
    command: "composer require example/thing && php app.php",
    // The names of its classes are made up anew each time.
    varies: { content: [/\/vendor\/autoload\.php$/, /\/autoload_(real|static)\.php$/] },
  },
  {
    name: "mvn downloads a new package",
    needs: ["mvn", "unzip"],
    files: {
      "pom.xml":
        "<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version><packaging>pom</packaging>" +
        "<build><extensions><extension><groupId>org.example</groupId><artifactId>thing</artifactId><version>1.0.0</version></extension></extensions></build></project>\n",
    },
    // What a lifecycle needs for more than this phase are plugins of the whole Central.
    command: `mvn validate && unzip -p ~/.m2/repository/org/example/thing/1.0.0/thing-1.0.0.jar thing.txt && echo`,
  },
  {
    name: "gradle downloads a new package",
    needs: ["gradle", "javac"],
    files: {
      // A daemon would outlive the bare run.
      "gradle.properties": "org.gradle.daemon=false\n",
      "build.gradle": `apply plugin: 'java'\nrepositories { maven { url '${registryUrl("maven")}' } }\ndependencies { compile 'org.example:thing:1.0.0' }\ntask say(type: JavaExec) { classpath = sourceSets.main.runtimeClasspath; main = 'App' }\n`,
      "src/main/java/App.java":
        'public class App {\n  public static void main(String[] words) throws Exception {\n    System.out.println(new String(App.class.getResourceAsStream("/thing.txt").readAllBytes()));\n  }\n}\n',
    },
    command: "gradle -q say",
    varies: { content: [/\.gradle\//, /\/build\//], paths: [/\.gradle\//] },
  },
];

function row(tool: Install, cache: "an empty" | "a warm"): Workload {
  const { varies, quick, ...rest } = tool;
  return {
    ...rest,
    name: `${tool.name}, from ${cache} cache`,
    ...{ registry: true, policies: POLICIES, varies: { ...varies, output: LAST_WORDS } },
    ...(cache === "a warm" ? { warm: true } : quick === true ? { quick } : {}),
  };
}

export const INSTALLS: readonly Workload[] = TOOLS.flatMap((tool) => [
  row(tool, "an empty"),
  row(tool, "a warm"),
]);
