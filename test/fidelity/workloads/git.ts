import type { Workload } from "../workload.ts";

/** Commits have the same names each time, as where somebody makes builds that can be repeated. */
const DATES = {
  GIT_AUTHOR_DATE: "2024-05-06T07:08:09+00:00",
  GIT_COMMITTER_DATE: "2024-05-06T07:08:09+00:00",
};
const DATED = Object.entries(DATES)
  .map(([name, value]) => `export ${name}=${value}\n`)
  .join("");

/** The index holds times and inodes of files; git touches an object that it would write once more. */
const INDEX = { content: [/\/index$/], times: [/\/objects\//] } as const;

/**
 * A clone on the same file system shares the objects of its origin where link(2) lets it, and copies them where not: across mounts,
 * as project and .git are in a world (git-clone(1), --local).
 */
export const SHARED = { ...INDEX, links: [/\/objects\/[0-9a-f]{2}\/[0-9a-f]{38}$/] } as const;

/** Two commits, and a branch with one more. */
export const REPOSITORY = `${DATED}
git init -q .
printf 'one\\ntwo\\nthree\\n' > list.txt; printf 'int main(void) { return 0; }\\n' > main.c
git add . && git commit -qm first
git switch -qc side && echo side > side.txt && git add . && git commit -qm side
git switch -q main && echo four >> list.txt && git commit -qam second`;

export const gitRow = (more: Omit<Workload, "needs"> & { readonly needs?: readonly string[] }): Workload => ({
  needs: ["git"],
  prepare: REPOSITORY,
  env: DATES,
  varies: INDEX,
  ...more,
});

export const GIT: readonly Workload[] = [
  gitRow({
    name: "git init, the first commit",
    prepare: "echo text > file.txt",
    command: "git init && git add . && git commit -m first && git status && git log --stat",
  }),
  gitRow({
    name: "git commit of changed, new, removed and renamed files",
    quick: true,
    command: `echo five >> list.txt; mkdir -p a/b; echo new > a/b/new.txt; git mv main.c program.c
      git add -A; git commit -m changes; git show --stat --summary; git status --porcelain=v2 --branch`,
  }),
  gitRow({
    name: "git merge of a side branch",
    command: "git merge --no-edit side && git log --graph --oneline --all && git branch -d side",
  }),
  gitRow({
    name: "git merge with a conflict, and its abort",
    command: `git switch -q side && echo other >> list.txt && git commit -qam other && git merge main; echo "merge: $?"
      cat list.txt; git status --short; git diff; git merge --abort; git status`,
  }),
  gitRow({
    name: "git rebase",
    quick: "at length",
    command: "git switch side && git rebase main && git log --oneline --graph",
  }),
  gitRow({
    name: "git rebase -i with an editor that is a script",
    command: `git switch -q side; for n in 1 2 3; do echo $n > $n.txt; git add .; git commit -qm "add $n"; done
      GIT_SEQUENCE_EDITOR="sed -i -e 3s/pick/squash/" GIT_EDITOR=true git rebase -i main; git log --format=%B`,
  }),
  gitRow({
    name: "git stash, pop and drop",
    command: `echo dirty >> list.txt; echo untracked > u.txt; git stash -u; ls; git stash list; git stash pop; cat list.txt
      git stash push -m kept list.txt; git stash show -p; git stash drop; git status -s
      echo '*.ign' > .gitignore; echo x > a.ign; echo y > new; git stash -a; ls -A; git stash pop -q; git status -s --ignored; rm .gitignore a.ign new`,
  }),
  gitRow({
    name: "git worktree inside the project",
    command: `git worktree add trees/side side && echo more >> trees/side/side.txt && git -C trees/side commit -am more
      git worktree list --porcelain | sed 's/^HEAD.*//'; git worktree remove trees/side; git worktree prune -v; git branch -v`,
  }),
  gitRow({
    name: "git worktree beside the project",
    command: "git worktree add ../beside side && cat ../beside/side.txt && git worktree list",
    refused: { default: /beside/, strict: /beside/ },
  }),
  gitRow({
    name: "git clone of a repository in the project",
    varies: SHARED,
    prepare: `${REPOSITORY}\ngit clone -q --bare . origin.git`,
    command: "git clone origin.git copy && cd copy && git log --oneline && git remote -v && git branch -a",
  }),
  gitRow({
    name: "git push to a bare repository in the project",
    quick: true,
    prepare: `${REPOSITORY}\ngit init -q --bare origin.git; git remote add origin "$PWD/origin.git"`,
    command:
      "git push origin main side && git --git-dir=origin.git log --oneline --all && git fetch && git branch -a",
  }),
  gitRow({
    name: "git push -u, and a pull",
    prepare: `${REPOSITORY}\ngit init -q --bare origin.git; git remote add origin "$PWD/origin.git"`,
    command: "git push -u origin main && git status -sb && git pull && git config branch.main.remote",
  }),
  gitRow({
    name: "git push to a bare repository beside the project",
    prepare: `${REPOSITORY}\ngit init -q --bare ../origin.git; git remote add origin ../origin.git`,
    command: "git push origin main && git ls-remote origin",
    refused: { default: /origin\.git/, strict: /origin\.git/ },
  }),
  gitRow({
    name: "git fetch and pull from a repository beside the project",
    prepare: `${REPOSITORY}\ngit clone -q . ../other; cd ../other; git switch -q main; echo five >> list.txt; git commit -qam third
      cd ../project; git remote add other ../other`,
    command: "git fetch other && git merge --ff-only other/main && git log --oneline",
  }),
  gitRow({
    name: "git remote add, rename and remove",
    command: `git remote add origin https://example.org/a.git; git remote add up https://example.org/b.git
      git remote rename up upstream; git remote remove upstream; git remote -v`,
  }),
  gitRow({
    name: "git remote set-url of a remote that a person has set",
    prepare: `${REPOSITORY}\ngit remote add origin https://example.org/a.git`,
    command: "git remote set-url origin https://example.org/c.git && git remote -v",
    refused: { default: /remote\.origin\.url/, strict: /remote\.origin\.url/ },
  }),
  gitRow({
    name: "git config of a name and an address",
    command:
      "git config user.name Someone && git config user.email some@example.org && git config --local --list",
  }),
  gitRow({
    name: "git config --global",
    command: "git config --global pull.rebase true && git config --global --get pull.rebase",
    home: [".gitconfig"],
    refused: { default: /\.gitconfig/, strict: /\.gitconfig/ },
  }),
  gitRow({
    name: "git branch that tracks another one",
    command: "git switch -c topic --track main && git branch -vv && git config --get-regexp 'branch.*'",
  }),
  gitRow({
    name: "git submodule add, of a repository in the project",
    prepare: `${REPOSITORY}\ngit clone -q --bare . ../library.git`,
    command: `git -c protocol.file.allow=always submodule add ../library.git library && git commit -qm submodule
      git submodule status && git ls-files --stage && cat .gitmodules`,
    varies: SHARED,
  }),
  gitRow({
    name: "git submodule update in a fresh clone",
    varies: SHARED,
    prepare: `${REPOSITORY}
      git clone -q --bare . ../library.git; git -c protocol.file.allow=always submodule add -q ../library.git library
      git commit -qm submodule; git clone -q --bare . ../origin.git; cd ..; rm -rf project; git clone -q origin.git project`,
    command:
      "git -c protocol.file.allow=always submodule update --init && ls library && git submodule status",
  }),
  gitRow({
    name: "git tag, describe and archive",
    command: `git tag -a v1.0 -m one main~1; git describe; git show v1.0 | head -5; git archive --prefix=p/ v1.0 | tar -tv
      git archive -o out.zip HEAD; git tag -d v1.0; git tag -l`,
  }),
  gitRow({
    name: "git bisect run",
    command: `for n in 1 2 3 4 5 6 7 8; do echo $n > number; git add .; git commit -qm "number $n"; done
      git bisect start HEAD HEAD~7 && git bisect run sh -c 'test "$(cat number)" -lt 5'; git bisect log; git bisect reset`,
  }),
  gitRow({
    name: "git gc, fsck, prune and count-objects",
    command:
      "git gc --quiet --prune=now && git fsck --full && git count-objects -v && ls .git/objects/pack | sed 's/.*[.]//'",
  }),
  gitRow({
    name: "git cherry-pick and revert",
    command:
      "git cherry-pick side && git revert --no-edit HEAD~1 && git log --format='%s %an %ad' && git reflog",
  }),
  gitRow({
    name: "git format-patch and am",
    command: `git format-patch -o patches HEAD~1 && git reset -q --hard HEAD~1 && git am patches/*.patch && git log --oneline
      git apply --stat patches/*.patch`,
    strictest: "ci",
  }),
  gitRow({
    name: "git restore, rm, mv and clean",
    command: `echo x >> list.txt; git restore list.txt; git rm -q main.c; git restore --staged --worktree main.c
      mkdir -p build/a; touch build/a/o; git clean -nd; git clean -fd; git mv list.txt l.txt; git status -s`,
  }),
  gitRow({
    name: "git blame, grep, shortlog and diff --word-diff",
    command: `git blame list.txt; git grep -n four $(git rev-parse main); git shortlog -sn HEAD; git diff --word-diff side main
      git diff --no-index list.txt main.c; git log -S four --oneline`,
  }),
  gitRow({
    name: "git notes, reflog and update-ref",
    command:
      "git notes add -m hint && git log --notes -1 && git update-ref refs/keep/one HEAD && git for-each-ref && git reflog -3",
  }),
  gitRow({
    name: "git sparse-checkout",
    prepare: `${REPOSITORY}\nmkdir -p web api; echo w > web/w; echo a > api/a; git add .; git commit -qm folders`,
    command:
      "git sparse-checkout set web && ls && git sparse-checkout list && git sparse-checkout disable && ls",
  }),
  gitRow({
    name: "git bundle, and a clone of it",
    command:
      "git bundle create all.bundle --all && git bundle verify all.bundle && git clone -q all.bundle copy && git -C copy log --oneline",
  }),
  gitRow({
    name: "git status with names of all kinds",
    prepare: `${REPOSITORY}\nmkdir 'a b'; : > 'a b/x y'; : > "$(printf 'line\\nbreak')"; : > 'ümläut'; : > "$(printf 'latin\\351')"; : > -- -dash`,
    command: "git status --porcelain -z | tr '\\0' '\\n'; git add . && git commit -qm names && git ls-files",
  }),
  gitRow({
    name: "a git hook that is there runs and refuses a commit",
    prepare: `${REPOSITORY}
      printf '#!/bin/sh\\necho checking >&2; ! git diff --cached | grep FIXME\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`,
    command: `echo fine >> list.txt; git commit -qam fine; echo "first: $?"; echo FIXME >> list.txt; git commit -am bad; echo "second: $?"
      git log --oneline`,
  }),
  gitRow({
    name: "git add -p from a pipe",
    command:
      "printf 'zero\\none\\ntwo\\nthree\\nfour\\nfive\\n' > list.txt; printf 's\\ny\\nn\\n' | git add -p; git diff --cached; git diff",
  }),
  gitRow({
    name: "git with a file that is executable, and a link",
    command: `printf '#!/bin/sh\\necho ran\\n' > run.sh; chmod +x run.sh; ln -s run.sh link; git add .; git commit -qm modes; git ls-tree HEAD
      rm run.sh link; git checkout -q .; ./link; chmod -x run.sh; git diff; git stash -q; ls -l run.sh | cut -c1-10`,
  }),
  gitRow({
    name: "git checkout of 600 files",
    prepare: `${DATED}git init -q .; for d in $(seq 10); do mkdir $d; for f in $(seq 60); do echo $d $f > $d/$f; done; done
      git add .; git commit -qm many; git switch -qc empty; git rm -rqf .; git commit -qm empty`,
    command: "git switch -q main && git ls-files | wc -l && git status --short && git switch -q empty && ls",
  }),
];
