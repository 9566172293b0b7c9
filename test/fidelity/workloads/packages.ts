import type { Workload } from "../workload.ts";
import { NPM_OUTPUT } from "./npm-output.ts";

/** A package that lies beside its user, packed before. */
const TARBALL = `mkdir lib; printf '{"name":"lib","version":"1.2.3","bin":"cli.js","main":"i.js"}' > lib/package.json; echo 'module.exports = 42;' > lib/i.js
printf '#!/usr/bin/env node\\nconsole.log("lib", require("./i.js"), process.argv.length);\\n' > lib/cli.js; npm pack --silent ./lib > /dev/null; rm -r lib`;

const USER_OF_LIB =
  '{"name":"app","version":"1.0.0","scripts":{"start":"node -p \\"require(\'lib\')\\"","lib":"lib a","pretest":"echo before","test":"exit 3"},"dependencies":{"lib":"file:lib-1.2.3.tgz"}}';

const NPM = { output: NPM_OUTPUT };

const WHEEL = `python3 - <<'E'
import zipfile
with zipfile.ZipFile('thing-1.0-py3-none-any.whl', 'w') as z:
    z.writestr('thing/__init__.py', 'V = 7\\n')
    z.writestr('thing-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0\\n')
    z.writestr('thing-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('thing-1.0.dist-info/RECORD', '')
E`;

