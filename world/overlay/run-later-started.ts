import type { RunLater } from "./run-later.ts";

/** Files run or loaded by a tool that a person, an installer or a forge starts. */
export const STARTED: readonly RunLater[] = [
  { paths: ["**/package.json"], reason: "npm and other package managers run its scripts" },
  { paths: ["**/.npmrc"], reason: "names programs and registries for npm" },
  {
    paths: ["**/.yarnrc{,.yml}", "**/.yarn/{releases,plugins,sdks}/**"],
    reason: "yarn starts the programs it names",
  },
  { paths: ["**/{.pnpmfile,pnpmfile}.{cjs,mjs,js}"], reason: "pnpm runs it at every installation" },
  { paths: ["**/pnpm-workspace.yaml"], reason: "says which packages' scripts pnpm may run" },
  { paths: ["**/.pnp.{cjs,js,loader.mjs}"], reason: "node loads it before every program that yarn starts" },
  { paths: ["**/bunfig.toml"], reason: "names code that bun loads before every program" },
  { paths: ["**/deno.{json,jsonc}"], reason: "deno runs its tasks" },
  { paths: ["**/node_modules/.bin/**"], reason: "npm puts it first on PATH" },
  {
    paths: ["**/node_modules/.hooks/**"],
    reason: "older versions of npm run these beside the scripts of packages",
  },
  { paths: ["**/binding.gyp"], reason: "npm builds the package with it, and runs its commands" },
  {
    paths: [
      "**/*.config.{js,cjs,mjs,ts,cts,mts}",
      "**/.{eslintrc,prettierrc,babelrc,stylelintrc,mocharc,releaserc,swcrc}{,.js,.cjs,.mjs,.ts,.json,.yml,.yaml}",
      "**/{karma.conf,wallaby,wdio.conf}.{js,ts}",
    ],
    reason: "JavaScript tools load it as a program, also inside editors",
  },
  {
    paths: ["**/{gulpfile,Gruntfile,Jakefile}{,.js,.cjs,.mjs,.ts,.babel.js}"],
    reason: "a build tool loads it",
  },
  {
    paths: ["**/{turbo,nx,lerna,rush,wireit}.json", "**/nodemon.json"],
    reason: "names programs that a build starts",
  },
  { paths: ["**/.cargo/{config,config.toml}"], reason: "names the compiler's wrapper, linker and runner" },
  { paths: ["**/build.rs"], reason: "cargo runs it at every build, also inside editors" },
  {
    paths: ["**/rust-toolchain{,.toml}"],
    reason: "says which compiler, in which folder, a bare name starts",
  },
  { paths: ["**/{Cargo,Cross,Makefile}.toml"], reason: "names build scripts and tasks" },
  {
    paths: ["**/{.venv,venv,.virtualenv,.tox/*,.nox/*}/{bin,Scripts}/**"],
    reason: "an activated environment comes first on PATH",
  },
  { paths: ["**/pyvenv.cfg"], reason: "says where Python takes its library from" },
  { paths: ["**/*.{pth,egg-link}"], reason: "Python runs its lines at every start" },
  { paths: ["**/{sitecustomize,usercustomize}.py"], reason: "Python loads it at every start" },
  { paths: ["**/conftest.py"], reason: "pytest loads it, also when an editor looks for tests" },
  {
    paths: ["**/setup.{py,cfg}", "**/pyproject.toml"],
    reason: "an installation runs it, or the build program that it names",
  },
  { paths: ["**/{tox.ini,noxfile.py,tasks.py,fabfile.py,dodo.py}"], reason: "a task runner loads it" },
  {
    paths: ["**/{pytest.ini,.pytest.ini,.coveragerc,.pylintrc,mypy.ini}"],
    reason: "names plugins that a tool loads",
  },
  {
    paths: ["**/.{pythonrc,pythonrc.py,pythonstartup,pdbrc,pdbrc.py}"],
    reason: "Python's prompt or debugger runs it",
  },
  {
    paths: ["**/.ipython/**", "**/jupyter_{notebook,server,lab}_config.{py,json}"],
    reason: "notebooks run it at start",
  },
  { paths: ["**/manage.py"], reason: "Django's tools and editors start it" },
  { paths: ["**/.{Rprofile,Renviron,Rprofile.site}", "**/renv/activate.R"], reason: "R runs it at start" },
  { paths: ["**/.julia/config/startup.jl", "**/LocalPreferences.toml"], reason: "Julia loads it at start" },
  { paths: ["**/.{irbrc,pryrc,rdbgrc,byebugrc}"], reason: "Ruby's prompts and debuggers run it" },
  { paths: ["**/{Gemfile,gems.rb}", "**/*.gemspec"], reason: "Bundler runs it as Ruby" },
  { paths: ["**/{Rakefile,rakefile}{,.rb}", "**/*.rake"], reason: "rake runs it" },
  { paths: ["**/.bundle/config"], reason: "says where Bundler takes gems and programs from" },
  {
    paths: ["**/{.rspec,.rubocop.yml,.solargraph.yml,Guardfile,Capfile}"],
    reason: "names code that a Ruby tool loads",
  },
  {
    paths: ["**/{Podfile,Fastfile,Dangerfile,Brewfile,Vagrantfile,Berksfile}"],
    reason: "a tool runs it as Ruby",
  },
  { paths: ["**/Package.swift"], reason: "Swift's package manager runs it, also inside editors" },
  { paths: ["**/{.mvn,.m2}/**"], reason: "Maven takes its wrapper, extensions and options from this folder" },
  { paths: ["**/{mvnw,gradlew}{,.cmd,.bat}"], reason: "a wrapper that people start instead of the tool" },
  { paths: ["**/pom.xml"], reason: "names plugins that Maven runs, also inside editors" },
  {
    paths: [
      "**/*.{gradle,gradle.kts}",
      "**/gradle.properties",
      "**/gradle/{wrapper,init.d}/**",
      "**/buildSrc/**",
    ],
    reason: "Gradle runs it, also inside editors",
  },
  {
    paths: ["**/{build.sbt,build.sc,build.mill}", "**/project/{plugins.sbt,build.properties,*.scala}"],
    reason: "a Scala build tool runs it",
  },
  {
    paths: ["**/{project.clj,deps.edn,bb.edn,shadow-cljs.edn,build.clj,.lein-env}"],
    reason: "a Clojure build tool runs it",
  },
  {
    paths: ["**/{mix.exs,.iex.exs,.formatter.exs,rebar.config,rebar.config.script,.erlang}"],
    reason: "Elixir and Erlang run it",
  },
  {
    paths: ["**/{composer.json,.php-cs-fixer.php,.php-cs-fixer.dist.php,rector.php,artisan}"],
    reason: "a PHP tool runs it",
  },
  { paths: ["**/{.user.ini,.htaccess}"], reason: "names code and settings that a web server loads" },
  {
    paths: [
      "**/*.{csproj,fsproj,vbproj,vcxproj,sln,slnx,targets,props}",
      "**/{nuget.config,NuGet.Config}",
      "**/.config/dotnet-tools.json",
    ],
    reason: "MSBuild runs its tasks, also inside editors",
  },
  {
    paths: ["**/{.ghci,.haskeline,Setup.hs,Setup.lhs,cabal.project,stack.yaml,hie.yaml}"],
    reason: "a Haskell tool runs it",
  },
  { paths: ["**/{.ocamlinit,dune,dune-project,dune-workspace}"], reason: "an OCaml tool runs it" },
  { paths: ["**/{build.zig,build.zig.zon}"], reason: "zig runs it at every build, also inside editors" },
  {
    paths: ["**/{.golangci.yml,.golangci.yaml,.air.toml,magefile.go,go.work}"],
    reason: "names programs that a Go tool builds and runs",
  },
  { paths: ["**/{.perlcriticrc,.perldb,.proverc,Makefile.PL,Build.PL}"], reason: "a Perl tool runs it" },
  { paths: ["**/.luarc.json", "**/*.rockspec"], reason: "names code that a Lua tool loads" },
  {
    paths: [
      "**/{GNUmakefile,Makefile,makefile,Makefile.am,Makefile.in,configure,configure.ac,config.mk}",
      "**/*.mk",
    ],
    reason: "make and other build tools run its recipes",
  },
  {
    paths: ["**/{justfile,Justfile,.justfile,Taskfile.yml,Taskfile.yaml,Taskfile.dist.yml}"],
    reason: "a task runner runs its commands",
  },
  {
    paths: [
      "**/{CMakeLists.txt,CMakePresets.json,CMakeUserPresets.json,meson.build,SConstruct,wscript,xmake.lua,premake5.lua}",
      "**/*.cmake",
    ],
    reason: "a build tool runs its commands, also inside editors",
  },
  {
    paths: ["**/{BUILD,WORKSPACE,MODULE}{,.bazel}", "**/.bazelrc", "**/.buckconfig", "**/tools/bazel"],
    reason: "names programs that Bazel and Buck run",
  },
  {
    paths: [
      "**/{Dockerfile,Containerfile,Earthfile,Tiltfile,skaffold.yaml}{,.*}",
      "**/{docker-,}compose{,.override}.{yml,yaml}",
    ],
    reason: "container tools build and start containers from it, which may mount host folders",
  },
  {
    paths: ["**/{flake,shell,default,devenv}.nix", "**/devenv.yaml", "**/devbox.json"],
    reason: "nix evaluates it and runs its hooks",
  },
  { paths: ["**/{guix,manifest}.scm"], reason: "guix evaluates it" },
  {
    paths: ["**/*.tf", "**/.terraformrc", "**/terragrunt.hcl", "**/Pulumi.yaml"],
    reason: "names providers and local commands, which Terraform and similar tools run",
  },
  { paths: ["**/{ansible.cfg,.ansible.cfg}"], reason: "names folders from which Ansible loads plugins" },
  {
    paths: ["**/{Procfile,Procfile.dev,.foreman,.overmind.env}"],
    reason: "process managers run its lines",
  },
  {
    paths: ["**/.env{,.local,.development,.production,.test}"],
    reason: "tools load variables from it, such as NODE_OPTIONS and PATH",
  },
  {
    paths: ["**/.{curlrc,wgetrc,netrc,psqlrc,sqliterc,my.cnf,octaverc,latexmkrc}", "**/latexmkrc"],
    reason: "in a home folder, a tool reads it at start and runs the programs that it names",
  },
  { paths: ["**/.ssh/**"], reason: "names commands that ssh runs, and keys that sshd accepts" },
  {
    paths: [
      "**/*.desktop",
      "**/.config/autostart/**",
      "**/.config/systemd/**",
      "**/*.{service,timer,socket}",
    ],
    reason: "names programs that a desktop or systemd starts",
  },
  { paths: ["**/.local/bin/**"], reason: "this folder is on PATH" },
  {
    paths: ["**/.github/{workflows,actions}/**", "**/action.{yml,yaml}", "**/.{gitea,forgejo}/workflows/**"],
    reason: "the code host's CI runs it",
  },
  { paths: ["**/.gitlab-ci.{yml,yaml}", "**/.gitlab/ci/**"], reason: "GitLab CI runs it" },
  {
    paths: [
      "**/.circleci/**",
      "**/{.travis,appveyor,.appveyor,.drone,.woodpecker,.cirrus,bitbucket-pipelines,azure-pipelines,.semaphore/semaphore,wercker,codemagic,bitrise}.{yml,yaml}",
      "**/.{woodpecker,buildkite,semaphore,azure-pipelines,tekton}/**",
      "**/{.cirrus.star,Jenkinsfile,cloudbuild.yaml,buildspec.yml,netlify.toml,vercel.json}",
    ],
    reason: "a CI or hosting service builds and publishes with it",
  },
  {
    paths: ["**/{renovate,.renovaterc}{,.json,.json5}", "**/.github/{renovate.json,dependabot.yml}"],
    reason: "tells a service how to update the project's dependencies",
  },
  {
    paths: ["**/.storybook/{main,preview,manager}.{js,cjs,mjs,ts,cts,mts,jsx,tsx}"],
    reason: "Storybook loads it as a program",
  },
  { paths: ["**/{config.nims,*.nims}"], reason: "Nim's compiler runs it, also inside editors" },
  { paths: ["**/{docs,doc,docs/source,doc/source}/conf.py"], reason: "Sphinx runs it" },
  { paths: ["**/.{sbtopts,jvmopts,sbtrc}"], reason: "names options and Java agents that sbt loads" },
];
