/** Makes a copy of dist for each mutant, with its one file changed, and runs the schedules there. */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { transformWithOxc } from 'vite';
import { MUTANTS, type Mutant } from './mutants.ts';

const FOLDERS = ['libs', 'services', 'test/simulation/cluster', 'test/support'];
const FIRST_SEED = 1;

export interface MutantsOptions {
  readonly schedules: number;
  readonly isWanted: (mutant: Mutant) => boolean;
  readonly tell: (line: string) => void;
}

export interface MutantResult {
  readonly mutant: Mutant;
  /** The seed that found it. */
  readonly seed: number | undefined;
  readonly breach: string | undefined;
  readonly isAsExpected: boolean;
}

export async function runMutants({ schedules, isWanted, tell }: MutantsOptions): Promise<MutantResult[]> {
  const waiting = MUTANTS.filter(isWanted);
  const results: MutantResult[] = [];
  const runner = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const result = await runMutant(mutant, schedules).catch((error: unknown): MutantResult => {
        return { mutant, seed: undefined, breach: String(error), isAsExpected: false };
      });
      results.push(result);
      tell(lineOf(result, schedules));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, runner));
  return results;
}

async function runMutant(mutant: Mutant, schedules: number): Promise<MutantResult> {
  const folder = mkdtempSync(join(tmpdir(), 'watershed-mutant-'));
  try {
    for (const part of FOLDERS) cpSync(join('dist', part), join(folder, part), { recursive: true });
    cpSync('package.json', join(folder, 'package.json'));
    symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, mutant.file.replace(/\.ts$/, '.js')), await compiled(mutant));
    const output = await run(join(folder, 'test/simulation/cluster/soak.js'), [
      `${FIRST_SEED}`,
      `${schedules}`,
    ]);
    const [, seed] = /^seed (\d+)$/m.exec(output) ?? [];
    const [, breach] = /^(at [\d.]+ ms: .*)$/m.exec(output) ?? [];
    if (seed === undefined && !output.includes(`${schedules} schedules`))
      throw new Error(output.slice(-2_000));
    const isFound = seed !== undefined;
    return {
      mutant,
      seed: isFound ? Number(seed) : undefined,
      breach,
      isAsExpected: isFound === (mutant.masked === undefined),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compiled({ file, find, replace, name }: Mutant): Promise<string> {
  const source = readFileSync(file, 'utf8');
  const places = source.split(find).length - 1;
  if (places !== 1) throw new Error(`mutant "${name}": its place is in ${file} ${places} times`);
  const { code } = await transformWithOxc(
    source.replace(find, () => replace),
    file,
  );
  return code.replace(/(from\s*["'][^"']+)\.ts(["'])/g, '$1.js$2');
}

function run(script: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--single-threaded', script, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString();
    });
    child.stderr.on('data', (bytes: Buffer) => {
      output += bytes.toString();
    });
    child.on('error', reject);
    child.on('close', () => resolve(output));
  });
}

function lineOf({ mutant, seed, breach, isAsExpected }: MutantResult, schedules: number): string {
  const verdict = seed === undefined ? `not found in ${schedules} schedules` : `found by schedule ${seed}`;
  const why = mutant.masked === undefined ? '' : ` (masked: ${mutant.masked})`;
  return `${isAsExpected ? 'ok ' : 'BAD'} ${mutant.name}: ${verdict}${why}${breach === undefined ? '' : `\n      ${breach.slice(0, 160)}`}`;
}