export const PACKAGES: readonly Workload[] = [
  {
    name: "npm's global folder, and how it saves, as the user has set them",
    needs: ["npm"],
    quick: "at length",
    registry: true,
    command: "npm prefix -g; npm root -g; npm config get save-prefix",
  },
  {
    name: "npm init -y, version and pkg",
    needs: ["npm"],
    command:
      "npm init -y && npm version 1.1.0 --no-git-tag-version && npm pkg set scripts.x='echo x' && npm pkg get name version && cat package.json",
    varies: { ...NPM, output: [...NPM.output, [/to \/.*package\.json/, "to FILE"]] },
  },
  {
    name: "npm version, with a commit and a tag",
    needs: ["npm", "git"],
    files: { "package.json": '{"name":"p","version":"1.0.0"}\n' },
    prepare: "git init -q .; git add .; git commit -qm first",
    command:
      "npm version patch && npm version minor -m 'release %s' && git log --format='%s %d' && git status -s",
    varies: { ...NPM, content: [/\.git\//], paths: [/\.git\/objects\//] },
  },
  {
    name: "npm link, with a prefix in the project",
    needs: ["npm"],
    files: {
      "lib/package.json": '{"name":"lib","version":"1.0.0","bin":"i.js"}',
      "lib/i.js": "#!/usr/bin/env node\nmodule.exports = 5;\n",
      "app/package.json": '{"name":"app","version":"1.0.0"}',
    },
    env: { npm_config_prefix: "../global", npm_config_update_notifier: "false" },
    command:
      "cd lib && npm link && cd ../app && npm link lib && node -p 'require(\"lib\")' && npm ls --link; npm unlink lib",
    varies: NPM,
  },
  {
    name: "a small addon by the node-gyp of npm",
    needs: ["npm", "gcc", "python3"],
    tried:
      'test -f /usr/include/node/node_api.h -a -f "$(npm root -g)/npm/node_modules/node-gyp/bin/node-gyp.js"',
    files: {
      "binding.gyp": '{"targets":[{"target_name":"a","sources":["a.c"]}]}',
      "a.c":
        '#include <node_api.h>\nnapi_value I(napi_env e, napi_value x) { napi_value v; napi_create_int32(e, 42, &v); napi_set_named_property(e, x, "x", v); return x; }\nNAPI_MODULE(a, I)\n',
      "package.json": '{"name":"a","version":"1.0.0"}',
    },
    command:
      'node "$(npm root -g)/npm/node_modules/node-gyp/bin/node-gyp.js" rebuild --nodedir=/usr --silent && node -p \'require("./build/Release/a.node").x\'',
    varies: { content: [/\/build\//] },
  },
  {
    name: "npm pack, and what is in it",
    needs: ["npm"],
    files: {
      "package.json": '{"name":"p","version":"1.0.0","files":["a.js"]}',
      "a.js": "1\n",
      "b.js": "2\n",
    },
    command: "npm pack && tar tf p-1.0.0.tgz && npm pack --dry-run --json | grep -c integrity",
    varies: NPM,
  },
  {
    name: "npm install of a local tarball",
    needs: ["npm"],
    prepare: TARBALL,
    files: { "package.json": USER_OF_LIB },
    command:
      "npm install --no-audit --no-fund && npm start && npm run lib && npx lib b c; npm ls; npm test; echo $?",
    varies: { ...NPM, content: [/\.package-lock\.json$/] },
  },
  {
    name: "npm ci of a lock file with a local tarball",
    needs: ["npm"],
    files: { "package.json": USER_OF_LIB },
    prepare: `${TARBALL}\nnpm install --package-lock-only --no-audit --no-fund > /dev/null; mkdir node_modules; echo old > node_modules/old`,
    command:
      "npm ci --no-audit --no-fund; ls -A node_modules; npm run start --silent; npm uninstall lib --no-audit --no-fund; cat package.json",
    // What npm wrote in place is put there whole, and the time of its folder follows (world/overlay/README.md).
    varies: { ...NPM, times: [/^\.\/project$/] },
  },
  {
    name: "npm workspaces and links",
    needs: ["npm"],
    files: {
      "package.json": '{"name":"root","private":true,"workspaces":["a","b"]}',
      "a/package.json": '{"name":"a","version":"1.0.0","main":"i.js"}',
      "a/i.js": "module.exports = 'a';\n",
      "b/package.json":
        '{"name":"b","version":"1.0.0","dependencies":{"a":"*"},"scripts":{"go":"node -p \\"require(\'a\')\\""}}',
    },
    command: "npm install --no-audit --no-fund; readlink node_modules/a; npm run go -w b; npm ls -a",
    varies: NPM,
  },
  {
    name: "npm runs install scripts of a package",
    needs: ["npm"],
    files: {
      "package.json":
        '{"name":"s","version":"1.0.0","scripts":{"preinstall":"echo pre > pre","postinstall":"node -e \\"require(\'fs\').writeFileSync(\'post\', process.env.npm_lifecycle_event)\\"","prepare":"sh -c \'echo prepared >> post\'"}}',
    },
    command: "npm install --no-audit --no-fund --foreground-scripts; cat pre post",
    varies: NPM,
  },
  {
    name: "npm exec of a script that fails, and of nothing",
    needs: ["npm"],
    files: {
      "package.json":
        '{"name":"s","version":"1.0.0","scripts":{"bad":"exit 7","env":"env | grep ^npm_package_name","kill":"kill -TERM $$"}}',
    },
    command:
      "npm run bad; echo $?; npm run env --silent; npm run none; echo $?; npm run kill --silent; echo $?; npm run",
    varies: NPM,
  },
  {
    name: "pip installs a local wheel into a virtual environment",
    needs: ["python3"],
    tried: "python3 -c 'import venv, ensurepip'",
    prepare: `${WHEEL}\npython3 -m venv --without-pip --system-site-packages v`,
    command:
      "v/bin/python -m pip install --no-index ./thing-1.0-py3-none-any.whl && v/bin/python -c 'import thing; print(thing.V)'; v/bin/python -m pip list --format=freeze --disable-pip-version-check | grep thing; v/bin/python -m pip uninstall -y thing",
    varies: {
      content: [/\.pyc$/, /RECORD$/],
      // Held changes say nothing of the time of a folder in which nothing is left changed (world/overlay/README.md).
      times: [/site-packages$/],
    },
  },
  {
    name: "pip install --target",
    needs: ["python3"],
    tried: "python3 -m pip --version",
    prepare: WHEEL,
    command:
      "python3 -m pip install -q --no-index --target lib ./thing-1.0-py3-none-any.whl; PYTHONPATH=lib python3 -c 'import thing; print(thing.V)'; ls lib",
    varies: { content: [/\.pyc$/, /RECORD$/] },
  },
  {
    name: "gem build and install in the project",
    needs: ["gem"],
    files: {
      "x.gemspec":
        "Gem::Specification.new { |s| s.name = 'x'; s.version = '1'; s.summary = 's'; s.authors = ['a']; s.files = ['x.rb'] }\n",
      "x.rb": "puts 1\n",
    },
    command:
      "gem build x.gemspec 2> /dev/null; GEM_HOME=$PWD/g gem install --local --no-document x-1.gem; find g -name x.rb",
    varies: { content: [/\.(gem|gemspec)$/] },
  },
];
