/** `watershed load`, the built program, into a graph of a running cluster. */
import type { LoadSummary } from '../../services/cli/load/command.ts';
import type { LoadFlags } from '../../services/cli/load/load-options.ts';
import type { Cluster } from '../e2e/harness/cluster.ts';

export interface LiveLoad {
  readonly status: number | null;
  readonly summary: LoadSummary;
  readonly stderr: string;
}

/** `input` is what the program gets as its standard input, the file `-`. */
export async function liveLoad(
  cluster: Cluster,
  graph: string,
  files: readonly string[],
  flags: LoadFlags & { readonly partitions?: string } = {},
  input?: string | Uint8Array,
): Promise<LiveLoad> {
  const args = ['load', '--graph', graph, '--json', ...loadArgs(flags), ...files];
  const { status, stdout, stderr } = await cluster.watershed(args, input);
  if (!stdout.startsWith('{')) throw new Error(`watershed ${args.join(' ')}: ${status}\n${stdout}${stderr}`);
  return { status, summary: JSON.parse(stdout) as LoadSummary, stderr };
}

function loadArgs(flags: LoadFlags & { readonly partitions?: string }): string[] {
  return Object.entries(flags).flatMap(([key, value]) => {
    const name = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    if (value === false) return [`--no-${name}`];
    if (value === true) return [`--${name}`];
    return [value].flat().flatMap((text) => [`--${name}`, text]);
  });
}
