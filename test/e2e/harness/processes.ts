/** Processes of this machine, as /proc tells them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { PROGRAM, type Ran } from './cluster.ts';

/** A command of the built program that runs beside the test. */
export interface Running {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly ended: Promise<Ran>;
  /** Ctrl-C in its terminal: all of its process group are told. */
  readonly interrupt: () => void;
}

export function startProgram(args: readonly string[], env: NodeJS.ProcessEnv): Running {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ran>((resolve) =>
    child.once('close', (status) => resolve({ status, stdout, stderr })),
  );
  return {
    child,
    ended,
    stdout: () => stdout,
    stderr: () => stderr,
    interrupt: () => process.kill(-child.pid!, 'SIGINT'),
  };
}

export interface ProcessInfo {
  readonly pid: number;
  readonly command: string;
}

/** All processes with this in their command line. */
export function processesWith(text: string): ProcessInfo[] {
  const found: ProcessInfo[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
      const isZombie = /^State:\s+Z/m.test(readFileSync(`/proc/${name}/status`, 'utf8'));
      if (command.includes(text) && !isZombie) found.push({ pid: Number(name), command });
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}
