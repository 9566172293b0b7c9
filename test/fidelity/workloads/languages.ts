import type { Workload } from "../workload.ts";
import { NPM_OUTPUT } from "./npm-output.ts";

const ESCAPE = String.fromCharCode(27);
const COLOURS = new RegExp(`${ESCAPE}\\[[0-9;]*m`, "g");

/** Interpreters fed by pipes and files, test runners, and what they leave. */
export const LANGUAGES: readonly Workload[] = [
  {
    name: "python3 from a pipe",
    quick: true,
    needs: ["python3"],
    stdin:
      "import os, sys\nprint(sys.version_info[0], os.getcwd().split('/')[-1], sys.argv)\nopen('out', 'w').write('x')\nprint('err', file=sys.stderr)\nsys.exit(5)\n",
    command: "python3 -",
  },
  {
    name: "python3 -i, as a REPL",
    needs: ["python3"],
    stdin: "1 + 1\nx = [i for i in range(3)]\nx\nraise ValueError('v')\nprint('on')\n",
    command: "python3 -i",
  },
  {
    name: "python modules, their caches and -m",
    needs: ["python3"],
    files: {
      "pkg/__init__.py": "V = 1\n",
      "pkg/__main__.py": "from pkg import V\nprint('main', V)\n",
      "use.py": "import pkg, json, sys\nprint(json.dumps({'v': pkg.V}), sys.path[0].split('/')[-1])\n",
    },
    command:
      "python3 use.py; python3 -m pkg; ls pkg; python3 -m json.tool <<< x; python3 -m compileall -q pkg; python3 -c 'import sysconfig, ssl, sqlite3, lzma, ctypes; print(1)'",
    shell: "bash",
    varies: { content: [/\.pyc$/] },
  },
  {
    name: "python's subprocess, os and signal",
    needs: ["python3"],
    files: {
      "p.py":
        "import subprocess, os, signal, tempfile, shutil, time, fcntl\nprint(subprocess.run('exit 3', shell=True).returncode, subprocess.check_output(['echo', 'x']))\np = subprocess.Popen(['sleep', '9']); p.terminate(); print(p.wait())\nsignal.signal(signal.SIGALRM, lambda *a: print('alarm')); signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(0.2)\nwith tempfile.TemporaryDirectory() as d: open(d + '/f', 'w').write('x'); shutil.copytree(d, 'copied')\nr, w = os.pipe(); os.write(w, b'pipe'); print(os.read(r, 9)); print(os.nice(0), os.cpu_count(), os.getlogin() if os.isatty(0) else 'no terminal')\nwith open('lock', 'w') as f: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB); print('locked')\nprint(os.sched_getaffinity(0) == set(range(os.cpu_count())), os.statvfs('.').f_namemax)\nos.sendfile(1, os.open('p.py', 0), 0, 6); os.memfd_create('m'); print(os.getrandom(4) != b'')\n",
    },
    command: "python3 p.py",
  },
  {
    name: "a process that is not dumpable starts a program, as ssh-agent and gpg do",
    needs: ["python3"],
    quick: true,
    files: {
      "p.py":
        "import ctypes, os\nctypes.CDLL(None).prctl(4, 0)\nos.execv('/bin/echo', ['echo', 'started'])\n",
    },
    command: "python3 p.py",
  },
  {
    name: "a virtual environment",
    needs: ["python3"],
    tried: "python3 -c 'import venv, ensurepip'",
    command:
      "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'; . v/bin/activate; which python | sed 's|.*/project/||'; cat v/pyvenv.cfg | grep -c home",
  },
  {
    name: "python's multiprocessing in three ways, with shared memory",
    needs: ["python3"],
    files: {
      "mp.py":
        "import multiprocessing as m\nfrom multiprocessing import shared_memory as s\ndef f(x): return x * x\nif __name__ == '__main__':\n  for k in ('fork', 'spawn', 'forkserver'):\n    with m.get_context(k).Pool(2) as p: print(k, p.map(f, range(4)))\n  a = s.SharedMemory(create=True, size=10); a.buf[0] = 1; print(a.buf[0]); a.close(); a.unlink()\n",
    },
    command: "python3 mp.py",
    varies: { content: [/\.pyc$/] },
  },
  {
    name: "python -m unittest",
    needs: ["python3"],
    files: {
      "test_a.py":
        "import unittest\nclass A(unittest.TestCase):\n    def test_ok(self): self.assertEqual(1, 1)\n    def test_bad(self): self.assertEqual(1, 2)\n",
    },
    command: "python3 -m unittest -v 2>&1 | sed 's/in [0-9.]*s/in T/'; echo $?",
    varies: { content: [/\.pyc$/] },
  },
  {
    name: "pytest",
    needs: ["pytest"],
    files: {
      "test_a.py":
        "import pytest\ndef test_ok(tmp_path): (tmp_path / 'x').write_text('x')\ndef test_bad(): assert [1, 2] == [1, 3]\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n, capsys): print(n); assert capsys.readouterr().out\n",
    },
    command: "pytest -q; echo $?; pytest -q --lf -x | tail -1; ls -A",
    varies: { output: [[/in \d+\.\d+s/g, "in T"]], content: [/\.pyc$/, /\.pytest_cache\//] },
  },
  {
    name: "python's asyncio with a subprocess and a server",
    needs: ["python3"],
    files: {
      "a.py":
        "import asyncio\nasync def main():\n    async def serve(r, w): w.write((await r.readline()).upper()); await w.drain(); w.close()\n    s = await asyncio.start_server(serve, '127.0.0.1', 0); port = s.sockets[0].getsockname()[1]\n    r, w = await asyncio.open_connection('localhost', port); w.write(b'hi\\n'); print(await r.read()); s.close()\n    p = await asyncio.create_subprocess_shell('cat; exit 2', stdin=-1, stdout=-1); print(await p.communicate(b'in'), p.returncode)\nasyncio.run(main())\n",
    },
    command: "python3 a.py",
  },
  {
    name: "node from a pipe",
    quick: "at length",
    needs: ["node"],
    stdin:
      "console.log(process.argv.length, process.cwd().split('/').at(-1)); require('fs').writeFileSync('out', 'x'); console.error('err'); process.exitCode = 5;\n",
    command: "node",
  },
  {
    name: "node -i, as a REPL",
    needs: ["node"],
    stdin: "1 + 1\nconst x = { a: [1] }\nx\nthrow new Error('e')\n'on'\n.exit\n",
    command: "NODE_REPL_HISTORY= node -i",
    varies: { output: [[/Node\.js v\S+/, "Node"]] },
  },
  {
    name: "node with workers, children and streams",
    needs: ["node"],
    files: {
      "n.mjs":
        "import { Worker, isMainThread, parentPort } from 'node:worker_threads';\nimport { spawnSync, fork, exec } from 'node:child_process';\nimport { promisify } from 'node:util'; import { pipeline } from 'node:stream/promises'; import { createGzip, createGunzip } from 'node:zlib'; import fs from 'node:fs'; import os from 'node:os';\nif (!isMainThread) parentPort.postMessage('worker'); else if (process.send) { process.send('forked'); process.disconnect(); } else {\n  await new Promise((r) => new Worker(new URL(import.meta.url)).on('message', (m) => { console.log(m); r(); }));\n  await new Promise((r) => fork('n.mjs').on('message', (m) => console.log(m)).on('exit', r));\n  console.log(spawnSync('sh', ['-c', 'cat; exit 3'], { input: 'in' }).stdout.toString(), (await promisify(exec)('echo out')).stdout);\n  fs.writeFileSync('big', 'x'.repeat(1e6)); await pipeline(fs.createReadStream('big'), createGzip(), createGunzip(), fs.createWriteStream('back')); console.log(fs.statSync('back').size, os.cpus().length, os.userInfo().username.length > 0);\n  process.on('SIGTERM', () => { console.log('term'); process.exit(8); }); process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 5000);\n}\n",
    },
    command: "node n.mjs; echo $?",
  },
  {
    name: "node's cluster, inspector and profile",
    needs: ["node"],
    files: {
      "c.js":
        "const c = require('cluster'), h = require('http');\nif (c.isPrimary) { let n = 0; for (const _ of [1, 2]) c.fork(); c.on('listening', (w, a) => { if (++n === 2) h.get({ host: '127.0.0.1', port: a.port }, (r) => { console.log(r.statusCode); for (const w of Object.values(c.workers)) w.kill(); }); }); c.on('exit', (w, code, signal) => console.log(code, signal)); }\nelse h.createServer((q, r) => r.end()).listen(8331, '127.0.0.1');\n",
    },
    command:
      "node c.js; node --inspect=127.0.0.1:0 -e 'console.log(require(\"inspector\").url() !== undefined)' 2> /dev/null; node --cpu-prof --cpu-prof-dir=prof -e 1; ls prof | wc -l",
    varies: { paths: [/\/prof\/./] },
  },
  {
    name: "node --test",
    needs: ["node"],
    files: {
      "a.test.mjs":
        "import { test } from 'node:test'; import assert from 'node:assert';\ntest('ok', () => assert.equal(1, 1)); test('bad', () => assert.equal(1, 2)); test('skipped', { skip: true }, () => {});\n",
    },
    command: "node --test --test-reporter=tap a.test.mjs; echo $?",
    varies: {
      output: [
        [/duration_ms:? [\d.]+/g, "duration"],
        [/\(node:\d+\)/g, "(node)"],
      ],
    },
  },
  {
    name: "vitest run",
    needs: ["node"],
    packages: ["vitest"],
    files: {
      "package.json": '{ "type": "module", "scripts": { "test": "vitest run" } }\n',
      "a.test.js":
        "import { expect, test } from 'vitest';\ntest('ok', () => expect(1 + 1).toBe(2));\ntest('snapshot', () => expect({ a: 1 }).toMatchSnapshot());\ntest('bad', () => expect(1).toBe(2));\n",
    },
    command: "npm test; echo $?",
    varies: {
      output: [
        ...NPM_OUTPUT,
        [COLOURS, ""],
        [/\d+(\.\d+)?m?s/g, "T"],
        [/Start at +[\d:]+/, "Start"],
        [/Duration .*/, "Duration"],
      ],
      content: [/\.vite/],
      paths: [/\.vite/],
    },
  },
  {
    name: "node reads, follows and watches files in many ways",
    needs: ["node"],
    files: {
      "f.mjs":
        "import fs from 'node:fs'; import path from 'node:path';\nfs.mkdirSync('a/b', { recursive: true }); fs.writeFileSync('a/b/f', 'x', { mode: 0o640 }); fs.symlinkSync('a/b', 'l', 'dir'); fs.cpSync('a', 'c', { recursive: true, preserveTimestamps: true }); fs.utimesSync('a/b/f', 1, 2); fs.linkSync('a/b/f', 'h'); fs.copyFileSync('h', 'k', fs.constants.COPYFILE_FICLONE);\nconsole.log(fs.readdirSync('.', { recursive: true }).sort().join(' '), fs.realpathSync('l').endsWith('/a/b'), fs.statSync('h').nlink, fs.statSync('h').mtimeMs, fs.existsSync('/none'), path.relative(process.cwd(), fs.mkdtempSync('t-')).length);\ntry { fs.rmdirSync('a'); } catch (e) { console.log(e.code, e.syscall); } try { fs.openSync('none'); } catch (e) { console.log(e.message); } fs.rmSync('c', { recursive: true }); fs.truncateSync('h', 0); fs.appendFileSync('h', 'end');\n",
    },
    command: "node f.mjs",
    varies: { paths: [/\/t-\w{6}$/], output: [[/t-\w{6}/g, "TEMP"]] },
  },
  {
    name: "perl's tests with prove",
    needs: ["prove"],
    files: { "t/a.t": "use Test::More tests => 2; ok(1, 'one'); is(1, 2, 'two');\n" },
    command: "prove -v t; echo $?",
    varies: { output: [[/=.*(wallclock|CPU).*/g, "TIME"]] },
  },
  {
    name: "ruby",
    needs: ["ruby"],
    stdin:
      "puts RUBY_ENGINE, Dir.pwd.split('/').last\nFile.write('out', 'x')\nputs `echo sub`; system('exit 3'); puts $?.exitstatus\nfork { exit 4 }; Process.wait; puts $?.exitstatus\nr, w = IO.pipe; Thread.new { w.puts 'thread'; w.close }.join; puts r.read\nabort 'end'\n",
    command: "ruby",
  },
  {
    name: "lua",
    needs: ["lua"],
    stdin:
      "print(_VERSION, 2^10, #arg); io.open('out', 'w'):write('x'):close(); print(io.popen('echo sub'):read('a')); print(os.execute('exit 3')); error('end')\n",
    command: "lua -",
  },
  {
    name: "php",
    needs: ["php"],
    stdin:
      "<?php echo PHP_SAPI, ' ', basename(getcwd()), PHP_EOL; file_put_contents('out', 'x'); echo shell_exec('echo sub'); file_put_contents('php://stderr', 'err'); exit(6);\n",
    command: "php",
  },
  {
    name: "tclsh",
    needs: ["tclsh"],
    stdin: "puts [exec echo sub]; set f [open out w]; puts $f x; close $f; puts [file size out]; exit 3\n",
    command: "tclsh",
  },
  {
    name: "sqlite3 from a pipe",
    quick: "at length",
    needs: ["sqlite3"],
    stdin:
      "create table t(a integer primary key, b text);\ninsert into t(b) values('x'),('y');\nselect * from t;\n.mode csv\nselect count(*), sum(a) from t;\nselect none;\n",
    command: "sqlite3 db.sqlite; echo $?",
  },
  {
    name: "sqlite3 with a log, and two writers",
    needs: ["sqlite3"],
    command:
      "sqlite3 db 'pragma journal_mode=wal; create table t(a);'; for i in 1 2; do (for n in 1 2 3 4 5; do sqlite3 -cmd '.timeout 5000' db \"insert into t values($i$n)\"; done) & done; wait; sqlite3 db 'select count(*), sum(a) from t; pragma integrity_check'; ls; sqlite3 db .dump | head -3; sqlite3 -readonly db 'insert into t values(1)'; echo $?",
    varies: { content: [/\/db$/] },
  },
  {
    name: "sqlite3 in python, with locks of two connections",
    needs: ["python3"],
    command:
      "python3 - <<'E'\nimport sqlite3\na = sqlite3.connect('d', timeout=0.1); b = sqlite3.connect('d', timeout=0.1)\na.execute('create table t(x)'); a.commit(); a.execute('begin immediate'); a.execute('insert into t values(1)')\ntry: b.execute('insert into t values(2)')\nexcept sqlite3.OperationalError as e: print(e)\na.commit(); b.execute('insert into t values(2)'); b.commit(); print(a.execute('select * from t').fetchall())\nE",
  },
  {
    name: "a Redis server with its socket and file in the project",
    needs: ["redis-server", "redis-cli"],
    command:
      "redis-server --port 0 --unixsocket r.sock --dir . --save '' --appendonly no > log & for i in $(seq 50); do redis-cli -s r.sock ping 2> /dev/null && break; sleep 0.1; done; redis-cli -s r.sock set k v; redis-cli -s r.sock get k; redis-cli -s r.sock save; redis-cli -s r.sock shutdown nosave; wait; ls",
    varies: { content: [/\/log$/, /\.rdb$/] },
  },
  {
    name: "a PostgreSQL server with its data and socket in the project",
    needs: ["initdb", "pg_ctl", "psql"],
    tried: "test $(id -u) != 0",
    command:
      "initdb -D data -A trust > /dev/null && pg_ctl -D data -o \"-k $PWD -h ''\" -l log -w start > /dev/null; psql -h $PWD -d postgres -Atc 'create table t(a int); insert into t select generate_series(1,1000); select sum(a) from t'; pg_ctl -D data -m fast stop | tail -1",
    varies: { content: [/\/data\//, /\/log$/], paths: [/\/data\//] },
  },
];
