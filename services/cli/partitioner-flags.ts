/** A partitioner as the command line names it: an algorithm with parameters, or JSON. */
import { type PartitionerConfig, readPartitionerConfig } from '../../libs/partitioning/partitioner-config.ts';
import { CliError, EXIT } from './exit.ts';

/** `options` are `name=value` each. */
export function partitionerOf(text: string, options: readonly string[] = []): PartitionerConfig {
  const given = text.trimStart().startsWith('{') ? fromJson(text) : { algorithm: text };
  const config: Record<string, unknown> = { ...given };
  for (const option of options) {
    const [, name, value] = /^([^=]+)=(.+)$/s.exec(option) ?? [];
    if (name === undefined || value === undefined)
      throw usage(`${JSON.stringify(option)} is no parameter: it is name=value, as lambda=1.2`);
    config[name] = /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
  }
  const reading = readPartitionerConfig(config);
  if (reading.kind === 'invalid') throw usage(reading.problem);
  return reading.config;
}

function fromJson(text: string): object {
  try {
    return JSON.parse(text) as object;
  } catch (error) {
    throw usage(
      `is neither an algorithm nor JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

function usage(problem: string): CliError {
  return new CliError(EXIT.usage, `partitioner: ${problem}`);
}
