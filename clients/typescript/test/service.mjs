// A sandbox of flexd on a free port of the loopback, with a database of its own.
import { spawn, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const binary = process.env.FLEXD;

/** Starts a sandbox and returns its address, name, password and how to end it. */
export async function sandbox() {
  if (!binary) throw new Error('FLEXD has to name the program: run make clients');

  const dir = mkdtempSync(join(tmpdir(), 'flexd-'));
  const env = { ...process.env, FLEXD_DATABASE: 'sqlite:' + join(dir, 'flexd.db') };
  const options = { cwd: dir, env };
  execFileSync(binary, ['org', 'add', 'Acme', '--username', 'acme', '--password', 'quick-start-secret', '--environment', 'sandbox'], options);

  const args = ['serve', '--environment', 'sandbox', '--allow-private-endpoints', '--log-level', 'warn', '--listen', '127.0.0.1:0'];
  const service = spawn(binary, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((done) => service.once('exit', done));

  const address = await new Promise((found, failed) => {
    service.once('exit', (code) => failed(new Error(`flexd ended with ${code}`)));
    createInterface(service.stdout).on('line', (line) => {
      const at = line.match(/listening on (http:\/\/\S+)/);
      if (at) found(at[1]);
    });
  });

  return {
    address,
    username: 'acme',
    password: 'quick-start-secret',
    options, // in which another flexd is started beside it
    async stop() {
      service.kill('SIGTERM');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
