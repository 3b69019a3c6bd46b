import { CliError, EXIT } from './exit.ts';

const ROLES = ['partitioner', 'worker', 'gateway'] as const;
export type Role = (typeof ROLES)[number];

export function parseRoles(text: string): Role[] {
  const roles = text.split(',').map((role) => role.trim());
  for (const role of roles) {
    if (!ROLES.includes(role as Role)) {
      throw new CliError(EXIT.usage, `--roles: "${role}" is not one of ${ROLES.join(', ')}`);
    }
  }
  return [...new Set(roles)] as Role[];
}

export function parsePartitions(text: string): number[] {
  const partitions = text.split(',').map((part) => Number(part.trim()));
  for (const partition of partitions) {
    if (!Number.isInteger(partition) || partition < 0 || partition > 63) {
      throw new CliError(EXIT.usage, `--partitions: "${text}" is not a list of numbers 0 to 63, such as 0,2`);
    }
  }
  return [...new Set(partitions)];
}

/** `host:port` or a port alone. */
export function parseAddress(text: string): { host: string; port: number } {
  const match = /^(?:(.+):)?(\d{1,5})$/.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new CliError(EXIT.usage, `--http: "${text}" is not an address such as 127.0.0.1:8080`);
  }
  return { host: match[1] ?? '127.0.0.1', port };
}
