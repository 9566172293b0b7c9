import type { Workload } from "../workload.ts";
import { gitRow, REPOSITORY, SHARED } from "./git.ts";

/** A signing key in the project, and who it is known for. */
const KEY = `ssh-keygen -q -t ed25519 -N '' -f key; printf 'person@example.org %s\\n' "$(cat key.pub)" > allowed`;

const LIBRARY = `git init -q ../up; (cd ../up; echo 1 > a; git add .; git commit -qm one)
git -c protocol.file.allow=always submodule add -q ../up library; git commit -qm submodule
(cd ../up; echo 2 > a; git commit -qam two)`;

const ASK = "printf 'protocol=https\\nhost=example.org\\n\\n'";

/** What a developer asks of git once a week. */
export const GIT_LESS_OFTEN: readonly Workload[] = [
  gitRow({
    name: "git rebase --exec and --autosquash, and a conflict that is solved",
    command: `echo x >> main.c; git commit -qa --fixup HEAD~1; echo five >> list.txt; git commit -qam third
      GIT_SEQUENCE_EDITOR=true git rebase -q -i --autosquash --exec 'test -f main.c && echo ran' HEAD~2; git log --format=%s
      git switch -q side; echo clash >> list.txt; git commit -qam clash; git rebase main; echo "rebase: $?"; git status -s
      echo solved > list.txt; git add .; GIT_EDITOR=true git rebase --continue; git log --format=%s`,
    varies: { content: [/\/index$/], times: [/\/objects\//] },
  }),
  gitRow({
    name: "git filter-branch",
    command: `FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch --index-filter 'git rm --cached --ignore-unmatch -q main.c' HEAD
      git log --oneline -- main.c; git log --format=%s; ls`,
    varies: { content: [/\/index$/], times: [/\/objects\//], output: [[/ \(\d+ seconds? passed.*?\)/g, ""]] },
  }),
  gitRow({
    name: "git commit -S with an ssh key that options name",
    needs: ["git", "ssh-keygen"],
    prepare: `${REPOSITORY}\n${KEY}`,
    command: `git -c gpg.format=ssh -c user.signingkey="$PWD/key" commit -q -S --allow-empty -m signed; echo $?
      git -c gpg.ssh.allowedSignersFile=allowed log --show-signature -1 --format=%s 2>&1 | sed 's/SHA256:.*//'`,
  }),
  gitRow({
    name: "git config that makes every commit signed",
    needs: ["git", "ssh-keygen"],
    prepare: `${REPOSITORY}\n${KEY}`,
    command: `git config gpg.format ssh && git config user.signingkey "$PWD/key" && git config commit.gpgsign true &&
      git commit -q --allow-empty -m signed && git cat-file -p HEAD | grep -c BEGIN`,
    policies: ["default", "isolated"],
    refused: { default: /git config gpg\.format VALUE/ },
  }),
  gitRow({
    name: "git credential helpers: a file, a shell function, and nobody to ask",
    command: `printf 'protocol=https\\nhost=example.org\\nusername=me\\npassword=p\\n\\n' | git credential-store --file creds store
      ${ASK} | git -c credential.helper="store --file=$PWD/creds" credential fill
      ${ASK} | git -c credential.helper='!f() { echo username=u; echo password=p; }; f' credential fill
      ${ASK} | GIT_TERMINAL_PROMPT=0 git credential fill; echo $?`,
    strictest: "claude-code",
  }),
  gitRow({
    name: "git submodule update --remote of new commits",
    prepare: `${REPOSITORY}\n${LIBRARY}`,
    command:
      "git -c protocol.file.allow=always submodule update --remote && git diff --submodule && git commit -qam up && git status -s",
    policies: ["default", "strict", "isolated"],
    // git writes the submodule's settings again as they were: of those an apply keeps no time.
    varies: { ...SHARED, times: [...SHARED.times, /\/modules\/library\/config$/, /\/modules\/library$/] },
  }),
  gitRow({
    name: "git worktree that is locked, moved and repaired, with commits in both",
    command: `git worktree add -q -b w trees/w; (cd trees/w; echo w > w; git add .; git commit -qm w; git status -sb); git merge -q --no-edit w
      git worktree lock trees/w; git worktree remove trees/w; git worktree unlock trees/w; git worktree move trees/w trees/v
      git worktree repair; git worktree list | wc -l; git worktree remove trees/v; git branch -d w`,
  }),
  gitRow({
    name: "git clone of a file:// URL, shallow and then whole",
    command: `git clone -q --depth 1 "file://$PWD" shallow; git -C shallow log --oneline | wc -l; git -C shallow fetch -q --unshallow
      git -C shallow log --oneline | wc -l; git clone -q --mirror "file://$PWD" m.git; git -C m.git remote -v`,
    varies: { ...SHARED, paths: [/\.(pack|idx|rev)$/] },
  }),
  gitRow({
    name: "git with line ends of both kinds, and attributes",
    command: `git config core.autocrlf input; printf 'a\\r\\nb\\r\\n' > crlf; git add crlf; git commit -qm crlf; git ls-files --eol
      printf '*.txt text eol=crlf\\n' > .gitattributes; git add --renormalize .; git checkout -q HEAD -- .; git ls-files --eol; git status -s`,
  }),
  gitRow({
    name: "git daemon on the command's own localhost",
    tried: "git daemon --help > /dev/null 2>&1",
    command: `git daemon --base-path=. --export-all --listen=127.0.0.1 --port=9418 --reuseaddr & p=$!
      until git ls-remote git://127.0.0.1/ > /dev/null 2>&1; do sleep 0.1; done
      git clone -q git://127.0.0.1/ copy; git -C copy log --oneline | wc -l; kill $p; wait $p 2> /dev/null; echo over`,
    varies: { ...SHARED, paths: [/\.(pack|idx|rev)$/] },
  }),
];
