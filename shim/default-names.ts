/** Programs most often named by policies; `shim install` without names links the installed ones. */
export const DEFAULT_NAMES: readonly string[] =
  `apt apt-get aws az brew bun cargo chmod chown curl dd docker gcloud gem gh git go helm kubectl make mysql npm npx pip pip3
  pnpm podman psql python python3 rm rsync scp ssh sudo systemctl terraform wget yarn`.split(/\s+/);
